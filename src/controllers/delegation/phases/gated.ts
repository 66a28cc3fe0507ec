import { isGated } from "../../../pods/pod-state.ts";
import { decided, type Phase } from "../model/decision.ts";

/** A scheduling gate holds the pod, as it does for any scheduler. */
export const gated: Phase = ({ proxy }) => (isGated(proxy) ? decided("Gated", []) : undefined);
