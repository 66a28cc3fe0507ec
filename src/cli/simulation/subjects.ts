import type { WorkloadKind } from "./workloads.ts";

/** A kind that `legation status` shows by itself. A DaemonSet belongs to the host's own nodes, and has no division. */
type Subject = Exclude<WorkloadKind, "DaemonSet"> | "Service";

/** Names by which kubectl knows the objects that `legation status` shows, by kind. The first is the one that help shows. */
const NAMES: readonly (readonly [Subject, readonly [string, ...string[]]])[] = [
  ["Pod", ["pod", "pods", "po"]],
  ["Deployment", ["deployment", "deployments", "deploy"]],
  ["ReplicaSet", ["replicaset", "replicasets", "rs"]],
  ["StatefulSet", ["statefulset", "statefulsets", "sts"]],
  ["ReplicationController", ["replicationcontroller", "replicationcontrollers", "rc"]],
  ["Job", ["job", "jobs"]],
  ["CronJob", ["cronjob", "cronjobs", "cj"]],
  ["Service", ["service", "services", "svc"]],
];

/** The kinds' names in help, messages and completion. */
export const SUBJECT_NAMES: readonly string[] = NAMES.map(([, [name]]) => name);

/** Returns the kind of a name as a user writes it. Undefined for any other word. */
export function subjectOf(word: string): Subject | undefined {
  return NAMES.find(([, names]) => names.includes(word.toLowerCase()))?.[0];
}
