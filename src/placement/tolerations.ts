import type { Taint, Toleration } from "../api/kubernetes.ts";

/** Whether one of the tolerations is for the taint: same effect or any, same key or any, same value or Exists. */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(({ key = "", operator = "Equal", value = "", effect = "" }) => {
    if (effect !== "" && effect !== taint.effect) return false;
    if (key === "") return operator === "Exists";
    if (key !== taint.key) return false;
    return operator === "Exists" || (operator === "Equal" && value === (taint.value ?? ""));
  });
}

/** The taint that keeps the pod off: of effect NoSchedule or NoExecute, and not tolerated. */
export function repellingTaint(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !isTolerated(taint, tolerations));
}

/** A taint as kubectl writes it: `key=value:effect`. */
export function taintText({ key, value = "", effect }: Taint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}
