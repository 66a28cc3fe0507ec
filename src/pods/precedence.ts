import type { Pod, Stored } from "../api/kubernetes.ts";

/** Sorts pods that wait as a scheduler's queue does: those of higher priority first, then the older. */
export function byPrecedence(a: Stored<Pod>, b: Stored<Pod>): number {
  const ahead = (b.spec?.priority ?? 0) - (a.spec?.priority ?? 0);
  if (ahead !== 0) return ahead;
  const [one = "", other = ""] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return one < other ? -1 : Number(one > other);
}
