import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { KubeObject, OwnerReference, Pod } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../src/kube/kubeconfig.ts";
import { configMaps, namespaces, pods, type Resource } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { PodWatch } from "./pod-watch.ts";

/** Requests in flight of the load generator, the same for all ways. */
export const WRITERS = 32;

// Weights of a workload. They are measured beside pods of one owner without any.
const DIVIDED = JSON.stringify({ clusters: { west: { weight: 2 }, "*": { weight: 1 } } });

/** Ways for pods to come to run. */
export type Way = "direct" | "delegated" | "delegated with tokens" | "owned" | "divided" | "same writes";

/** Called when all pods of the namespace run; they were created from `startedAt` on, a time of `performance.now()`. */
export type OnRunning = (namespace: string, startedAt: number) => void | Promise<void>;

/** Pods a second from the first creation until all run. */
export async function burst(
  client: ClusterClient,
  members: readonly ClusterClient[],
  count: number,
  way: Way,
  onRunning?: OnRunning,
): Promise<number> {
  const namespace = await makeNamespace(client, way !== "direct");
  const rate = await timed(client, namespace, count, way, onRunning);
  await removeNamespace([client, ...members], namespace);
  return rate;
}

/** Measures as `burst` does, in a namespace that exists and stays. */
export async function timed(
  client: ClusterClient,
  namespace: string,
  count: number,
  way: Way,
  onRunning?: OnRunning,
): Promise<number> {
  const watch = new PodWatch(client, namespace);
  await watch.start();
  const startedAt = performance.now();
  await createPods(client, namespace, count, way);
  await watch.untilRunning(count);
  const rate = (count / (performance.now() - startedAt)) * 1000;
  await onRunning?.(namespace, startedAt);
  await clear(client, namespace, watch, way === "same writes");
  return rate;
}

/** Creates pods as fast as the API server takes them, or so many a second. */
export async function createPods(
  client: ClusterClient,
  namespace: string,
  count: number,
  way: Way,
  perSecond?: number,
): Promise<void> {
  const owner = way === "owned" || way === "divided" ? await makeOwner(client, namespace) : undefined;
  const startedAt = performance.now();
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      if (perSecond !== undefined) await sleep(Math.max(0, startedAt + (index * 1000) / perSecond - performance.now()));
      await client.create(pods, podOf(namespace, index, way, owner), { timeoutMs: 60_000 });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

/** Any object owns pods; this one's controller makes none. */
async function makeOwner(client: ClusterClient, namespace: string): Promise<OwnerReference> {
  const object = { apiVersion: "v1", kind: "ConfigMap" };
  const { metadata } = await client.create(configMaps, { ...object, metadata: { namespace, name: "owner" } });
  return { ...object, name: metadata.name, uid: metadata.uid, controller: true };
}

/** A pod of the load. */
export function podOf(namespace: string, index: number, way: Way, owner?: OwnerReference): Pod {
  const preferences = way === "divided" ? { "legation.dev/scheduling-preferences": DIVIDED } : {};
  const delegated = way !== "direct" && way !== "same writes";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace,
      name: `pod-${index}`,
      labels: { app: "bench" },
      ...(delegated ? { annotations: { "legation.dev/delegate": "true", ...preferences } } : {}),
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      terminationGracePeriodSeconds: 1,
      // A token of the host's API is two writes more, which one of the ways measures.
      automountServiceAccountToken: way === "delegated with tokens",
      ...(way === "same writes" ? { schedulerName: "bench" } : {}),
      containers: [{ name: "main", image: "bench:1", resources: { requests: { cpu: "10m", memory: "16Mi" } } }],
    },
  };
}

/** Makes a namespace in which pods can be made. */
export async function makeNamespace(
  client: ClusterClient,
  delegated: boolean,
  name: string = `bench-${randomBytes(4).toString("hex")}`,
): Promise<string> {
  const labels = delegated ? { "legation.dev/delegation": "annotated" } : {};
  await client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  // Pods are refused until the controller manager has made the namespace's account.
  for (;;) {
    const found = await client.raw({ method: "GET", path: account }).then(
      () => true,
      () => false,
    );
    if (found) return name;
    await sleep(50);
  }
}

/** Deletes a namespace and waits until it is gone: the thousands of events in it would burden what is measured next. */
export async function removeNamespace(clients: readonly ClusterClient[], name: string): Promise<void> {
  await Promise.all(
    clients.map(async (client) => {
      if ((await client.find(namespaces, { name })) !== undefined) await client.delete(namespaces, { name });
      while ((await client.find(namespaces, { name })) !== undefined) await sleep(200);
    }),
  );
}

/** Deletes the namespace's pods; at once where no node would confirm that they have ended. */
export async function clear(client: ClusterClient, namespace: string, watch: PodWatch, atOnce = false): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/pods${atOnce ? "?gracePeriodSeconds=0" : ""}`;
  await client.raw({ method: "DELETE", path, timeoutMs: 300_000 });
  await watch.untilEmpty();
  await watch.stop();
}

/** The first page of a list, with the number of objects behind it. */
const countedPage = z.object({
  items: z.array(z.unknown()),
  metadata: z.object({ remainingItemCount: z.number().default(0) }),
});

/** Counts the objects of a namespace. A list of all would take the processor time that is measured. */
export async function countOf(
  client: ClusterClient,
  { group, version, plural }: Resource<KubeObject>,
  namespace: string,
): Promise<number> {
  const api = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const path = `${api}/namespaces/${namespace}/${plural}?limit=1`;
  const { items, metadata } = countedPage.parse(await client.raw({ method: "GET", path }));
  return items.length + metadata.remainingItemCount;
}

/** An admin's client of the cluster, without a limit of its own. */
export function clientOf(cluster: Cluster): ClusterClient {
  const credentials = loadKubeConfig({ kubeconfig: cluster.kubeconfig, env: {} });
  return createClusterClient({ cluster: cluster.name, credentials, limits: { perSecond: 10_000, burst: 10_000 } });
}
