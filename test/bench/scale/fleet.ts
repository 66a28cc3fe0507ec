import { randomUUID } from "node:crypto";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_FINALIZER,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  SCHEDULER_NAME,
  SLOT_LABEL,
  SYSTEM_NAMESPACE,
  virtualNodeName,
} from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { slotOf } from "../../../src/api/shards.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { statusFrom } from "../../../src/pods/feedback.ts";
import { type Json, SimulatedCluster } from "./simulated-cluster.ts";

const HOST = { id: "11111111-0000-4000-8000-000000000000", name: "host" };
const NAMESPACE = "load";
const NODE = "node-1";
// A pod of a real API server has some: the reader has to skip them.
const MANAGED_FIELDS = Array.from({ length: 3 }, (_, index) => ({
  manager: `manager-${index}`,
  operation: "Update",
  apiVersion: "v1",
  time: "2026-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1: Object.fromEntries(Array.from({ length: 25 }, (_unused, field) => [`f:field-${field}`, { "f:value": {} }])),
}));

/** A host with its members, none of them real. */
export interface Fleet {
  readonly host: SimulatedCluster;
  readonly members: readonly SimulatedCluster[];
  /** Returns a pod as the webhook leaves it. Default: of the fleet's only namespace, for a single shard. */
  pod(name: string, namespace?: string): Json;
  close(): Promise<void>;
}

/** A fleet in which `proxies` pods run, spread over the members. */
export async function fleetOf(memberCount: number, proxies: number): Promise<Fleet> {
  const host = await SimulatedCluster.start();
  host.put("namespaces", { metadata: { name: "kube-system", uid: HOST.id } });
  host.put("namespaces", { metadata: { name: NAMESPACE, labels: { "legation.dev/delegation": "all" } } });
  host.put("configmaps", {
    metadata: { namespace: SYSTEM_NAMESPACE, name: "legation" },
    data: { "cluster-name": HOST.name },
  });
  const members: SimulatedCluster[] = [];
  for (let index = 0; index < memberCount; index += 1) {
    const member = await SimulatedCluster.start();
    member.onPod = running;
    member.put("namespaces", { metadata: { name: "kube-system", uid: randomUUID() } });
    member.put("namespaces", { metadata: { name: NAMESPACE } });
    member.put("nodes", node(proxies));
    members.push(member);
    join(host, memberName(index), member);
  }
  const fleet: Fleet = {
    host,
    members,
    pod: (name, namespace) => (namespace === undefined ? proxy(name) : labelled(proxy(name), namespace)),
    close: async () => {
      await Promise.all([host, ...members].map((cluster) => cluster.close()));
    },
  };
  for (let index = 0; index < proxies; index += 1) {
    const at = index % memberCount;
    const member = members[at];
    if (member !== undefined) seed(host, member, memberName(at), `web-${index}`);
  }
  return fleet;
}

/** A kubeconfig for a fake cluster, which asks for no credentials. */
export function kubeconfigOf(name: string, server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token: "token" } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}

export function memberName(index: number): string {
  return `member-${index}`;
}

function join(host: SimulatedCluster, name: string, member: SimulatedCluster): void {
  const kubeconfig = kubeconfigOf(name, member.url);
  const secret = `member-${name}`;
  host.put("secrets", {
    metadata: { namespace: SYSTEM_NAMESPACE, name: secret },
    data: { kubeconfig: Buffer.from(kubeconfig).toString("base64") },
  });
  host.put("clusters", { metadata: { name }, spec: { credentialsSecret: { name: secret } } });
}

function node(room: number): Json {
  const amounts = { cpu: "100000", memory: "1000000Gi", pods: String(room + 10_000) };
  return {
    metadata: { name: NODE, labels: { "kubernetes.io/hostname": NODE } },
    spec: {},
    status: { capacity: amounts, allocatable: amounts, conditions: [{ type: "Ready", status: "True" }] },
  };
}

/** A proxy and its delegate, alike already: a controller that starts has nothing to write. */
function seed(host: SimulatedCluster, member: SimulatedCluster, cluster: string, name: string): void {
  const { placed, delegate } = pairOf(cluster, name);
  member.put("pods", delegate);
  host.put("pods", placed);
}

