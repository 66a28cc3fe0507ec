import { PLACED_CONDITION, REFUSED_CONDITION } from "../api/keys.ts";
import { type Pod, type PodCondition, timestamp } from "../api/kubernetes.ts";
import { conditionOf, isBound } from "./pod-state.ts";

export interface RefusedWrite {
  readonly reason: string;
  readonly message: string;
}

export interface RefusedSince extends RefusedWrite {
  readonly since: string;
}

// Bounds the pod: a hundred members, or several policies, may each have a reason.
const LONGEST_MESSAGE = 16_384;

/** Returns strategic merge patches. */
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

/** Operators choose from these. Cluster autoscalers act on `Unschedulable`. */
export const NOT_PLACED_REASONS = ["NotPlaced", "Unschedulable"] as const;
export type NotPlacedReason = (typeof NOT_PLACED_REASONS)[number];

/** `now`: epoch ms. `shownAs`: the operator's reason for pods that no member can have. */
interface Waiting {
  readonly reason: string;
  readonly message: string;
  readonly now: number;
  readonly shownAs?: NotPlacedReason | undefined;
}

// kube-scheduler's event FailedScheduling, too, goes with the condition's reason Unschedulable.
const PLACEMENT_REASONS: ReadonlySet<string> = new Set(["NotPlaced", "FailedScheduling"]);

/** A scheduler's PodScheduled, or for a bound pod a kubelet's condition. */
export function notPlacedCondition(proxy: Pod, { reason, message, now, shownAs = "NotPlaced" }: Waiting): PodCondition {
  const type = typeFor(proxy);
  const waiting = [conditionOf(proxy, type), conditionOf(proxy, PLACED_CONDITION)];
  const since = waiting.find((condition) => condition?.status === "False")?.lastTransitionTime;
  const { generation } = proxy.metadata ?? {};
  return {
    type,
    status: "False",
    reason: PLACEMENT_REASONS.has(reason) ? shownAs : reason,
    message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message,
    lastTransitionTime: since ?? timestamp(now),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}

/** Returns undefined if none was written yet. */
export function whyNotPlaced(proxy: Pod): PodCondition | undefined {
  const condition = conditionOf(proxy, typeFor(proxy));
  // The API server writes SchedulingGated; kubelets write no reason.
  const isOurs = condition?.reason !== undefined && condition.reason !== "SchedulingGated";
  return isOurs && condition.status === "False" ? condition : undefined;
}

/** Only a Binding makes `PodScheduled` True, and it never becomes False again. */
function typeFor(proxy: Pod): string {
  return isBound(proxy) ? "PodReadyToStartContainers" : "PodScheduled";
}
