import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { DELEGATION_LABEL } from "../../../src/api/keys.ts";
import { apiRequest } from "../clusters/api-request.ts";
import { staticBusybox } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster, ClusterOptions, Clusters } from "../clusters/types.ts";
import { mutatingPolicy } from "../harness/mutating-policy.ts";
import { eventually } from "../harness/wait.ts";
import { clusterRoleBinding, createUser } from "../legation/access.ts";
import { ROOT, legation as runLegation } from "../legation/cli.ts";
import { startLegation } from "../legation/start.ts";
import { writeSuiteImages } from "./images.ts";
import { devicesOfMember, type IsOfMember, joinedApi, podsOfMember } from "./joined-api.ts";
import { startKueueOfSuite } from "./kueue.ts";
import type { SuitePrograms } from "./programs.ts";

/**
 * The clusters that the suite runs on: an ordinary one, a host whose pods all run in a member, one whose Jobs do, one whose pods
 * get devices of a member, and a member that is reached through its host. Kueue's suite runs on an ordinary cluster with Kueue, and on
 * a host with Kueue whose pods all run in a member.
 */
export type SideName = PlainSide | ComparedSide;

/** The ordinary clusters. */
type PlainSide = "plain" | "plain-kueue";

/** The sides that are compared with an ordinary cluster. */
export type ComparedSide = HostSide | "door";

/** The sides on which the suite creates its objects on the host. */
type HostSide = "delegated" | "whole" | "devices" | "kueue";

/** The sides, in the order of the report. */
export const SIDES: readonly SideName[] = ["plain", "delegated", "whole", "devices", "door", "plain-kueue", "kueue"];

/** Reports whether the side has Kueue, whose suite runs there. */
export function isOfKueue(side: SideName): boolean {
  return side === "plain-kueue" || side === "kueue";
}

/** Returns the ordinary cluster that a side is compared with. */
export function plainOf(side: SideName): PlainSide {
  return isOfKueue(side) ? "plain-kueue" : "plain";
}

/** Reports whether a side is compared with an ordinary cluster. */
export function isCompared(side: SideName): side is ComparedSide {
  return side !== plainOf(side);
}

/** Reports whether kube-proxy and CoreDNS run on the side's nodes, whose pods reach each other. */
export function hasServiceNetwork(side: SideName): boolean {
  return side === "plain" || side === "delegated";
}

/** A cluster that is ready for the suite. */
export interface Side extends AsyncDisposable {
  readonly name: SideName;
  readonly kubeconfig: string;
  readonly kubectl: string;
}

interface SideOptions {
  readonly programs: SuitePrograms;
  /** A folder for files that go with the clusters. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

// The API server calls pods of a Service directly: no kube-proxy runs beside it that would lead to them.
const FOR_KUBERNETES: ClusterOptions = { apiServerFlags: ["--enable-aggregator-routing"] };
/** The network of host and member, whose pods reach each other. */
const NETWORK = "suite";
// Specs of Kueue request more than small machines have.
const FOR_KUEUE: ClusterOptions = { realNodeCores: 8 };

const ADMISSION = "admissionregistration.k8s.io";
const RBAC = "rbac.authorization.k8s.io";
// Kubernetes' suite labels its namespaces. Kueue's has the API server generate their names.
const OF_THE_SUITE =
  'has(object.metadata.generateName) || has(object.metadata.labels) && "e2e-framework" in object.metadata.labels';
// Labels of the suite's namespaces, as JSON pointers have them. The second is the example's.
const LABELS: Readonly<Record<HostSide, Readonly<Record<string, string>>>> = {
  delegated: { "legation.dev~1delegation": "all" },
  whole: { "legation.dev~1delegation": "annotated", "example.com~1jobs": "whole" },
  devices: { "legation.dev~1delegation": "all" },
  kueue: { "legation.dev~1delegation": "all" },
};
/** Of the sides on which the member answers for a part of the API, that part. */
const OF_MEMBER: Readonly<Partial<Record<HostSide, IsOfMember>>> = { whole: podsOfMember, devices: devicesOfMember };
const ENSURE_LABELS = `(has(object.metadata.labels) ? [] : [JSONPatch{op: "add", path: "/metadata/labels", value: {}}])`;
const DEVICE_TYPES = "resourceclaims.resource.k8s.io,resourceclaimtemplates.resource.k8s.io";
const WHOLE_BY_DEFAULT = join(ROOT, "examples", "whole-by-default", "policy.yaml");

/** Labels the namespaces of the suite as they are made. */
function policyFor(side: HostSide): ReturnType<typeof mutatingPolicy> {
  const operations = Object.entries(LABELS[side]).map(
    ([label, value]) => `JSONPatch{op: "add", path: "/metadata/labels/${label}", value: "${value}"}`,
  );
  return mutatingPolicy("delegate-the-suite", {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["namespaces"] }],
    },
    matchConditions: [{ name: "of-the-suite", expression: OF_THE_SUITE }],
    mutation: { patchType: "JSONPatch", jsonPatch: { expression: `${ENSURE_LABELS} + [${operations.join(", ")}]` } },
  });
}