/** A running delegate and its proxy, which shows the same. */
export function pairOf(cluster: string, name: string): { readonly placed: Json; readonly delegate: Json } {
  const written = proxy(name);
  const uid = randomUUID();
  const owned = { ...written, metadata: { ...written.metadata, uid } } as unknown as Stored<Pod>;
  const delegate = running(toDelegate(owned, HOST, { mode: "member" }) as unknown as Json);
  const delegateUid = randomUUID();
  const annotations = {
    [CLUSTER_ANNOTATION]: cluster,
    [DELEGATE_UID_ANNOTATION]: delegateUid,
    [MEMBER_NODE_ANNOTATION]: NODE,
  };
  const placed = {
    ...written,
    metadata: {
      ...written.metadata,
      uid,
      annotations: { ...(written.metadata.annotations as object), ...annotations },
    },
    spec: { ...(written.spec as object), nodeName: virtualNodeName(cluster) },
  };
  const status = statusFrom(placed as unknown as Stored<Pod>, delegate as unknown as Stored<Pod>);
  return {
    placed: { ...placed, status: JSON.parse(JSON.stringify(status)) },
    delegate: { ...delegate, metadata: { ...delegate.metadata, uid: delegateUid } },
  };
}

/** Moves the pod to another namespace, with the label of its slot. */
function labelled(pod: Json, namespace: string): Json {
  const labels = { ...(pod.metadata.labels as object), [SLOT_LABEL]: String(slotOf(namespace)) };
  return { ...pod, metadata: { ...pod.metadata, namespace, labels } };
}

function proxy(name: string): Json {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace: NAMESPACE,
      name,
      generation: 1,
      labels: { app: "web", "pod-template-hash": "7f9c6bd5b8", [PROXY_LABEL]: PROXY_LABEL_VALUE },
      annotations: { "legation.dev/api": "none" },
      finalizers: [DELEGATE_FINALIZER],
      managedFields: MANAGED_FIELDS,
    },
    spec: {
      schedulerName: SCHEDULER_NAME,
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      automountServiceAccountToken: false,
      serviceAccountName: "default",
      enableServiceLinks: false,
      containers: [
        {
          name: "main",
          image: "registry.example/team/web:1.2.3",
          command: ["/bin/web", "--listen=:8080", "--config=/etc/web/config.yaml"],
          env: Array.from({ length: 8 }, (_, index) => ({ name: `SETTING_${index}`, value: `value-${index}` })),
          ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
          resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
          readinessProbe: { httpGet: { path: "/ready", port: "http", scheme: "HTTP" }, periodSeconds: 10 },
          livenessProbe: { httpGet: { path: "/live", port: "http", scheme: "HTTP" }, periodSeconds: 10 },
          volumeMounts: [{ name: "scratch", mountPath: "/tmp" }],
          imagePullPolicy: "IfNotPresent",
        },
      ],
      volumes: [{ name: "scratch", emptyDir: {} }],
      tolerations: ["not-ready", "unreachable"].map((name_) => ({
        key: `node.kubernetes.io/${name_}`,
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: 300,
      })),
    },
    status: { phase: "Pending" },
  };
}

/** A pod as its member's scheduler and kubelet would have left it. */
function running(pod: Json): Json {
  const at = "2026-01-01T00:00:00Z";
  const conditions = ["PodScheduled", "Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"];
  return {
    ...pod,
    metadata: { ...pod.metadata, generation: 1, managedFields: MANAGED_FIELDS },
    spec: { ...(pod.spec as object), nodeName: NODE },
    status: {
      phase: "Running",
      observedGeneration: 1,
      hostIP: "10.0.0.1",
      podIP: "10.1.0.1",
      podIPs: [{ ip: "10.1.0.1" }],
      startTime: at,
      qosClass: "Burstable",
      conditions: conditions.map((type) => ({ type, status: "True", lastTransitionTime: at })),
      containerStatuses: [
        {
          name: "main",
          ready: true,
          started: true,
          restartCount: 0,
          image: "registry.example/team/web:1.2.3",
          imageID: "registry.example/team/web@sha256:0123456789abcdef",
          containerID: "containerd://0123456789abcdef",
          state: { running: { startedAt: at } },
          lastState: {},
        },
      ],
    },
  };
}
