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
import { z } from "zod";
import { FaultProxy, type Upstream } from "../clusters/fault-proxy.ts";
import { writeBusyboxImage } from "../clusters/node/image.ts";
import { staticBusybox } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { aliasHosts, apiAddress } from "../harness/host-aliases.ts";
import { kubectl } from "../harness/kubectl.ts";
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
  /** Opens the node ports of one of Legation's Services on the host's node, as kube-proxy does. */
  openNodePorts(service: string): Promise<void>;
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
            images: name === "west" ? images.slice(0, 1) : images,
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
      const address = await apiAddress(cluster);
      const door = new FaultProxy(KIND_PORT, Number(new URL(cluster.server).port), address);
      await door.listen();
      closing.push(() => door.close());
      addresses.set(`${cluster.name}-control-plane`, address);
    }
    // As Docker's name server does for kind's nodes.
    for (const cluster of [host, west, east])
      await aliasHosts(cluster, "docker-names", ["legation-system", "legation-access"], addresses);
    const tools = writeTools(directory, { host, west, east });
    for (const name of ["bin", "charts", "docs", "examples", "manifests"])
      symlinkSync(join(ROOT, name), join(directory, name));
    return {
      directory,
      env: { ...process.env, PATH: `${tools}:${process.env.PATH}`, HOME: directory, KUBECONFIG: undefined },
      host,
      west,
      east,
      openNodePorts: async (service) => {
        const address = addresses.get(`${host.name}-control-plane`);
        for (const { nodePort } of (await read(serviceShape, host, "service", service)).spec.ports) {
          const door = new FaultProxy(nodePort, () => endpointOf(host, service), address);
          await door.listen();
          closing.push(() => door.close());
        }
      },
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

const serviceShape = z.object({ spec: z.object({ ports: z.array(z.object({ nodePort: z.number() })) }) });
const sliceShape = z.object({
  endpoints: z.array(z.object({ addresses: z.array(z.string()).min(1) })),
  ports: z.array(z.object({ port: z.number() })),
});

async function read<T>(shape: z.ZodType<T>, host: Cluster, kind: string, name: string): Promise<T> {
  return shape.parse(JSON.parse(await kubectl(host, ["-n", "legation-system", "get", kind, name, "-o", "json"])));
}

/** Returns the only endpoint of a Service with one port, if there is one yet. */
async function endpointOf(host: Cluster, service: string): Promise<Upstream | undefined> {
  const slice = await read(sliceShape, host, "endpointslice", service).catch(() => undefined);
  const [address] = slice?.endpoints[0]?.addresses ?? [];
  const [port] = slice?.ports ?? [];
  return address === undefined || port === undefined ? undefined : { host: address, ...port };
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
"load docker-image ${IMAGE} --name demo-"*) test -e "${given}/built" && test -e "${given}/$5.running" ;;
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
