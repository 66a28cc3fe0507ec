import { SAFE_TO_EVICT_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { podsOf } from "./pods-of.ts";
import { WORKLOADS, type Workload } from "./workloads.ts";

/** The contents of a namespace. */
export interface NamespaceState {
  readonly namespace: string;
  readonly workloads: readonly Stored<Workload>[];
  readonly pods: readonly Stored<Pod>[];
}

/** Reads all workloads and pods of a namespace. */
export async function readState(client: ClusterClient, namespace: string): Promise<NamespaceState> {
  const lists = WORKLOADS.map(async (resource) => {
    const { items } = await client.list(resource, { namespace, limit: 500 });
    // Lists leave the kind of their items out.
    return items.map((item) => ({ ...item, kind: resource.kind }));
  });
  const [workloads, pods] = await Promise.all([Promise.all(lists), podsOf(client, namespace)]);
  return { namespace, workloads: workloads.flat(), pods };
}

// The CronJob controller writes the scheduled time on each Job, and its minute into the Job's name.
const SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/** Fields that differ between any two runs of a manifest: only their presence is compared. */
const RUN_FIELDS: ReadonlySet<string> = new Set([
  // Identity of objects.
  "uid",
  "resourceVersion",
  "controller-uid",
  "batch.kubernetes.io/controller-uid",
  // Moments.
  "creationTimestamp",
  "deletionTimestamp",
  "startTime",
  "completionTime",
  "startedAt",
  "finishedAt",
  "lastTransitionTime",
  "lastUpdateTime",
  "lastProbeTime",
  "lastScheduleTime",
  "lastSuccessfulTime",
  SCHEDULED_ANNOTATION,
  // The cluster and namespace of a pod.
  "nodeName",
  "containerID",
  "hostIP",
  "podIP",
  "ip",
]);

/** Written by the API server about who wrote what. */
const WRITER_FIELD = "managedFields";

/** Prefix of labels, annotations, finalizers and condition types that are Legation's own. */
const LEGATION = "legation.dev/";

/** Fields that a kubelet reports only if it has read the pod's cgroup (version 1) in time. */
const UNLIMITED = JSON.stringify({ limits: { memory: "9007199254740988Ki" } });

/** Lists whose order means nothing. */
const UNORDERED: ReadonlySet<string> = new Set(["conditions", "finalizers"]);

// The suffix that the API server appends to a generateName (k8s.io/apiserver/pkg/storage/names).
const GENERATED = /^[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/**
 * Returns the state to compare between clusters: run-specific values replaced by field names, generated names by
 * their bases, without Legation's marks.
 */
export function comparable(state: NamespaceState): object {
  const normal = normaliser(state);
  return {
    workloads: state.workloads.map((workload) => normal(workload)).sort(byText),
    pods: state.pods.map((pod) => normal(withoutScheduler(pod))).sort(byText),
  };
}

/** Returns the parts of pods that must reach their member: everything that author and workload wrote. */
export function comparableTasks(state: NamespaceState): object[] {
  const normal = normaliser(state);
  return state.pods
    .map(({ metadata: { name, generateName, labels, annotations }, spec }) =>
      normal({ metadata: { name, generateName, labels, annotations }, spec }),
    )
    .sort(byText);
}

function withoutScheduler({ spec, ...pod }: Stored<Pod>): object {
  const { schedulerName: _, ...rest } = spec ?? {};
  return { ...pod, spec: rest };
}

function normaliser({ namespace, workloads, pods }: NamespaceState): (object: object) => object {
  const words = new Map([[namespace, "<namespace>"]]);
  for (const { metadata } of [...workloads, ...pods] satisfies Stored<KubeObject>[]) {
    const { name, generateName } = metadata;
    if (generateName === undefined || !name.startsWith(generateName)) continue;
    if (GENERATED.test(name.slice(generateName.length))) words.set(name, `${generateName}<generated>`);
  }
  for (const { name } of pods.flatMap(({ spec }) => spec?.volumes ?? [])) {
    if (name.startsWith("kube-api-access-")) words.set(name, "kube-api-access-<generated>");
  }
  // After the pods, whose names begin with theirs.
  for (const { metadata } of workloads) {
    if (metadata.annotations?.[SCHEDULED_ANNOTATION] === undefined) continue;
    words.set(metadata.name, metadata.name.replace(/\d+$/, "<scheduled>"));
  }
  return (object) => normalObject(object, words);
}

function normalObject(object: object, words: ReadonlyMap<string, string>): object {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object).sort()) {
    if (key === WRITER_FIELD || key.startsWith(LEGATION) || key === SAFE_TO_EVICT_ANNOTATION) continue;
    const next = RUN_FIELDS.has(key) ? `<${key}>` : normalValue(key, value, words);
    if (next !== undefined) result[key] = next;
  }
  return result;
}

function normalValue(key: string, value: unknown, words: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return normalText(value, words);
  if (Array.isArray(value)) {
    const items = value.filter((item) => !isLegations(item)).map((item) => normalValue("", item, words));
    // A list that holds nothing but Legation's is not there without it.
    if (items.length === 0 && value.length > 0) return undefined;
    return UNORDERED.has(key) ? items.sort(byText) : items;
  }
  if (typeof value !== "object" || value === null) return value;
  if (key === "resources" && JSON.stringify(value) === UNLIMITED) return {};
  const normal = normalObject(value, words);
  return Object.keys(normal).length === 0 && Object.keys(value).length > 0 ? undefined : normal;
}

function isLegations(item: unknown): boolean {
  if (typeof item === "string") return item.startsWith(LEGATION);
  return typeof item === "object" && item !== null && "type" in item && String(item.type).startsWith(LEGATION);
}

function normalText(text: string, words: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [word, replacement] of words) result = result.replaceAll(word, replacement);
  return result;
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