/** Starts the clusters of one side. */
export async function startSide(name: SideName, options: SideOptions): Promise<Side> {
  const busybox = staticBusybox();
  if (busybox === undefined) throw new Error("The suite's images need a static busybox.");
  const images = join(options.directory, "images.tar");
  writeSuiteImages(images, busybox, options.programs);
  const cluster: ClusterOptions = {
    realNode: true,
    // Host and member share node names: specs name a node of the host, and delegates need one of that name.
    realNodeName: "worker",
    images: [images],
    audit: false,
    ...(isOfKueue(name) ? FOR_KUEUE : FOR_KUBERNETES),
    ...(hasServiceNetwork(name) ? { serviceNetwork: "joined" } : {}),
  };
  if (!isCompared(name)) return startPlain(name, cluster, options);
  return name === "door" ? startDoor(cluster, options) : startDelegating(name, cluster, options);
}

async function nothingToStop(): Promise<void> {}

async function startPlain(
  name: PlainSide,
  cluster: ClusterOptions,
  { directory, onProgress }: SideOptions,
): Promise<Side> {
  const clusters = await startClusters({ names: ["plain"], clusters: { plain: cluster }, onProgress });
  const plain = clusters.get("plain");
  try {
    const stopKueue = isOfKueue(name)
      ? await startKueueOfSuite(plain, { ofNodes: plain, directory, onProgress })
      : nothingToStop;
    return sideOf(name, clusters, plain, () => stopKueue().finally(() => clusters.stop()));
  } catch (error) {
    await clusters.stop();
    throw error;
  }
}

async function startDelegating(
  name: HostSide,
  cluster: ClusterOptions,
  { directory, onProgress }: SideOptions,
): Promise<Side> {
  const clusters = await startClusters({
    names: ["host", "west"],
    clusters: { host: cluster, west: cluster },
    onProgress,
  });
  try {
    const [host, west] = [clusters.get("host"), clusters.get("west")];
    const address = await serviceAddress(host);
    const legation = await startLegation({
      host,
      members: { west },
      proxied: false,
      // Specs ask the kubelet on its usual port through the API server, which proxies to no loopback address.
      controllerFlags: [`--home-api-server=https://${address}`, `--kubelet-listen=${address}:10250`],
      restart: true,
      onProgress,
    });
    if (hasServiceNetwork(name)) {
      await runLegation(["install", `--kubeconfig=${host.kubeconfig}`, `--network=${NETWORK}`]);
      // Controllers read the host's network when they start.
      await legation.controller.stop();
      await legation.controller.start();
    }
    const stopKueue = isOfKueue(name)
      ? await startKueueOfSuite(host, { ofNodes: west, directory, onProgress })
      : nothingToStop;
    if (name === "devices") {
      const flags = [`--kubeconfig=${host.kubeconfig}`, `--types=${DEVICE_TYPES}`];
      await runLegation(["join", "west", `--member-kubeconfig=${west.kubeconfig}`, ...flags]);
      await runLegation(["install", ...flags]);
    }
    const wanted = JSON.stringify({
      // Specs select a pod's node by this label. The host runs no pods of its own that would spread over it.
      metadata: { labels: { "kubernetes.io/hostname": "legation-west" } },
      // The suite makes classes of its own, which the member needs too.
      spec: { classSelector: {}, ...(hasServiceNetwork(name) ? { network: NETWORK } : {}) },
    });
    const onHost = (...args: string[]): void =>
      void execFileSync(clusters.info.kubectl, [`--kubeconfig=${host.kubeconfig}`, ...args]);
    onHost("patch", "clusters.legation.dev", "west", "--type=merge", `--patch=${wanted}`);
    const [policy, binding] = policyFor(name);
    await create(host, ADMISSION, "mutatingadmissionpolicies", policy);
    await create(host, ADMISSION, "mutatingadmissionpolicybindings", binding);
    await inForce(host);
    const stop = (): Promise<void> =>
      stopKueue()
        .finally(() => legation.stop())
        .finally(() => clusters.stop());
    const isOfMember = OF_MEMBER[name];
    if (isOfMember === undefined) return sideOf(name, clusters, host, stop);
    if (name === "whole") onHost("create", "-f", WHOLE_BY_DEFAULT);
    const joined = await joinedApi(host, west, { directory, isOfMember });
    return sideOf(name, clusters, joined, async () => {
      joined.close();
      await stop();
    });
  } catch (error) {
    await clusters.stop();
    throw error;
  }
}

