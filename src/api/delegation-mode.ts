import { asksForDelegation, type Placement } from "./annotations.ts";
import { DELEGATION_LABEL } from "./keys.ts";
import type { OverflowMode } from "./overflow.ts";

const MODES = ["annotated", "all", "overflow"] as const;
/** The modes of a namespace's label: pods that ask are delegated, every pod, or every pod without a place on the host. */
export type DelegationMode = (typeof MODES)[number];

/** The mode that the namespace's labels name; undefined when it is not opted in, or the value is no mode. */
export function delegationModeOf(labels: Readonly<Record<string, string>> | undefined): DelegationMode | undefined {
  return MODES.find((mode) => mode === labels?.[DELEGATION_LABEL]);
}

/** Reports whether a pod with this placement is delegated in a namespace of this mode. */
export function isWanted(placement: Placement, mode: DelegationMode): boolean {
  return mode === "annotated" ? asksForDelegation(placement) : placement.delegate !== false;
}

/** Returns whether a pod is delegated from the start, or only once the host has no place for it. */
export function overflowModeOf(placement: Placement, mode: DelegationMode): OverflowMode {
  return placement.mode ?? (mode === "overflow" ? "overflow" : "always");
}
