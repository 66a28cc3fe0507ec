import { NODE_IMAGES } from "../clusters/node/config.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { ensurePrograms } from "./programs.ts";

const RBAC = "rbac.authorization.k8s.io";
const PORT = 8000;
/** The objects that Traefik reads, by its documentation. */
const RULES = [
  { apiGroups: [""], resources: ["services", "secrets", "nodes"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses", "ingressclasses"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses/status"], verbs: ["update"] },
];

/** Runs Traefik, an Ingress controller, in a pod of the cluster's own, for the Ingresses of a namespace. Its Service is `traefik`. */
export async function runTraefik(cluster: Cluster, namespace: string): Promise<void> {
  const folder = await ensurePrograms("traefik", (line) => process.stderr.write(`traefik: ${line}\n`));
  const metadata = { namespace, name: "traefik" };
  const ofCluster = { name: `traefik-${namespace}` };
  const labels = { app: "traefik" };
  const args = [
    `--providers.kubernetesingress.namespaces=${namespace}`,
    `--entrypoints.web.address=:${PORT}`,
    "--global.checknewversion=false",
  ];
  await applyAll(cluster, [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: ofCluster, rules: RULES },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: ofCluster,
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", ...ofCluster },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: PORT }] },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, labels },
      spec: {
        serviceAccountName: "traefik",
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "main",
            image: NODE_IMAGES[0],
            command: ["/traefik/traefik", ...args],
            readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
            volumeMounts: [{ name: "traefik", mountPath: "/traefik" }],
          },
        ],
        volumes: [{ name: "traefik", hostPath: { path: folder } }],
      },
    },
  ]);
  await kubectl(cluster, ["-n", namespace, "wait", "pod/traefik", "--for=condition=Ready", "--timeout=110s"]);
}

/** An Ingress of all hosts that leads to a backend. */
export function ingressTo(namespace: string, service: { readonly name: string; readonly port: object }): object {
  const http = { paths: [{ path: "/", pathType: "Prefix", backend: { service } }] };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { namespace, name: "web" },
    spec: { rules: [{ http }] },
  };
}
