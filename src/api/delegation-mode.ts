import { asksForDelegation, type RequestedPlacement } from "./annotations.ts";
import { DELEGATION_LABEL } from "./keys.ts";

const MODES = ["annotated", "all", "overflow"] as const;
/** Modes of a namespace's label: delegate pods that ask, every pod, or pods without a place on the host. */
export type DelegationMode = (typeof MODES)[number];

/** Returns the mode of a namespace. Undefined if it is not opted in. */
export function delegationModeOf(labels: Readonly<Record<string, string>> | undefined): DelegationMode | undefined {
  return MODES.find((mode) => mode === labels?.[DELEGATION_LABEL]);
}

export function isDelegationWanted(placement: RequestedPlacement, mode: DelegationMode): boolean {
  return mode === "annotated" ? asksForDelegation(placement) : placement.delegate !== false;
}
