import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ACCESS_GROUP, ACCESS_VERSION } from "../../../src/api/access.ts";
import { VIRTUAL_NODE_LABEL, virtualNodeName } from "../../../src/api/keys.ts";
import type { Fault, FaultRequest } from "../../support/fault-server/fault-server.ts";
import { memberName, pairOf } from "../scale/fleet.ts";
import { type Json, SimulatedCluster } from "../scale/simulated-cluster.ts";

/** A host whose controller does not run: all members, virtual nodes and proxies are as it left them. */
export interface ViewedHost {
  readonly cluster: SimulatedCluster;
  /** Most requests to members that were under way at a time. */
  readonly mostUnderWay: () => number;
  /** Changes the status of a pod. */
  change(index: number): void;
}

interface Size {
  readonly members: number;
  readonly proxies: number;
}

const AT = "2026-01-01T00:00:00Z";
const NAMESPACES = 100;
const PODS_OF_WORKLOAD = 20;
// A member of so many is not Ready, one is cordoned, one is slow to answer and one never answers.
const ODD_ONE_OF = 100;
const ANSWER_MS = 20;
const SLOW_ANSWER_MS = 2_000;
const ACCESS_PATH = `/apis/${ACCESS_GROUP}/${ACCESS_VERSION}`;

/** Starts the host. */
export async function startViewedHost({ members, proxies }: Size): Promise<ViewedHost> {
  const cluster = await SimulatedCluster.start();
  cluster.put("namespaces", { metadata: { name: "kube-system" } });
  for (let index = 0; index < members; index += 1) addMember(cluster, index, Math.ceil(proxies / members));
  for (let index = 0; index < proxies; index += 1) cluster.put("pods", proxyOf(index, members));
  let underWay = 0;
  let most = 0;
  cluster.answer = membersBehind(Math.ceil(proxies / members), (change) => {
    underWay += change;
    most = Math.max(most, underWay);
  });
  const change = (index: number): void => {
    const pod = proxyOf(index % proxies, members);
    const status = { ...(pod.status as object), phase: "Running", reason: index % 2 === 0 ? "Even" : "Odd" };
    cluster.put("pods", { ...pod, metadata: { ...pod.metadata, uid: undefined }, status });
  };
  return { cluster, mostUnderWay: () => most, change };
}

function addMember(host: SimulatedCluster, index: number, pods: number): void {
  const name = memberName(index);
  const isReady = index % ODD_ONE_OF !== 1;
  const status = isReady ? "True" : "False";
  const amounts = { cpu: "64", memory: "256Gi", pods: "1100" };
  host.put("clusters", {
    metadata: { name, labels: { region: ["eu", "us", "ap"][index % 3], tier: index % 10 === 0 ? "gpu" : "general" } },
    spec: { access: { prefix: "legation:" } },
    status: {
      connection: "Direct",
      version: "v1.36.0",
      server: `https://10.0.${index >> 8}.${index & 255}:6443`,
      nodes: 10,
      pods,
      unfinishedPods: pods,
      runningPods: pods,
      requested: { cpu: `${pods * 100}m`, memory: `${pods * 128}Mi`, pods: String(pods) },
      capacity: amounts,
      allocatable: amounts,
      requestedByOthers: { cpu: "12", memory: "40Gi", pods: "90" },
      conditions: [
        {
          type: "Ready",
          status,
          reason: isReady ? "ProbeSucceeded" : "ProbeFailed",
          message: isReady ? "its API server answers" : "connect ETIMEDOUT 10.0.0.1:6443",
          lastTransitionTime: AT,
        },
      ],
    },
  });
  host.put("nodes", {
    metadata: { name: virtualNodeName(name), labels: { [VIRTUAL_NODE_LABEL]: "true" } },
    spec: index % ODD_ONE_OF === 2 ? { unschedulable: true } : {},
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [{ type: "Ready", status, lastTransitionTime: AT }],
    },
  });
}

/** A proxy of a Deployment. One of many has no member yet. */
function proxyOf(index: number, members: number): Json {
  const workload = Math.floor(index / PODS_OF_WORKLOAD);
  const { placed } = pairOf(
    memberName(index % members),
    `web-${workload}-7f9c6bd5b8-${String(index).padStart(6, "0")}`,
  );
  const metadata: Json["metadata"] = {
    ...placed.metadata,
    namespace: `team-${workload % NAMESPACES}`,
    ownerReferences: [{ kind: "ReplicaSet", name: `web-${workload}-7f9c6bd5b8`, controller: true, uid: `${workload}` }],
  };
  if (index % ODD_ONE_OF !== 3) return { ...placed, metadata };
  const { nodeName: _, ...spec } = placed.spec as Record<string, unknown>;
  const { "legation.dev/cluster": _member, ...annotations } = metadata.annotations as Record<string, unknown>;
  const waiting = {
    type: "PodScheduled",
    status: "False",
    reason: "Unschedulable",
    message: `0/${members} members are available: ${members} lack the requested cpu.`,
    lastTransitionTime: AT,
  };
  return {
    ...placed,
    metadata: { ...metadata, annotations },
    spec,
    status: { phase: "Pending", conditions: [waiting] },
  };
}

/** Answers what users ask of members through the host: which types they serve, and tables of their pods. */
function membersBehind(rows: number, onChange: (change: 1 | -1) => void): Fault {
  const table = JSON.stringify({ kind: "Table", apiVersion: "meta.k8s.io/v1", ...tableOf(rows) });
  return (request, response) => {
    const [, index, path] = new RegExp(`^${ACCESS_PATH}/clusters/member-(\\d+)/proxy(/.*)$`).exec(request.path) ?? [];
    if (index === undefined || path === undefined) {
      if (request.path !== ACCESS_PATH) return false;
      response.end(JSON.stringify({ kind: "APIResourceList", resources: [] }));
      return true;
    }
    onChange(1);
    response.once("close", () => onChange(-1));
    void answer(Number(index), path === "/api" || path === "/apis" ? discovery(path) : table, request, response);
    return true;
  };
}

async function answer(member: number, text: string, { path }: FaultRequest, response: ServerResponse): Promise<void> {
  if (member % ODD_ONE_OF === 4) return;
  await sleep(member % ODD_ONE_OF === 5 && path.endsWith("/pods") ? SLOW_ANSWER_MS : ANSWER_MS);
  response.writeHead(200, { "content-type": "application/json" }).end(text);
}

function discovery(path: string): string {
  const pods = {
    resource: "pods",
    responseKind: { group: "", version: "v1", kind: "Pod" },
    scope: "Namespaced",
    singularResource: "pod",
    shortNames: ["po"],
    verbs: ["get", "list", "watch"],
  };
  const items = path === "/api" ? [{ metadata: {}, versions: [{ version: "v1", resources: [pods] }] }] : [];
  return JSON.stringify({ kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items });
}

function tableOf(rows: number): object {
  return {
    metadata: { resourceVersion: "1" },
    columnDefinitions: ["Name", "Ready", "Status", "Restarts", "Age"].map((name) => ({
      name,
      type: "string",
      priority: 0,
    })),
    rows: Array.from({ length: rows }, (_, index) => {
      const name = `web-7f9c6bd5b8-${index}`;
      return {
        cells: [name, "1/1", "Running", "0", "5d"],
        object: {
          kind: "PartialObjectMetadata",
          metadata: { name, namespace: "load", uid: String(index), creationTimestamp: AT },
        },
      };
    }),
  };
}
