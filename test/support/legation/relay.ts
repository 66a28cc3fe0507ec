import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EndpointSlice } from "../../../src/api/kubernetes.ts";
import { RELAY_NAMESPACE, RELAY_SERVICE } from "../../../src/api/relay.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { legation, ROOT } from "./cli.ts";
import { LEGATION_IMAGE } from "./image.ts";
import type { Legation, LegationProcess } from "./start.ts";

/** A `legation relay` outside the cluster, with its own service account. */
export interface RelayReplica {
  readonly process: LegationProcess;
  /** Address of this machine on which it takes connections. */
  readonly address: string;
  readonly healthPort: number;
}

/** Installs what relayed Services need until the end of the file. `addresses`: those of replicas, as slices of a Service name them. */
export async function installRelay(host: Cluster, addresses: readonly string[]): Promise<void> {
  await legation(["install", "--relay", `--kubeconfig=${host.kubeconfig}`]);
  afterFile(async () => {
    await kubectl(host, ["delete", "-k", "manifests/relay", "--ignore-not-found"]);
  });
  const slice: EndpointSlice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: RELAY_SERVICE,
      namespace: RELAY_NAMESPACE,
      labels: { "kubernetes.io/service-name": RELAY_SERVICE },
    },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [],
  };
  await applyAll(host, [slice]);
}

/** Installs what relayed Services need, and runs the relay in pods of the host, which `install` does where Legation runs there itself. */
export async function deployRelay(host: Cluster): Promise<void> {
  await legation(["install", "--relay", `--kubeconfig=${host.kubeconfig}`]);
  const manifest = readFileSync(join(ROOT, "manifests/relay/deployment.yaml"), "utf8");
  const input = manifest.replace(/image: \S+/, `image: ${LEGATION_IMAGE}`);
  await kubectl(host, ["apply", "-f", "-"], { input });
}

/** Makes a replica, which is not started yet. */
export async function relayReplica(
  running: Legation,
  address: string,
  args: readonly string[] = [],
): Promise<RelayReplica> {
  const healthPort = await freePort();
  const flags = [`--listen-address=${address}`, `--health-listen=127.0.0.1:${healthPort}`, ...args];
  return { process: await running.another("relay", flags), address, healthPort };
}
