import { DELEGATE_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, Pod, PodSpec, Toleration } from "../../../src/api/kubernetes.ts";

/** Settings of a scenario's object. */
export interface Parts {
  /** Beside `legation.dev/delegate`, which is "true" unless written here. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Partial<PodSpec>;
  /** Does not ask for delegation by `legation.dev/delegate`. */
  readonly silent?: true;
  /** Resource requests of the only container. */
  readonly requests?: Readonly<Record<string, string>>;
}

/** The label by which an object's pods are found. */
export const OBJECT_LABEL = "scenario-object";

/** Toleration of the gold member's Cluster taint. */
export const GOLD: Toleration = { key: "team", operator: "Equal", value: "gold", effect: "NoSchedule" };
/** Toleration of its GPU nodes' taint. */
export const GPU: Toleration = { key: "gpu", operator: "Exists" };
/** Toleration of the spot member's Cluster taint. */
export const SPOT: Toleration = { key: "spot", operator: "Exists" };

function specOf({ requests, spec }: Parts): PodSpec {
  // Extended resources may not be overcommitted: their limit is their request.
  const extended = Object.entries(requests ?? {}).filter(([resource]) => resource.includes("/"));
  const resources = {
    ...(requests === undefined ? {} : { requests }),
    ...(extended.length === 0 ? {} : { limits: Object.fromEntries(extended) }),
  };
  // Saves a write per pod for its token.
  return { automountServiceAccountToken: false, containers: [{ name: "main", image: "main:1", resources }], ...spec };
}

function annotationsOf({ annotations, silent }: Parts): Record<string, string> {
  return { ...(silent ? {} : { [DELEGATE_ANNOTATION]: "true" }), ...annotations };
}

/** A bare pod. */
export function pod(name: string, parts: Parts = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { [OBJECT_LABEL]: name, ...parts.labels }, annotations: annotationsOf(parts) },
    spec: specOf(parts),
  };
}

/** A workload with a pod template, as its author writes it. */
export interface Workload extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly parallelism?: number;
    readonly template: { readonly metadata: NonNullable<Pod["metadata"]>; readonly spec: PodSpec };
  };
}

/** Reports whether the object makes pods of a template. */
export function isWorkload(object: Pod | Workload): object is Workload {
  return object.kind !== "Pod";
}

/** A Deployment, or a StatefulSet, of so many replicas. */
export function replicated(
  name: string,
  replicas: number,
  parts: Parts = {},
  kind: "Deployment" | "StatefulSet" = "Deployment",
): Workload {
  const labels = { [OBJECT_LABEL]: name, ...parts.labels };
  const spec = {
    replicas,
    selector: { matchLabels: { [OBJECT_LABEL]: name } },
    template: { metadata: { labels }, spec: specOf(parts) },
    ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: "Parallel" } : {}),
  };
  return { apiVersion: "apps/v1", kind, metadata: { name, annotations: annotationsOf(parts) }, spec };
}

/** A Job that runs so many pods at once. */
export function job(name: string, parallelism: number, parts: Parts = {}): Workload {
  const labels = { [OBJECT_LABEL]: name, ...parts.labels };
  const spec = {
    parallelism,
    completions: parallelism,
    template: { metadata: { labels }, spec: { restartPolicy: "Never", ...specOf(parts) } },
  };
  return { apiVersion: "batch/v1", kind: "Job", metadata: { name, annotations: annotationsOf(parts) }, spec };
}
