import type { Cluster, ClusterStatus } from "../../../../src/api/cluster.ts";
import { type DelegationMode, delegationModeOf } from "../../../../src/api/delegation-mode.ts";
import type { KubeNode, Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { type Answer, admitPod } from "../../../../src/cli/plan/admission.ts";
import { type PlannedNamespaces, planNamespaces } from "../../../../src/cli/plan/namespaces.ts";
import type { Plan } from "../../../../src/cli/plan/outcome.ts";
import { planOf } from "../../../../src/cli/plan/plan.ts";
import type { ManifestState } from "../../../../src/cli/plan/read-host.ts";
import type { HostState } from "../../../../src/cli/plan/simulation.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";

/** What a built member has in place of the defaults: one kind of two nodes with 8 cores each. */
export interface MemberParts {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Partial<Cluster["spec"]>;
  readonly status?: Partial<ClusterStatus>;
  readonly node?: KubeNode["spec"];
}

const AT = "2026-01-01T00:00:00Z";

function cluster(name: string, { labels = {}, spec, status }: MemberParts): Stored<Cluster> {
  const allocatable = { cpu: "8", memory: "32Gi", pods: "110" };
  return {
    metadata: { name, labels: { ...labels }, uid: `uid-of-${name}`, resourceVersion: "1" },
    spec: { credentialsSecret: { name: `member-${name}` }, ...spec },
    status: {
      nodes: 2,
      allocatable: { cpu: "16", memory: "64Gi", pods: "220" },
      largestNode: allocatable,
      nodeKinds: [{ count: 2, labels: { disk: "ssd" }, allocatable }],
      unlistedNodeLabels: ["kubernetes.io/hostname"],
      requestedByOthers: {},
      conditions: [
        { type: "Ready", status: "True", reason: "R", message: "its API server answers", lastTransitionTime: AT },
      ],
      ...status,
    },
  };
}

function virtualNode(name: string, spec: KubeNode["spec"] = {}): Stored<KubeNode> {
  return {
    metadata: { name: `legation-${name}`, uid: `node-${name}`, resourceVersion: "1" },
    spec,
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
}

/** A namespace of the host; opted in as `annotated` unless its labels say otherwise. */
export function namespace(name: string, parts: Partial<Namespace["metadata"]> = {}): Stored<Namespace> {
  const metadata = { labels: { "legation.dev/delegation": "annotated" }, ...parts };
  return { metadata: { ...metadata, name, uid: `uid-of-${name}`, resourceVersion: "1" } };
}

/** A host with these members, and the opted-in namespace `team`. */
export function host(
  members: Readonly<Record<string, MemberParts>>,
  rest: Partial<HostState> & { readonly proxies?: readonly Stored<Pod>[] } = {},
): HostState {
  return {
    clusters: Object.entries(members).map(([name, parts]) => cluster(name, parts)),
    nodes: Object.entries(members).map(([name, { node }]) => virtualNode(name, node)),
    proxies: [],
    namespaces: [namespace("team")],
    defaults: [],
    ...rest,
  };
}

/** A Deployment `web` that asks for delegation. */
export function deployment(
  replicas: number,
  annotations: Readonly<Record<string, string>> = {},
  podSpec: object = {},
): WrittenObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: { "legation.dev/delegate": "true", ...annotations } },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "web:1", resources: { requests: { cpu: "1" } } }], ...podSpec },
      },
    },
  };
}

/** The answers that a plan meets beside the host's state. */
export interface PlanParts {
  readonly found?: Partial<ManifestState>;
  readonly namespaces?: PlannedNamespaces;
  /** The API server's answer; default: it runs no admission but Legation's webhook. */
  readonly answer?: (pod: Pod, mode: DelegationMode) => Answer<Stored<Pod>> | Promise<Answer<Stored<Pod>>>;
  readonly now?: number;
}

/** The plan for objects in namespace `team`. */
export function planWith(
  state: HostState,
  objects: readonly WrittenObject[],
  { found, answer = webhookAlone, now = Date.parse("2026-01-02T00:00:00Z"), ...parts }: PlanParts = {},
): Promise<Plan> {
  const untouched = { namespaces: state.namespaces, refused: new Map(), changed: new Set<string>(), notChecked: [] };
  const namespaces = parts.namespaces ?? untouched;
  const modes = new Map(
    namespaces.namespaces.map(({ metadata }) => [metadata.name, delegationModeOf(metadata.labels)]),
  );
  return planOf({
    objects,
    host: state,
    namespaces,
    found: {
      existing: [],
      hostPods: [],
      claims: state.claims ?? new Map(),
      quotas: [],
      missing: new Set<never>(),
      coming: new Set<never>(),
      notChecked: [],
      ...found,
    },
    current: "team",
    now,
    ask: async (pod) => answer(pod, modes.get(pod.metadata?.namespace ?? "") ?? "annotated"),
  });
}

/** The plan for objects in namespace `team` on an API server that runs no admission but Legation's webhook. */
export function plan(state: HostState, ...objects: readonly WrittenObject[]): Promise<Plan> {
  return planWith(state, objects);
}

/** The plan for objects with namespaces among them, about which the API server is asked. */
export async function planWithNamespaces(
  state: HostState,
  objects: readonly WrittenObject[],
  ask: Parameters<typeof planNamespaces>[2] = async (object) => ({ is: "admitted", object }),
): Promise<Plan> {
  return planWith(state, objects, { namespaces: await planNamespaces(state.namespaces, objects, ask) });
}

/** The answer of an API server that runs no admission but Legation's webhook. */
export function webhookAlone(pod: Pod, mode: DelegationMode): Answer<Stored<Pod>> {
  const metadata = { ...pod.metadata, name: pod.metadata?.name ?? "made-up", uid: "dry-run", resourceVersion: "" };
  const admitted = admitPod({ ...pod, metadata }, mode);
  return admitted.denied === undefined
    ? { is: "admitted", object: admitted.object }
    : { is: "refused", message: admitted.denied, ofQuota: false };
}

/** Pods by member of a plan's first workload. */
export function division({ workloads }: Plan): Record<string, number> {
  return Object.fromEntries((workloads[0]?.clusters ?? []).map(({ cluster: name, pods }) => [name, pods]));
}

/** Why a member has not more of the first workload's pods. */
export function whyNot({ workloads }: Plan, name: string): string[] {
  return (workloads[0]?.clusters ?? [])
    .filter(({ cluster: one }) => one === name)
    .flatMap(({ whyNot: reasons }) => reasons.map(({ message }) => message));
}
