import type { Pod, Stored, Taint, Toleration } from "../api/kubernetes.ts";
import { parseInteger } from "../api/label-selector.ts";

/** Orders pods like a scheduler's queue: by priority, then by age. */
export function byPrecedence(a: Stored<Pod>, b: Stored<Pod>): number {
  const ahead = (b.spec?.priority ?? 0) - (a.spec?.priority ?? 0);
  if (ahead !== 0) return ahead;
  const [one = "", other = ""] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return one < other ? -1 : Number(one > other);
}

export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(({ key = "", operator = "Equal", value = "", effect = "" }) => {
    if (effect !== "" && effect !== taint.effect) return false;
    if (key === "") return operator === "Exists";
    if (key !== taint.key) return false;
    return isFor(taint.value ?? "", operator, value);
  });
}

/** Compares by operator. `Lt` and `Gt` came with Kubernetes 1.35 (KEP-5471). */
function isFor(value: string, operator: string, wanted: string): boolean {
  if (operator === "Exists") return true;
  if (operator === "Equal") return value === wanted;
  const [is, bound] = [parseInteger(value), parseInteger(wanted)];
  if (is === undefined || bound === undefined) return false;
  return (operator === "Lt" && is < bound) || (operator === "Gt" && is > bound);
}

/** Considers the effects NoSchedule and NoExecute. */
export function repellingTaint(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !isTolerated(taint, tolerations));
}

/** Formats a taint as kubectl does: `key=value:effect`. */
export function taintText({ key, value = "", effect }: Taint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
