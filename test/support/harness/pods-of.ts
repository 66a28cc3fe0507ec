import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { type EventuallyOptions, eventually } from "./wait.ts";

// Pods of one namespace under test; nobody here has a thousand.
const PAGE = 1000;

/** All pods of a namespace, by name. */
export async function podsOf(client: ClusterClient, namespace: string): Promise<Stored<Pod>[]> {
  const { items } = await client.list(pods, { namespace, limit: PAGE });
  return items.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** One pod; undefined when it is not there. */
export function podOf(client: ClusterClient, namespace: string, name: string): Promise<Stored<Pod> | undefined> {
  return client.find(pods, { namespace, name });
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
    { timeoutMs: 60_000, intervalMs: 50, what: `pod ${name} as wanted`, ...options },
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
    { timeoutMs: 60_000, intervalMs: 50, what: `${client.cluster}: end of pod ${name}`, ...options },
  );
}

/** True when the pod is in this phase. */
export function inPhase(phase: string): (pod: Pod) => boolean {
  return ({ status }) => status?.phase === phase;
}
