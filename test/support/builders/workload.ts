import type { KubeObject, PodSpec } from "../../../src/api/kubernetes.ts";
import { KWOK_ANNOTATIONS } from "../clusters/stages.ts";

// Manifests as authors write them, all named `web`, without a word of Legation.

/** Annotations by key. */
type Annotations = Readonly<Record<string, string>>;

/** Labels of every workload's pods. */
export const WEB_LABELS: Readonly<Record<string, string>> = { app: "web" };

/** Annotations that end the pod on a kwok node with this exit code. */
export function ends(exitCode: number): Annotations {
  if (exitCode === 0) return { [KWOK_ANNOTATIONS.outcome]: "succeeded" };
  return { [KWOK_ANNOTATIONS.outcome]: "failed", [KWOK_ANNOTATIONS.exitCode]: String(exitCode) };
}

/** Annotations that keep the pod on a kwok node from starting, or from ending, also when a Job owns it. */
export function stays(phase: "pending" | "running"): Annotations {
  return { [KWOK_ANNOTATIONS.outcome]: phase };
}

/** A pod template of one container `main`. */
export function template(spec: Partial<PodSpec> = {}, annotations: Annotations = {}): object {
  const main = { name: "main", image: "main:1", resources: { requests: { cpu: "100m" } } };
  return {
    metadata: { labels: WEB_LABELS, annotations: { "example.com/note": "kept", ...annotations } },
    spec: { containers: [main], ...spec },
  };
}

/**
 * A Job whose pods say what becomes of them: kwok would end pods with a Job for owner by itself, and a delegate has no
 * owner.
 */
export function job(spec: object, annotations: Annotations): KubeObject {
  return workload("batch/v1", "Job", { ...spec, template: template({ restartPolicy: "Never" }, annotations) });
}

/** A CronJob; by default no test lives long enough to see it at work by itself. */
export function cronJob(spec: object, annotations: Annotations, schedule = "0 0 1 1 *"): KubeObject {
  const jobTemplate = { spec: { ...spec, template: template({ restartPolicy: "Never" }, annotations) } };
  return workload("batch/v1", "CronJob", { schedule, jobTemplate });
}

/** A Deployment, ReplicaSet or StatefulSet. */
export function replicated(kind: string, replicas: number, spec: object = {}): KubeObject {
  return workload("apps/v1", kind, { replicas, selector: { matchLabels: WEB_LABELS }, template: template(), ...spec });
}

/** A ReplicationController. */
export function replicationController(replicas: number): KubeObject {
  return workload("v1", "ReplicationController", { replicas, selector: WEB_LABELS, template: template() });
}

/** A pod that no workload owns. */
export function barePod(spec: Partial<PodSpec> = {}, annotations: Annotations = {}): KubeObject {
  const metadata = { name: "web", labels: WEB_LABELS, annotations };
  return { apiVersion: "v1", kind: "Pod", ...template(spec), metadata };
}

function workload(apiVersion: string, kind: string, spec: object): KubeObject & { readonly spec: object } {
  return { apiVersion, kind, metadata: { name: "web", labels: WEB_LABELS }, spec };
}
