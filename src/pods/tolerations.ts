import type { Taint, Toleration } from "../api/kubernetes.ts";
import { parseInteger } from "../api/label-selector.ts";

/** Whether one of the tolerations is for the taint: same effect or any, same key or any, and a value as its operator says. */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(({ key = "", operator = "Equal", value = "", effect = "" }) => {
    if (effect !== "" && effect !== taint.effect) return false;
    if (key === "") return operator === "Exists";
    if (key !== taint.key) return false;
    return isFor(taint.value ?? "", operator, value);
  });
}

/** `Lt` and `Gt` are of Kubernetes 1.35 (KEP-5471): an API server without them has let no such toleration in. */
function isFor(value: string, operator: string, wanted: string): boolean {
  if (operator === "Exists") return true;
  if (operator === "Equal") return value === wanted;
  const [is, bound] = [parseInteger(value), parseInteger(wanted)];
  if (is === undefined || bound === undefined) return false;
  return (operator === "Lt" && is < bound) || (operator === "Gt" && is > bound);
}

/** The taint that keeps the pod off: of effect NoSchedule or NoExecute, and not tolerated. */
export function repellingTaint(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !isTolerated(taint, tolerations));
}

/** A taint as kubectl writes it: `key=value:effect`. */
export function taintText({ key, value = "", effect }: Taint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
