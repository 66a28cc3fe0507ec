import { CLUSTER_ANNOTATION, clusterOfNode } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";

/**
 * The member that a proxy was given to; undefined while it has none, or a node that is no member's. Where a token or a stream is given
 * out, the node itself is asked for: an annotation may be written later, and `spec.nodeName` never changes once it is set.
 */
export function memberOf({ metadata, spec }: Pod): string | undefined {
  // Bound to anything but a virtual node, by whoever may bind: no member's.
  const cluster = clusterOfNode(spec?.nodeName);
  return cluster === undefined ? undefined : (metadata?.annotations?.[CLUSTER_ANNOTATION] ?? cluster);
}
