import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { file, type Image, SLEEP, type TarEntry, writeImages } from "../clusters/node/image.ts";
import type { SuitePrograms } from "./programs.ts";

const REGISTRY = "registry.k8s.io";
const TEST_IMAGES = `${REGISTRY}/e2e-test-images`;

// A user whom a spec about supplemental groups expects in agnhost's image.
const PASSWD = `root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/tmp:/bin/sh
user-defined-in-image:x:1000:1000::/home:/bin/sh
`;
const GROUP = `root:x:0:
nobody:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
`;

/**
 * Programs of Debian that specs call, by their names in images. Busybox' shell would prefer its own, and its static programs do not
 * load the libraries of the others.
 */
const TOOLS: Readonly<Record<string, string>> = {
  sh: "dash",
  curl: "curl",
  wget: "wget",
  nc: "netcat-openbsd",
  dig: "bind9-dnsutils",
  nslookup: "bind9-dnsutils",
  getent: "libc-bin",
  ss: "iproute2",
};

function program(path: string, from: string, mode = 0o755): TarEntry {
  return file(path, readFileSync(from), mode);
}

function filesOf(folder: string): TarEntry[] {
  return readdirSync(folder).map((name) => file(name, readFileSync(join(folder, name))));
}

/** Returns the machine's own programs with the libraries that they load; throws with what to install. */
function tools(): TarEntry[] {
  const libraries = new Set<string>();
  const programs = Object.entries(TOOLS).map(([name, debianPackage]) => {
    const path = spawnSync("which", [name === "sh" ? "dash" : name], { encoding: "utf8" }).stdout.trim();
    if (path === "") throw new Error(`The suite's images need ${name} (on Debian: apt-get install ${debianPackage}).`);
    for (const [, library = ""] of execFileSync("ldd", [path], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)) {
      libraries.add(library);
    }
    return program(`bin/${name}`, path);
  });
  const names = file("etc/nsswitch.conf", "hosts: files dns\n");
  return [names, ...programs, ...[...libraries].map((path) => program(path.slice(1), path))];
}

/**
 * Returns the suite's images that Go programs and busybox can replace, in the versions of
 * test/utils/image/manifest.go.
 */
function suiteImages({ agnhost, nonewprivs, sampleApiServer, etcd, imageFiles }: SuitePrograms): readonly Image[] {
  const toolFiles = tools();
  const agnhostFiles: TarEntry[] = [
    program("agnhost", agnhost),
    { type: "link", path: "agnhost-2", target: "agnhost" },
    { type: "folder", path: "uploads/", mode: 0o755 },
    file("etc/passwd", PASSWD),
    file("etc/group", GROUP),
    ...toolFiles,
    ...filesOf(join(imageFiles, "agnhost")),
  ];
  const webServer = (name: string): Image => ({
    names: [`${TEST_IMAGES}/${name}:1.8`],
    layers: [agnhostFiles, filesOf(join(imageFiles, name))],
    config: { Entrypoint: ["/agnhost"], Cmd: ["test-webserver"] },
  });
  return [
    {
      names: [`${TEST_IMAGES}/agnhost:2.63.0`, `${TEST_IMAGES}/agnhost:2.55`],
      layers: [agnhostFiles],
      config: { Entrypoint: ["/agnhost"], Cmd: ["pause"] },
    },
    webServer("kitten"),
    webServer("nautilus"),
    { names: [`${TEST_IMAGES}/busybox:1.37.0-1`], config: { Cmd: ["sh"] } },
    { names: [`${TEST_IMAGES}/glibc-dns-testing:2.0.0`], layers: [toolFiles], config: { Cmd: ["sh"] } },
    // The pods in which a driver of devices opens its sockets, where the suite needs any.
    { names: [`${REGISTRY}/sig-storage/hostpathplugin:v1.17.1`], config: { Cmd: ["sh"] } },
    { names: [`${REGISTRY}/pause:3.10.2`], config: { Cmd: SLEEP, User: "65535:65535" } },
    {
      names: [`${TEST_IMAGES}/nginx:1.15-4`, `${TEST_IMAGES}/nginx:1.27-0`],
      layers: [
        [
          { type: "folder", path: "www/", mode: 0o755 },
          file("www/index.html", "<html><body><h1>Welcome to nginx!</h1></body></html>\n"),
        ],
      ],
      config: { Cmd: ["httpd", "-f", "-p", "80", "-h", "/www"] },
    },
    { names: [`${TEST_IMAGES}/nonroot:1.5`], config: { Cmd: ["sh"], User: "1234" } },
    {
      names: [`${TEST_IMAGES}/nonewprivs:1.4`],
      layers: [[program("bin/nnp", nonewprivs, 0o6755)]],
      config: { Cmd: ["nnp"] },
    },
    {
      names: [`${TEST_IMAGES}/sample-apiserver:1.29.2`],
      layers: [[program("sample-apiserver", sampleApiServer)]],
      config: { Entrypoint: ["/sample-apiserver"] },
    },
    {
      names: [`${REGISTRY}/etcd:3.6.8-0`],
      layers: [[{ type: "folder", path: "usr/local/bin/", mode: 0o755 }, program("usr/local/bin/etcd", etcd)]],
      config: { Cmd: ["/usr/local/bin/etcd"] },
    },
  ];
}

/** Writes an archive of the suite's images for real nodes. */
export function writeSuiteImages(path: string, busybox: string, programs: SuitePrograms): void {
  writeImages(path, busybox, suiteImages(programs));
}
