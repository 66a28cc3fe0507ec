import { DELEGATE_ANNOTATION, GROUP } from "../../src/api/keys.ts";
import type { KubeObject, ObjectMeta } from "../../src/api/kubernetes.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";

/** The name of a pod, and of an object of each kind, whose name is used again and again: copies may follow each other closely. */
export const REUSED_NAME = "again";
/** Objects of others in the members' namespaces, which Legation must not touch. */
export const FOREIGN_NAME = "foreign";
/** Label on the nodes of the members that the host has no node of: pods that ask for it overflow. */
export const MEMBERS_POOL = "chaos.test/members-only";
/** Storage class of volumes that only members have. */
export const MEMBERS_CLASS = "members-only";

/** Optional parts of a chaos run's objects. */
export interface Parts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

const containers = [{ name: "main", image: "main:1" }];
const asks = { [DELEGATE_ANNOTATION]: "true" };

/** A pod that is delegated, and stops soon after it is told to. */
export function pod(name: string, { annotations = {}, spec = {} }: Parts = {}): KubeObject {
  const made = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, annotations: { ...asks, ...annotations } },
    spec: { containers, ...spec },
  };
  return made;
}

/** A Job of pods that succeed after a second. */
export function job(name: string, completions: number): KubeObject {
  const outcome = { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "1s" };
  const template = { metadata: { annotations: outcome }, spec: { containers, restartPolicy: "Never" } };
  return workload("batch/v1", "Job", name, { completions, parallelism: completions, backoffLimit: 100, template });
}

/** A Deployment, whose pods have the label `app` with its name. */
export function deployment(
  name: string,
  replicas: number,
  parts: Parts & { readonly asked?: Readonly<Record<string, string>> },
): KubeObject {
  return workload("apps/v1", "Deployment", name, replicated(name, replicas, parts), parts.asked);
}

/** A StatefulSet without a Service of its own: its pods have each other's names again and again. */
export function statefulSet(name: string, replicas: number, parts: Parts): KubeObject {
  const spec = { ...replicated(name, replicas, parts), serviceName: name, podManagementPolicy: "Parallel" };
  return workload("apps/v1", "StatefulSet", name, spec);
}

function replicated(name: string, replicas: number, { annotations = {}, spec = {} }: Parts): object {
  const labels = { app: name };
  const template = { metadata: { labels, annotations }, spec: { containers, ...spec } };
  return { replicas, selector: { matchLabels: labels }, template };
}

function workload(
  apiVersion: string,
  kind: string,
  name: string,
  spec: object,
  annotations: Readonly<Record<string, string>> = asks,
): KubeObject {
  const object = { apiVersion, kind, metadata: { name, annotations }, spec };
  return object;
}

/** Volumes and mounts of a pod that reads a ConfigMap and a Secret. */
export function reads(configMap: string, secret: string): { readonly volumes: readonly object[] } {
  return {
    volumes: [
      { name: "config", configMap: { name: configMap } },
      { name: "secret", secret: { secretName: secret } },
    ],
  };
}

/** Returns the metadata of an object as an export has it, under another name: annotations, finalizers, and Legation's own labels. */
export function marksOf({ labels = {}, annotations = {}, finalizers = [] }: ObjectMeta, name: string): ObjectMeta {
  const own = Object.entries(labels).filter(([key]) => key.startsWith(`${GROUP}/`));
  return { name, labels: Object.fromEntries(own), annotations, finalizers };
}
