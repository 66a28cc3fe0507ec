import { CLUSTER_ANNOTATION, VIRTUAL_NODE_PREFIX } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";

/** The member that a proxy was given to; undefined while it has none, or a node that is no member's. */
export function boundTo({ metadata, spec }: Pod): string | undefined {
  const { nodeName = "" } = spec ?? {};
  // Bound to anything but a virtual node, by whoever may bind: no member's.
  if (!nodeName.startsWith(VIRTUAL_NODE_PREFIX)) return undefined;
  return metadata?.annotations?.[CLUSTER_ANNOTATION] ?? nodeName.slice(VIRTUAL_NODE_PREFIX.length);
}
