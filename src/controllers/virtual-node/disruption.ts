// The node lifecycle controller's own: it stops evicting in a zone of which more is lost than this, and than two nodes.
const UNHEALTHY_SHARE = 0.55;
const FEW = 2;

/**
 * Whether so many members are lost that the reason is more likely here than there: all of several, or most of many. The
 * thresholds are those by which the node lifecycle controller stops evictions in a zone.
 */
export function looksLikeOurOwnTrouble(lost: number, all: number): boolean {
  if (all < 2 || lost === 0) return false;
  return lost === all || (lost > FEW && lost / all >= UNHEALTHY_SHARE);
}
