import { PROXY_LABEL, PROXY_LABEL_VALUE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { nodes, pods, type Resource } from "../../kube/resources.ts";
import { type Clock, realClock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { asViewer, listClusters, listProxies } from "../shared/reading.ts";
import type { Snapshot } from "./clusters.ts";

/** Reads the host once. */
export async function readSnapshot(host: ClusterClient, signal: AbortSignal): Promise<Snapshot> {
  const [joined, virtualNodes, proxies] = await asViewer(
    Promise.all([
      listClusters(host, signal),
      listAll(host, nodes, { labelSelector: VIRTUAL_NODE_LABEL, signal }),
      listProxies(host, { signal }),
    ]),
  );
  return { clusters: joined, nodes: virtualNodes, proxies };
}

// Coalesces a burst of changes into one table.
const QUIET_MS = 300;

/** Follows the host and reports each new state, at most a few times a second, until the signal fires. */
export async function followSnapshot(
  host: ClusterClient,
  onSnapshot: (snapshot: Snapshot) => void,
  signal: AbortSignal,
  clock: Clock = realClock,
): Promise<void> {
  // A reflector retries forever, so a first read reports what cannot work at all.
  let last = await readSnapshot(host, signal);
  let changed = Promise.withResolvers<void>();
  const reflect = <T extends KubeObject>(resource: Resource<T>, labelSelector?: string): Reflector<T> =>
    new Reflector({
      client: host,
      resource,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      clock,
      log: createLogger({ level: "silent" }),
      onEvent: () => changed.resolve(),
      onState: () => changed.resolve(),
    });
  const joined = reflect(clusters);
  const virtualNodes = reflect(nodes, VIRTUAL_NODE_LABEL);
  const proxies = reflect(pods, `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`);
  const all = [joined, virtualNodes, proxies];
  const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  try {
    for (const reflector of all) reflector.start();
    while (!signal.aborted) {
      changed = Promise.withResolvers();
      if (all.every(({ store }) => store.synced)) {
        last = { clusters: joined.store.list(), nodes: virtualNodes.store.list(), proxies: proxies.store.list() };
      }
      const [failing] = all.flatMap((reflector) => reflector.failing ?? []).sort((a, b) => a.since - b.since);
      onSnapshot({ ...last, ...(failing === undefined ? {} : { failing }) });
      await Promise.race([changed.promise, stopped]);
      await Promise.race([clock.sleep(QUIET_MS), stopped]);
    }
    signal.throwIfAborted();
  } finally {
    await Promise.all(all.map((reflector) => reflector.stop()));
  }
}
