import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { findBinaries } from "./binaries.ts";
import { kubeconfigText } from "./kubeconfig.ts";
import { PlaneProcess } from "./plane-process.ts";
import type { Cluster } from "./types.ts";

/** A kube-scheduler beside a cluster's own, with a name and a user of its own. */
export interface SecondScheduler {
  /** Value of `spec.schedulerName` for its pods. */
  readonly schedulerName: string;
  /** User name in the audit log. */
  readonly user: string;
  readonly kubeconfig: string;
  readonly process: PlaneProcess;
}

/** The names and flags that make it another scheduler than the cluster's own. */
export interface SchedulerOptions {
  /** Program. Default: the cluster's kube-scheduler. */
  readonly command?: string;
  /** ClusterRoles that it has beside the two of kube-scheduler. */
  readonly roles?: readonly string[];
  /** Fields of its profile: `plugins` and `pluginConfig`. */
  readonly profile?: object;
}

const NAMESPACE = "kube-system";
const NAME = "second-scheduler";

/** Starts a second kube-scheduler, as kubernetes.io's task "Configure Multiple Schedulers" does. */
export async function startSecondScheduler(
  cluster: Cluster,
  { command, roles = [], profile = {} }: SchedulerOptions = {},
): Promise<SecondScheduler> {
  const metadata = { name: NAME, namespace: NAMESPACE };
  const binding = (role: string): object => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: `${NAME}-${role.replace("system:", "")}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", ...metadata }],
  });
  await applyAll(cluster, [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    ...["system:kube-scheduler", "system:volume-scheduler", ...roles].map(binding),
  ]);
  const token = (await kubectl(cluster, ["create", "token", NAME, `--namespace=${NAMESPACE}`])).trim();
  const { name, server, caData, directory } = cluster;
  const kubeconfig = join(directory, `${NAME}.kubeconfig`);
  writeFileSync(kubeconfig, kubeconfigText({ name, server, caData, user: NAME, token }), { mode: 0o600 });
  const config = join(directory, `${NAME}.json`);
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: "kubescheduler.config.k8s.io/v1",
      kind: "KubeSchedulerConfiguration",
      clientConnection: { kubeconfig },
      leaderElection: { leaderElect: false },
      profiles: [{ schedulerName: NAME, ...profile }],
    }),
  );
  const scheduler = new PlaneProcess({
    name: `${name}'s ${NAME}`,
    command: command ?? (await findBinaries())["kube-scheduler"],
    args: [`--config=${config}`, "--secure-port=0"],
    logFile: join(directory, `${NAME}.log`),
    ready: () => Promise.resolve(true),
    readyTimeoutMs: 10_000,
  });
  await scheduler.start();
  return { schedulerName: NAME, user: `system:serviceaccount:${NAMESPACE}:${NAME}`, kubeconfig, process: scheduler };
}