/** Starts a member whose administrator is a user of the host, and asks it through the host alone. */
async function startDoor(cluster: ClusterOptions, { directory, onProgress }: SideOptions): Promise<Side> {
  const clusters = await startClusters({
    names: ["host", "west"],
    clusters: { host: { nodes: [], audit: false }, west: cluster },
    onProgress,
  });
  try {
    const [host, west] = [clusters.get("host"), clusters.get("west")];
    const running = await startLegation({ host, members: { west }, proxied: false, restart: true, onProgress });
    await running.access();
    const onHost = `--kubeconfig=${host.kubeconfig}`;
    await runLegation(["join", "west", onHost, `--member-kubeconfig=${west.kubeconfig}`, "--access"]);
    const alice = await createUser(host, "alice", "developers");
    await create(host, RBAC, "clusterrolebindings", userBinding("legation-access", "alice"));
    await create(west, RBAC, "clusterrolebindings", userBinding("cluster-admin", "legation:alice"));
    const kubeconfig = join(directory, "door.kubeconfig");
    writeFileSync(kubeconfig, await runLegation(["kubeconfig", "west", `--kubeconfig=${alice.kubeconfig}`]), {
      mode: 0o600,
    });
    return sideOf("door", clusters, { kubeconfig }, () => running.stop().finally(() => clusters.stop()));
  } catch (error) {
    await clusters.stop();
    throw error;
  }
}

function userBinding(role: string, name: string): object {
  return clusterRoleBinding("user-of-the-suite", role, { kind: "User", name });
}

function sideOf(
  name: SideName,
  clusters: Clusters,
  { kubeconfig }: Pick<Cluster, "kubeconfig">,
  stop: () => Promise<void>,
): Side {
  return { name, kubeconfig, kubectl: clusters.info.kubectl, [Symbol.asyncDispose]: stop };
}

/** API servers learn of a policy some time after it is made: a namespace that is only tried shows whether they have. */
async function inForce(host: Cluster): Promise<void> {
  const trial = { body: { metadata: { generateName: "trial-" } } };
  await eventually(
    async () =>
      (await apiRequest(host, "POST", "/api/v1/namespaces?dryRun=All", trial)).text.includes(DELEGATION_LABEL),
    { timeoutMs: 60_000, intervalMs: 100, what: "the policy that delegates the suite" },
  );
}

async function serviceAddress(cluster: Cluster): Promise<string> {
  const { text } = await apiRequest(cluster, "GET", "/api/v1/namespaces/default/services/kubernetes");
  const { spec } = z.object({ spec: z.object({ clusterIP: z.string() }) }).parse(JSON.parse(text));
  return spec.clusterIP;
}

async function create(cluster: Cluster, group: string, plural: string, body: object): Promise<void> {
  const path = `/apis/${group}/v1/${plural}`;
  const { status, text } = await apiRequest(cluster, "POST", path, { body });
  if (status !== 201) throw new Error(`${cluster.name}: ${plural}: ${text}`);
}
