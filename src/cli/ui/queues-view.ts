import { realClock } from "../../runtime/clock.ts";
import { QueueReader, queueStatuses } from "../explain/queues.ts";
import { hiddenLine, MEMBERS, VIRTUAL_NODES } from "../shared/hidden.ts";
import { findClusters, listVirtualNodes, readable } from "../shared/reading.ts";
import type { QueuesView } from "./model.ts";
import type { Viewer } from "./viewer.ts";

// More than anybody reads of one queue.
const SHOWN = 100;

// A user's pages share what was listed.
const readers = new WeakMap<Viewer, QueueReader>();

/** Reads Kueue's queues as `legation status` does, with the user's rights. Rejects with KubeError. */
export async function readQueuesView(viewer: Viewer): Promise<QueuesView> {
  const { host, only, namespace, signal } = viewer;
  const reader = readers.get(viewer) ?? new QueueReader({ host, namespace: only ?? namespace, clock: realClock });
  readers.set(viewer, reader);
  const objects = await reader.read(signal);
  if (objects === undefined) return {};
  const [clusters, nodes] = await Promise.all([
    readable(findClusters(host, signal)),
    readable(listVirtualNodes(host, signal)),
  ]);
  const members = { clusters: clusters ?? [], nodes: nodes ?? [] };
  const unread = clusters === undefined ? [MEMBERS] : nodes === undefined ? [VIRTUAL_NODES] : [];
  const hidden = hiddenLine([...unread, ...objects.hidden]);
  return { queues: queueStatuses(objects, members, SHOWN), ...(hidden === undefined ? {} : { hidden }) };
}
