import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { isDeleting } from "../../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { type EventuallyOptions, eventually } from "./wait.ts";

// A namespace under test has fewer than a thousand pods.
const PAGE = 1000;

/** Returns the pods of a namespace by name. */
export async function podsOf(client: ClusterClient, namespace: string): Promise<Stored<Pod>[]> {
  const { items } = await client.list(pods, { namespace, limit: PAGE });
  return items.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** Returns a pod; undefined when it does not exist. */
export function podOf(client: ClusterClient, namespace: string, name: string): Promise<Stored<Pod> | undefined> {
  return client.find(pods, { namespace, name });
}

/** Evicts a pod by the API, as a drain does. */
export async function evict(client: ClusterClient, namespace: string, name: string): Promise<void> {
  const metadata = { namespace, name };
  await client.createSubresource(pods, metadata, "eviction", { apiVersion: "policy/v1", kind: "Eviction", metadata });
}

/** Waits for a pod that `holds`, and returns it. */
export function podThat(
  client: ClusterClient,
  namespace: string,
  name: string,
  holds: (pod: Stored<Pod>) => boolean,
  options: EventuallyOptions = {},
): Promise<Stored<Pod>> {
  let last: Stored<Pod> | undefined;
  return eventually(
    async () => {
      last = await podOf(client, namespace, name);
      if (last !== undefined && holds(last)) return last;
      throw new Error(`${client.cluster} has ${JSON.stringify(last ?? null)}`);
    },
    { timeoutMs: 120_000, what: `pod ${name} as wanted`, ...options },
  );
}

/** Waits until the pod is not there any more. */
export async function podGone(
  client: ClusterClient,
  namespace: string,
  name: string,
  uid?: string,
  options: EventuallyOptions = {},
): Promise<void> {
  await eventually(
    async () => {
      const found = await podOf(client, namespace, name);
      return found === undefined || (uid !== undefined && found.metadata.uid !== uid);
    },
    { timeoutMs: 120_000, what: `${client.cluster}: end of pod ${name}`, ...options },
  );
}

/** Reports whether the pod is in this phase. */
export function inPhase(phase: string): (pod: Pod) => boolean {
  return ({ status }) => status?.phase === phase;
}

/** Returns the number of live pods per node, `none` for those without one. */
export async function podsPerNode(client: ClusterClient, namespace: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const pod of await podsOf(client, namespace)) {
    const on = pod.spec?.nodeName ?? "none";
    if (!isDeleting(pod)) counts[on] = (counts[on] ?? 0) + 1;
  }
  return counts;
}

/** Waits until a proxy says these words of why it waits, and returns all that it says. */
export async function waitingFor(
  client: ClusterClient,
  namespace: string,
  name: string,
  words: string,
): Promise<string> {
  const says = (pod: Pod): string => whyNotPlaced(pod)?.message ?? "";
  return says(await podThat(client, namespace, name, (pod) => says(pod).includes(words)));
}
