import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EndpointSlice } from "../../../src/api/kubernetes.ts";
import { MEMBER_RELAY_NAMESPACE, RELAY_NAMESPACE, RELAY_SERVICE } from "../../../src/api/relay.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { type GivenFile, giveFiles } from "../engines/given-files.ts";
import { afterFile } from "../harness/after-file.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { legation, ROOT } from "./cli.ts";
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

/** Files of the machine that a relay in a pod needs, since nodes have no image of it. */
const RELAY_FILES: readonly GivenFile[] = ["/usr", "/lib", "/lib64", ROOT].map((path) => ({ from: path, to: path }));

/** Applies a manifest of a relay to the host; its pods run the relay where they are given its files. */
async function applyRelay(host: Cluster, file: string): Promise<void> {
  const command = JSON.stringify([process.execPath, join(ROOT, "src/cli/main.ts")]);
  const image = `image: localhost/busybox:1\n          command: ${command}`;
  const input = readFileSync(join(ROOT, file), "utf8").replace(/image: \S+/, image);
  await kubectl(host, ["apply", "-f", "-"], { input });
}

/** Deploys the relay on the host, as `install` does where webhook and controller run there, too. */
export async function deployRelay(host: Cluster): Promise<void> {
  await legation(["install", "--relay", `--kubeconfig=${host.kubeconfig}`]);
  await applyRelay(host, "manifests/relay/deployment.yaml");
}

/** Runs the relay in pods of a host with a real node until the end of the file. */
export async function runRelay(host: Cluster): Promise<void> {
  await giveFiles(host, RELAY_NAMESPACE, RELAY_FILES);
  await deployRelay(host);
  // The relay's own profile has no files of the node.
  const privileged = "pod-security.kubernetes.io/enforce=privileged";
  await kubectl(host, ["label", "namespace", RELAY_NAMESPACE, privileged, "--overwrite"]);
  await kubectl(host, ["-n", RELAY_NAMESPACE, "rollout", "restart", "deployment/legation-relay"]);
  await rolledOut(host, RELAY_NAMESPACE, "legation-relay");
}

/** Runs a relay in a member with a real node until the end of the file. */
export async function runMemberRelay(host: Cluster, member: Cluster): Promise<void> {
  await giveFiles(member, MEMBER_RELAY_NAMESPACE, RELAY_FILES);
  // A namespace's deletion waits for half of its pods' grace period of five minutes, though they end sooner.
  afterFile(async () => {
    await kubectl(host, ["-n", MEMBER_RELAY_NAMESPACE, "delete", "deployments", "--all", "--cascade=foreground"]);
  });
  for (const file of ["manifests/relay/members.yaml", "examples/relay/in-member.yaml"]) await applyRelay(host, file);
  await rolledOut(host, MEMBER_RELAY_NAMESPACE, "west");
}

async function rolledOut(host: Cluster, namespace: string, name: string): Promise<void> {
  const args = ["-n", namespace, "rollout", "status", `deployment/${name}`, "--timeout=180s"];
  await kubectl(host, args, { timeoutMs: 190_000 });
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
