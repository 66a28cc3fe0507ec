import { asksForDelegation, type Placement } from "./annotations.ts";
import { DELEGATION_LABEL } from "./keys.ts";
import type { OverflowMode } from "./overflow.ts";

const MODES = ["annotated", "all", "overflow"] as const;
/** What a namespace's label says: pods that ask are delegated, every pod is, or every pod for which the host has no place. */
export type DelegationMode = (typeof MODES)[number];

/** The mode that the namespace's labels name; undefined when it is not opted in, or the value is no mode. */
export function delegationModeOf(labels: Readonly<Record<string, string>> | undefined): DelegationMode | undefined {
  return MODES.find((mode) => mode === labels?.[DELEGATION_LABEL]);
}

/** Whether a pod with this placement is to be delegated in a namespace of this mode. */
export function isWanted(placement: Placement, mode: DelegationMode): boolean {
  return mode === "annotated" ? asksForDelegation(placement) : placement.delegate !== false;
}

/** Whether a pod that is to be delegated is delegated from the start, or only when the host has no place for it. */
export function overflowModeOf(placement: Placement, mode: DelegationMode): OverflowMode {
  return placement.mode ?? (mode === "overflow" ? "overflow" : "always");
}
