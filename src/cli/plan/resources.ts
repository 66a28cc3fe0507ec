import type { KubeObject } from "../../api/kubernetes.ts";
import { deployments, pods, type Resource } from "../../kube/resources.ts";
import type { WorkloadKind } from "./workloads.ts";

const apps = { group: "apps", version: "v1", namespaced: true } as const;
const batch = { group: "batch", version: "v1", namespaced: true } as const;

/** The API resource of each kind of workload. */
export const WORKLOAD_RESOURCES: Readonly<Record<WorkloadKind, Resource<KubeObject>>> = {
  Pod: pods,
  Deployment: deployments,
  ReplicaSet: { ...apps, plural: "replicasets", kind: "ReplicaSet" },
  StatefulSet: { ...apps, plural: "statefulsets", kind: "StatefulSet" },
  DaemonSet: { ...apps, plural: "daemonsets", kind: "DaemonSet" },
  ReplicationController: {
    group: "",
    version: "v1",
    namespaced: true,
    plural: "replicationcontrollers",
    kind: "ReplicationController",
  },
  Job: { ...batch, plural: "jobs", kind: "Job" },
  CronJob: { ...batch, plural: "cronjobs", kind: "CronJob" },
};
