import { byName } from "../../api/json.ts";
import type { WrittenObject } from "../shared/documents.ts";

/**
 * How Legation treats the objects of a kind:
 * - `pods`: it makes pods, or is one, and its pods are delegated
 * - `job`: it runs whole, or makes Jobs that do
 * - `whole`: members get the object itself
 * - `host`: it stays on the host without annotations
 * - `nowhere`: neither it nor its pods can go to a member
 */
export type Treatment = "pods" | "job" | "whole" | "host" | "nowhere";

interface Kind {
  readonly apiVersion: string;
  readonly treatment: Treatment;
  /** Why it does not go to members as it did, for people. */
  readonly why: string;
}

function kind(apiVersion: string, treatment: Treatment, why = ""): Kind {
  return { apiVersion, treatment, why };
}

/** Kubernetes' own kinds, as KubeFed federates them without their apiVersion. Any other kind is `whole`. */
const KINDS: Readonly<Record<string, Kind>> = byName({
  Pod: kind("v1", "pods"),
  ReplicationController: kind("v1", "pods"),
  Deployment: kind("apps/v1", "pods"),
  ReplicaSet: kind("apps/v1", "pods"),
  StatefulSet: kind("apps/v1", "pods"),
  DaemonSet: kind("apps/v1", "nowhere", "a DaemonSet belongs to the nodes of its own cluster; apply it in each member"),
  Job: kind("batch/v1", "job"),
  CronJob: kind("batch/v1", "job"),
  ConfigMap: kind("v1", "whole"),
  Secret: kind("v1", "whole"),
  Service: kind(
    "v1",
    "host",
    "it has endpoints on the host, and is copied to the members of the pods that it selects, as ClusterIP; for node ports " +
      'or a load balancer there annotate it legation.dev/whole: "true"',
  ),
  ServiceAccount: kind("v1", "host", "it is copied to the members of the pods that name it"),
  PersistentVolumeClaim: kind("v1", "host", "its data is made in the member of its first pod"),
  NetworkPolicy: kind("networking.k8s.io/v1", "host", "it is copied to the members of its namespace's pods"),
  Namespace: kind("v1", "host", "members get it with the first object in it"),
  Ingress: kind("networking.k8s.io/v1", "host", "it routes to the host's Service, whose endpoints are pods in members"),
  HorizontalPodAutoscaler: kind("autoscaling/v2", "host", "it scales the one workload on the host"),
  PodDisruptionBudget: kind("policy/v1", "host", "it counts the pods on the host, which stand for those in members"),
  LimitRange: kind("v1", "host", "it judges pods when they are created on the host"),
  ResourceQuota: kind("v1", "host", "it counts the pods on the host; one quota bounds all members together"),
  Role: kind("rbac.authorization.k8s.io/v1", "whole"),
  RoleBinding: kind("rbac.authorization.k8s.io/v1", "whole"),
  ClusterRole: kind("rbac.authorization.k8s.io/v1", "whole"),
  ClusterRoleBinding: kind("rbac.authorization.k8s.io/v1", "whole"),
});

export function apiVersionOfKind(kind: string): string | undefined {
  return KINDS[kind]?.apiVersion;
}

export function treatmentOf({ apiVersion, kind }: WrittenObject): Omit<Kind, "apiVersion"> {
  const known = KINDS[kind];
  const [group] = apiVersion.split("/");
  // Workloads and Ingresses of `extensions`, which no API server serves any more.
  const isOwn = known?.apiVersion.split("/")[0] === group || group === "extensions";
  return known !== undefined && isOwn ? known : { treatment: "whole", why: "" };
}

/** Fields with numbers of pods, which a division shares out. */
export const COUNTS: Readonly<Record<Treatment, readonly string[]>> = {
  pods: ["replicas"],
  job: ["parallelism", "completions"],
  whole: [],
  host: [],
  nowhere: [],
};

/** Returns the path of the object that Legation's annotations are for: the Job template of a CronJob, or the object itself. */
export function annotatedPath({ kind }: WrittenObject): readonly string[] {
  return kind === "CronJob" ? ["spec", "jobTemplate"] : [];
}

/** Returns the path of the spec with an object's numbers of pods. */
export function specPath(object: WrittenObject): readonly string[] {
  return [...annotatedPath(object), "spec"];
}

/** Returns the path of an object's pod template; a Pod is one itself. */
export function templatePath(object: WrittenObject): readonly string[] {
  return object.kind === "Pod" ? [] : [...specPath(object), "template"];
}
