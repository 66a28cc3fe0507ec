import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

/** An entry of a tar archive. */
export type TarEntry =
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly data: Buffer }
  | { readonly type: "link"; readonly path: string; readonly target: string }
  | { readonly type: "folder"; readonly path: string; readonly mode: number };

const BLOCK = 512;
const TYPE_FLAGS = { file: "0", link: "2", folder: "5" } as const;

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** A POSIX ustar header; paths are shorter than 100 bytes. */
function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const mode = entry.type === "link" ? 0o777 : entry.mode;
  const size = entry.type === "file" ? entry.data.length : 0;
  block.write(entry.path, 0, 100, "utf8");
  block.write(octal(mode, 8) + octal(0, 8) + octal(0, 8) + octal(size, 12) + octal(0, 12), 100, "latin1");
  // The checksum is taken with spaces in its own place.
  block.write(`        ${TYPE_FLAGS[entry.type]}`, 148, "latin1");
  if (entry.type === "link") block.write(entry.target, 157, 100, "utf8");
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    parts.push(header(entry));
    if (entry.type === "file") parts.push(entry.data, Buffer.alloc((BLOCK - (entry.data.length % BLOCK)) % BLOCK));
  }
  // Two empty blocks end an archive.
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

/** Returns an entry for a file of root's. */
export function file(path: string, data: string | Buffer, mode = 0o644): TarEntry {
  return { type: "file", path, mode, data: typeof data === "string" ? Buffer.from(data) : data };
}

function sha256(data: Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Go's name of this machine's architecture, as image configurations spell it. */
const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;

/** A root file system with busybox and all its commands. */
function busyboxLayer(busybox: string): Buffer {
  const applets = spawnSync(busybox, ["--list"], { encoding: "utf8" })
    .stdout.split("\n")
    .filter((name) => name !== "");
  const folders = ["bin", "etc", "root", "tmp", "var", "usr", "usr/bin"];
  return tar([
    ...folders.map((path): TarEntry => ({ type: "folder", path: `${path}/`, mode: path === "tmp" ? 0o1777 : 0o755 })),
    file("bin/busybox", readFileSync(busybox), 0o755),
    ...applets
      .filter((name) => name !== "busybox")
      .map((name): TarEntry => ({ type: "link", path: `bin/${name}`, target: "/bin/busybox" })),
    { type: "link", path: "usr/bin/env", target: "/bin/busybox" },
    file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"),
    file("etc/group", "root:x:0:\nnobody:x:65534:\n"),
  ]);
}

/** An image on top of busybox. */
export interface Image {
  readonly names: readonly string[];
  /** Files of its own layers, each of which covers those before it. */
  readonly layers?: readonly (readonly TarEntry[])[];
  /** Fields of the OCI image's `config`; `Env` has the path of busybox by default. */
  readonly config: {
    readonly Cmd?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly User?: string;
  };
}

/** Writes an archive that `ctr images import` takes, so that nodes need no registry. */
export function writeImages(path: string, busybox: string, images: readonly Image[]): void {
  const base = busyboxLayer(busybox);
  const blobs = new Map<string, Buffer>();
  const add = (data: Buffer, ending: string): string => {
    const name = `${sha256(data)}.${ending}`;
    blobs.set(name, data);
    return name;
  };
  const manifest = images.map(({ names, layers: own = [], config }) => {
    const layers = [base, ...own.map(tar)];
    const configuration = {
      architecture: ARCHITECTURE,
      os: "linux",
      config: { Env: ["PATH=/bin:/usr/bin:/"], ...config },
      rootfs: { type: "layers", diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) },
      history: layers.map(() => ({ created_by: "test/support/clusters" })),
    };
    return {
      Config: add(Buffer.from(JSON.stringify(configuration)), "json"),
      RepoTags: names,
      Layers: layers.map((layer) => add(layer, "tar")),
    };
  });
  const entries = [...blobs].map(([name, data]) => file(name, data));
  writeFileSync(path, tar([...entries, file("manifest.json", JSON.stringify(manifest))]));
}

/**
 * The command of an image that sleeps until it is told to end: as the first process of a container sh ignores SIGTERM unless it
 * is trapped.
 */
export const SLEEP: readonly string[] = ["sh", "-c", "trap 'exit 0' TERM; sleep 2147483647 & wait"];

/** Writes an archive with one image of busybox under several names, whose command sleeps. */
export function writeBusyboxImage(path: string, busybox: string, names: readonly string[]): void {
  writeImages(path, busybox, [{ names, config: { Cmd: SLEEP } }]);
}
