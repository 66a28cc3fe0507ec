import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_NODE_ANNOTATION } from "../../api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { type Amounts, parseAmounts } from "../../api/quantity.ts";
import { controllerOf, isBound, isDeleting } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type CountedPod, type MemberUse, memberStatus, ofMembers } from "../explain/host.ts";
import { kubectlStatus } from "../explain/pod-status.ts";
import { problemOf } from "../explain/trouble.ts";
import { whyWithoutMember } from "../explain/waiting.ts";
import type { MemberRow, PodRow, ResourceUse } from "./model.ts";

/** Returns a proxy's row of the table. `shared`: returns one copy of equal texts. */
export function podRow(pod: Stored<Pod>, shared: (text: string) => string = (text) => text): PodRow {
  const { uid, namespace = "", name, creationTimestamp = "", annotations = {} } = pod.metadata;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const containers = pod.spec?.containers ?? [];
  const status = kubectlStatus(pod);
  const optional = (text: string | undefined): string | undefined => (text === undefined ? undefined : shared(text));
  return {
    uid,
    namespace: shared(namespace),
    name,
    status: shared(status),
    state: stateOf(pod, status),
    ready: shared(`${containerStatuses.filter(({ ready }) => ready).length}/${containers.length}`),
    restarts: [...initContainerStatuses, ...containerStatuses].reduce((sum, { restartCount }) => sum + restartCount, 0),
    member: optional(memberOf(pod)),
    node: optional(annotations[MEMBER_NODE_ANNOTATION]),
    workload: optional(workloadOf(pod)),
    created: shared(creationTimestamp),
    why: optional(whyWithoutMember(pod)?.message ?? problemOf(pod)),
  };
}

function stateOf(pod: Stored<Pod>, status: string): PodRow["state"] {
  const { phase } = pod.status ?? {};
  if (phase === "Failed") return "failed";
  if (phase === "Succeeded") return "succeeded";
  if (isDeleting(pod)) return "ending";
  if (!isBound(pod)) return "waiting";
  if (status === "Running") return "running";
  return FAILING.test(status) ? "failed" : "starting";
}

// Reasons of containers that do not start by themselves.
const FAILING = /BackOff|Err|Error|Invalid|OOMKilled|ContainerCannotRun/;

/** Returns the workload that authors know: a Deployment for the pods of its ReplicaSets. */
function workloadOf(pod: Stored<Pod>): string | undefined {
  const owner = controllerOf(pod);
  if (owner === undefined) return undefined;
  const suffix = `-${pod.metadata.labels?.["pod-template-hash"]}`;
  const isOfDeployment = owner.kind === "ReplicaSet" && owner.name.endsWith(suffix);
  return isOfDeployment ? `Deployment/${owner.name.slice(0, -suffix.length)}` : `${owner.kind}/${owner.name}`;
}

/** Returns the members' rows, in the order of their names. */
export function memberRows(
  clusters: readonly Stored<Cluster>[],
  nodes: readonly Stored<KubeNode>[],
  proxies: Iterable<CountedPod>,
): MemberRow[] {
  return ofMembers({ clusters, nodes }, proxies, memberRow);
}

function memberRow(cluster: Stored<Cluster>, use: MemberUse, node: Stored<KubeNode> | undefined): MemberRow {
  const { metadata, spec, status = {} } = cluster;
  return {
    ...memberStatus(cluster, use, node),
    since: status.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime,
    server: status.server,
    isCordoned: node?.spec?.unschedulable === true,
    labels: metadata.labels ?? {},
    taints: (spec.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`),
    use: resourcesOf(cluster, use.requests),
  };
}

// Shown first; extended resources such as nvidia.com/gpu follow.
const FIRST = ["cpu", "memory", "pods"];

function resourcesOf({ status = {} }: Stored<Cluster>, ours: Amounts): ResourceUse[] {
  const allocatable = parseAmounts(status.allocatable);
  const others = parseAmounts(status.requestedByOthers);
  const extended = Object.keys(allocatable).filter((resource) => resource.includes("/") && allocatable[resource] !== 0);
  return [...FIRST, ...extended.sort()]
    .filter((resource) => allocatable[resource] !== undefined)
    .map((resource) => ({
      resource,
      allocatable: allocatable[resource] ?? 0,
      ours: ours[resource] ?? 0,
      others: others[resource] ?? 0,
    }));
}
