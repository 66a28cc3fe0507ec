import { join } from "node:path";
import type { ClusterOptions } from "./types.ts";

/** Files and ports of one cluster, as the planes' flags need them. */
export interface ClusterFiles {
  readonly directory: string;
  readonly etcdPort: number;
  readonly apiPort: number;
  /** Slot from 0 to 15; service addresses of slots do not overlap. */
  readonly slot: number;
}

/** Users of the planes beside `admin`, each with the token in the kubeconfig of that name. */
export const PLANE_USERS = {
  "kube-controller-manager": { user: "system:kube-controller-manager", group: "" },
  "kube-scheduler": { user: "system:kube-scheduler", group: "" },
  kwok: { user: "kwok", group: "system:masters" },
} as const;

export function etcdFlags({ directory, etcdPort }: ClusterFiles): string[] {
  const url = `http://127.0.0.1:${etcdPort}`;
  return [
    `--data-dir=${join(directory, "etcd")}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    // A single etcd member has no peers, so any free port will do.
    "--listen-peer-urls=http://127.0.0.1:0",
    // Data need not outlive the machine.
    "--unsafe-no-fsync",
    // A single member needs few ticks, which cost time. It elects itself after one to five of them, and serves nothing before.
    "--heartbeat-interval=500",
    "--election-timeout=2500",
    "--backend-batch-interval=1s",
    "--log-level=error",
  ];
}

export function apiServerFlags(files: ClusterFiles, options: ClusterOptions): string[] {
  const { directory, etcdPort, apiPort, slot } = files;
  const pki = join(directory, "pki");
  const audit = [
    `--audit-policy-file=${join(directory, "audit-policy.yaml")}`,
    `--audit-log-path=${join(directory, "audit.log")}`,
    // A single file without rotation, since tests count its lines.
    "--audit-log-maxsize=0",
  ];
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    // Metrics that no test reads: each poll asks etcd for all keys of every resource.
    "--etcd-count-metric-poll-period=0",
    "--etcd-db-metric-poll-interval=0",
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    // A loopback address is not a valid endpoint, and no client uses the service's own address here.
    "--endpoint-reconciler-type=none",
    `--secure-port=${apiPort}`,
    `--tls-cert-file=${join(pki, "apiserver.crt")}`,
    `--tls-private-key-file=${join(pki, "apiserver.key")}`,
    `--client-ca-file=${join(pki, "ca.crt")}`,
    `--kubelet-client-certificate=${join(pki, "kubelet-client.crt")}`,
    `--kubelet-client-key=${join(pki, "kubelet-client.key")}`,
    "--kubelet-preferred-address-types=InternalIP,Hostname",
    // An aggregated API believes who the API server says that a request is from.
    `--proxy-client-cert-file=${join(pki, "kubelet-client.crt")}`,
    `--proxy-client-key-file=${join(pki, "kubelet-client.key")}`,
    `--requestheader-client-ca-file=${join(pki, "ca.crt")}`,
    "--requestheader-allowed-names=kube-apiserver-kubelet-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    `--service-cluster-ip-range=10.${96 + slot}.0.0/16${options.serviceNetwork === "dual-stack" ? `,fd00:96:${slot}:1::/112` : ""}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(pki, "service-account.pub")}`,
    `--service-account-signing-key-file=${join(pki, "service-account.key")}`,
    `--token-auth-file=${join(directory, "tokens.csv")}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged",
    "--shutdown-watch-termination-grace-period=1s",
    "--max-requests-inflight=3000",
    "--max-mutating-requests-inflight=1000",
    ...(options.audit === false ? [] : audit),
    ...(options.apiServerFlags ?? []),
  ];
}

// The controller manager and the scheduler need to serve nothing: no port, no clash.
function clientFlags(kubeconfig: string): string[] {
  return [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--secure-port=0"];
}

export function controllerManagerFlags({ directory }: ClusterFiles, options: ClusterOptions): string[] {
  const pki = join(directory, "pki");
  return [
    ...clientFlags(join(directory, "kube-controller-manager.kubeconfig")),
    `--service-account-private-key-file=${join(pki, "service-account.key")}`,
    `--root-ca-file=${join(pki, "ca.crt")}`,
    "--use-service-account-credentials",
    "--kube-api-qps=300",
    "--kube-api-burst=600",
    "--concurrent-deployment-syncs=10",
    // Tests attach no volume, and the attach controller's loop would take a third of an idle manager's time.
    "--controllers=*,-persistentvolume-attach-detach-controller",
    // Costs nothing without an autoscaler, and saves tests the default of 15 s.
    "--horizontal-pod-autoscaler-sync-period=1s",
    ...(options.controllerManagerFlags ?? []),
  ];
}

export function schedulerFlags({ directory }: ClusterFiles, options: ClusterOptions): string[] {
  return [
    ...clientFlags(join(directory, "kube-scheduler.kubeconfig")),
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    ...(options.schedulerFlags ?? []),
  ];
}

/** Annotation of the nodes that kwok plays. */
export const KWOK_NODE_ANNOTATION = "kwok.x-k8s.io/node";

export function kwokFlags({ directory }: ClusterFiles, options: ClusterOptions): string[] {
  return [
    `--kubeconfig=${join(directory, "kwok.kubeconfig")}`,
    "--manage-all-nodes=false",
    `--manage-nodes-with-annotation-selector=${KWOK_NODE_ANNOTATION}=fake`,
    // The node controller marks nodes without leases Unknown every 50 s.
    "--node-lease-duration-seconds=40",
    `--config=${join(directory, "kwok-stages.yaml")}`,
    ...(options.kwokFlags ?? []),
  ];
}

/** Every request once, without those that only ask for health. Tests read what is written to the group of fleets. */
export const AUDIT_POLICY: string = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  omitManagedFields: true,
  rules: [
    { level: "None", nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"] },
    { level: "Request", resources: [{ group: "scale.example.com" }] },
    { level: "Metadata" },
  ],
});
