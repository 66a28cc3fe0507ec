import { REFUSED_CONDITION } from "../api/keys.ts";
import type { Pod, PodCondition } from "../api/kubernetes.ts";
import { conditionOf } from "./phase.ts";

/** A write for a pod that a cluster goes on refusing, in one word and in a sentence. */
export interface RefusedWrite {
  readonly reason: string;
  readonly message: string;
}

/** The same, since a time in RFC 3339. */
export interface RefusedSince extends RefusedWrite {
  readonly since: string;
}

// Several policies may have much to say.
const LONGEST_MESSAGE = 16_384;

/** Strategic merge patches that bring the condition `legation.dev/Refused` of a proxy up to date; none where it says so already. */
export function refusedConditions(proxy: Pod, refused: readonly RefusedSince[]): object[] {
  const shown = conditionOf(proxy, REFUSED_CONDITION);
  const [first] = refused;
  if (first === undefined) return shown === undefined ? [] : [{ type: REFUSED_CONDITION, $patch: "delete" }];
  const { reason, since } = first;
  const messages = refused.map(({ message }) => message).join("; ");
  const message = messages.slice(0, LONGEST_MESSAGE);
  if (shown?.status === "True" && shown.reason === reason && shown.message === message) return [];
  const lastTransitionTime = (shown?.status === "True" ? shown.lastTransitionTime : undefined) ?? since;
  const condition: PodCondition = { type: REFUSED_CONDITION, status: "True", reason, message, lastTransitionTime };
  return [condition];
}
