import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { FaultProxy } from "../clusters/fault-proxy.ts";
import { writeBusyboxImage } from "../clusters/node/image.ts";
import { staticBusybox } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { mutatingPolicy, newPodsIn } from "../harness/mutating-policy.ts";
import { ROOT } from "../legation/cli.ts";
import { writeLegationImage } from "../legation/image.ts";

/** Names of the clusters, as examples/kind gives them to kind. */
const NAMES = ["host", "west", "east"] as const;
const KIND_PORT = 6443;
// As kubeadm sets them, and so kind.
const ADDRESS_TYPES = "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname";
const IMAGE = "legation:kind";
// Images of the examples: busybox, whose command sleeps.
const OTHER_IMAGES = ["nginx:1.29", "busybox:1.37"].map((name) => `docker.io/library/${name}`);

/** A machine with kind and Docker, as examples/kind finds it. */
export interface Laptop {
  /** Clone of Legation. */
  readonly directory: string;
  /** Environment of a terminal there. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: Cluster;
  readonly west: Cluster;
  readonly east: Cluster;
  /** Calls of kind and docker so far, one a line. */
  calls(): readonly string[];
  stop(): Promise<void>;
}

/**
 * Starts three clusters with real nodes, and puts programs `kind` and `docker` on the path that hand them out. Everything else
 * that a script runs there is real.
 */
export async function startLaptop(): Promise<Laptop> {
  const directory = mkdtempSync(join(tmpdir(), "legation-laptop-"));
  const closing: (() => Promise<void>)[] = [async () => rmSync(directory, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const close of closing.toReversed()) await close();
  };
  try {
    const images = await writeImages(directory);
    const folder = join(directory, "clusters");
    const clusters = await startClusters({
      directory: folder,
      names: NAMES.map((name) => `demo-${name}`),
      clusters: Object.fromEntries(
        NAMES.map((name) => [
          `demo-${name}`,
          {
            realNode: true,
            realNodeName: `demo-${name}-control-plane`,
            images: name === "host" ? images : images.slice(0, 1),
            // Without kube-proxy, the API server finds the webhook's pods by itself.
            ...(name === "host"
              ? {
                  apiServerFlags: ["--enable-aggregator-routing=true", ADDRESS_TYPES],
                  controllerManagerFlags: signingFlags(join(folder, "demo-host", "pki")),
                }
              : {}),
          },
        ]),
      ),
      onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
    });
    closing.push(() => clusters.stop());
    const [host, west, east] = NAMES.map((name) => clusters.get(`demo-${name}`)) as [Cluster, Cluster, Cluster];
    const addresses = new Map<string, string>();
    for (const cluster of [host, west, east]) {
      const address = await kubectl(cluster, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
      const door = new FaultProxy(KIND_PORT, Number(new URL(cluster.server).port), address);
      await door.listen();
      closing.push(() => door.close());
      addresses.set(`${cluster.name}-control-plane`, address);
    }
    await resolveNames(host, addresses);
    const tools = writeTools(directory, { host, west, east });
    for (const name of ["bin", "charts", "docs", "examples", "manifests"])
      symlinkSync(join(ROOT, name), join(directory, name));
    return {
      directory,
      env: { ...process.env, PATH: `${tools}:${process.env.PATH}`, HOME: directory, KUBECONFIG: undefined },
      host,
      west,
      east,
      calls: () => readOr(join(directory, "calls"), "").split("\n").slice(0, -1),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Flags by which the controller manager signs certificates, as kubeadm sets them. */
function signingFlags(pki: string): string[] {
  return [`--cluster-signing-cert-file=${join(pki, "ca.crt")}`, `--cluster-signing-key-file=${join(pki, "ca.key")}`];
}

/** Writes archives of the images that nodes have: those of the examples, and Legation's. */
async function writeImages(directory: string): Promise<string[]> {
  const [examples, legation] = [join(directory, "examples.tar"), join(directory, "legation.tar")];
  writeBusyboxImage(examples, staticBusybox() ?? "", OTHER_IMAGES);
  await writeLegationImage(legation, `docker.io/library/${IMAGE}`);
  return [examples, legation];
}

/** Has Legation's pods find the members' nodes by name, as Docker's name server does. */
async function resolveNames(host: Cluster, addresses: ReadonlyMap<string, string>): Promise<void> {
  // CEL takes values of different types in one map if they are dynamic.
  const aliases = [...addresses].map(([name, ip]) => `{"ip": dyn("${ip}"), "hostnames": dyn(["${name}"])}`);
  const expression = `[JSONPatch{op: "add", path: "/spec/hostAliases", value: [${aliases.join(", ")}]}]`;
  await applyAll(
    host,
    mutatingPolicy("docker-names", {
      matchConstraints: newPodsIn(["legation-system", "legation-access"]),
      mutation: { patchType: "JSONPatch", jsonPatch: { expression } },
    }),
  );
}

/** Writes the programs of the machine, and returns their folder. */
function writeTools(directory: string, clusters: Readonly<Record<(typeof NAMES)[number], Cluster>>): string {
  const tools = join(directory, "tools");
  const given = join(directory, "given");
  for (const folder of [tools, given]) mkdirSync(folder);
  for (const name of NAMES) copyFileSync(clusters[name].kubeconfig, join(given, `demo-${name}`));
  symlinkSync(inject("kubectl"), join(tools, "kubectl"));
  // Refuses all that kind does not know, in the order in which kind needs it.
  const kind = `case "$*" in
"create cluster --name demo-"*" --kubeconfig "*) test ! -e "$6" && mv "${given}/$4" "$6" && touch "${given}/$4.running" ;;
"load docker-image ${IMAGE} --name demo-host") test -e "${given}/built" && test -e "${given}/demo-host.running" ;;
"delete cluster --name demo-"*) rm "${given}/$4.running" ;;
*) echo "kind does not know: $*" >&2; exit 1 ;;
esac`;
  const docker = `case "$*" in
"build -t ${IMAGE} .") test -e examples/kind/up.sh && touch "${given}/built" ;;
*) echo "docker does not know: $*" >&2; exit 1 ;;
esac`;
  for (const [name, text] of Object.entries({ kind, docker })) {
    const log = `echo "${name} $*" >> "${join(directory, "calls")}"`;
    writeFileSync(join(tools, name), `#!/bin/sh\n${log}\n${text}\n`, { mode: 0o755 });
  }
  return tools;
}

function readOr(file: string, otherwise: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : otherwise;
}
