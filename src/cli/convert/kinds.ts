/**
 * How Legation treats the objects of a kind:
 * - `pods`: it makes pods, or is one, and its pods are delegated
 * - `job`, `cronJob`: it runs whole, or makes Jobs that do
 * - `whole`: members get the object itself
 * - `follows`: members get it with the pods that need it
 * - `host`: it acts on the host, for members' pods, too
 * - `nowhere`: neither it nor its pods can go to a member
 */
export type Treatment = "pods" | "job" | "cronJob" | "whole" | "follows" | "host" | "nowhere";

interface Kind {
  readonly apiVersion: string;
  readonly treatment: Treatment;
  /** Why it does not go to members as it did, for people. */
  readonly why?: string;
}

const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", treatment: "whole" } as const;

/** Kubernetes' own kinds, as KubeFed federates them without their apiVersion. Any other kind is `whole`. */
const KINDS: Readonly<Record<string, Kind>> = {
  Pod: { apiVersion: "v1", treatment: "pods" },
  ReplicationController: { apiVersion: "v1", treatment: "pods" },
  Deployment: { apiVersion: "apps/v1", treatment: "pods" },
  ReplicaSet: { apiVersion: "apps/v1", treatment: "pods" },
  StatefulSet: { apiVersion: "apps/v1", treatment: "pods" },
  DaemonSet: {
    apiVersion: "apps/v1",
    treatment: "nowhere",
    why: "a DaemonSet belongs to the nodes of its own cluster; apply it in each member",
  },
  Job: { apiVersion: "batch/v1", treatment: "job" },
  CronJob: { apiVersion: "batch/v1", treatment: "cronJob" },
  ConfigMap: { apiVersion: "v1", treatment: "whole" },
  Secret: { apiVersion: "v1", treatment: "whole" },
  Service: {
    apiVersion: "v1",
    treatment: "follows",
    why:
      "it has endpoints on the host, and is copied to the members of the pods that it selects, as ClusterIP; for node ports " +
      'or a load balancer there annotate it legation.dev/whole: "true"',
  },
  ServiceAccount: {
    apiVersion: "v1",
    treatment: "follows",
    why: "it is copied to the members of the pods that name it",
  },
  PersistentVolumeClaim: {
    apiVersion: "v1",
    treatment: "follows",
    why: "its data is made in the member of its first pod",
  },
  NetworkPolicy: {
    apiVersion: "networking.k8s.io/v1",
    treatment: "follows",
    why: "it is copied to the members of its namespace's pods",
  },
  Namespace: { apiVersion: "v1", treatment: "host", why: "members get it with the first object in it" },
  Ingress: {
    apiVersion: "networking.k8s.io/v1",
    treatment: "host",
    why: "it routes to the host's Service, whose endpoints are pods in members",
  },
  HorizontalPodAutoscaler: {
    apiVersion: "autoscaling/v2",
    treatment: "host",
    why: "it scales the one workload on the host",
  },
  PodDisruptionBudget: {
    apiVersion: "policy/v1",
    treatment: "host",
    why: "it counts the pods on the host, which stand for those in members",
  },
  LimitRange: { apiVersion: "v1", treatment: "host", why: "it judges pods when they are created on the host" },
  ResourceQuota: {
    apiVersion: "v1",
    treatment: "host",
    why: "it counts the pods on the host; one quota bounds all members together",
  },
  Role: rbac,
  RoleBinding: rbac,
  ClusterRole: rbac,
  ClusterRoleBinding: rbac,
};

/** Returns the apiVersion of one of Kubernetes' own kinds. */
export function apiVersionOfKind(kind: string): string | undefined {
  return Object.hasOwn(KINDS, kind) ? KINDS[kind]?.apiVersion : undefined;
}

/** Returns how the objects of a kind are treated, and why if not as before. */
export function treatmentOf({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): Omit<Kind, "apiVersion"> {
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  const [group] = apiVersion.split("/");
  const isOwn = known !== undefined && known.apiVersion.split("/")[0] === group;
  // An old version, such as extensions/v1beta1, which no API server serves any more.
  const isOld = known !== undefined && group === "extensions";
  return isOwn || isOld ? known : { treatment: "whole" };
}

/** Fields with numbers of pods, which a division shares out. */
export const COUNTS: Readonly<Partial<Record<Treatment, readonly string[]>>> = {
  pods: ["replicas"],
  job: ["parallelism", "completions"],
  cronJob: ["parallelism", "completions"],
};

/** Returns the path of the fields that hold counts. */
export function countsPath(treatment: Treatment): readonly string[] {
  return treatment === "cronJob" ? ["spec", "jobTemplate", "spec"] : ["spec"];
}

/** Returns the path of an object's pod template; a Pod is one itself. */
export function templatePath({ kind }: { readonly kind: string }): readonly string[] {
  if (kind === "Pod") return [];
  return kind === "CronJob" ? ["spec", "jobTemplate", "spec", "template"] : ["spec", "template"];
}
