import { PLACED_CONDITION } from "../api/keys.ts";
import type { Pod, PodCondition } from "../api/kubernetes.ts";
import { timestamp } from "../api/timestamp.ts";
import { conditionOf, isBound } from "./phase.ts";

/** The reasons that operators choose from for a pod that no member can have. Cluster autoscalers act on `Unschedulable`. */
export const NOT_PLACED_REASONS = ["NotPlaced", "Unschedulable"] as const;
export type NotPlacedReason = (typeof NOT_PLACED_REASONS)[number];

/** Why a pod waits, as of a time in epoch ms; `shownAs` is the operator's word for a pod that no member can have. */
interface Waiting {
  readonly reason: string;
  readonly message: string;
  readonly now: number;
  readonly shownAs?: NotPlacedReason | undefined;
}

// kube-scheduler's event FailedScheduling goes with the condition's reason Unschedulable, too.
const PLACEMENT_REASONS: ReadonlySet<string> = new Set(["NotPlaced", "FailedScheduling"]);

// A hundred members have much to say, of each of thousands of pods.
const LONGEST_MESSAGE = 16_384;

/**
 * Returns the condition of a proxy that waits, with the reason in each member: as a scheduler writes it, or as a kubelet that cannot start a pod
 * which is bound to it.
 */
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

/** Returns the condition that says why a proxy waits; undefined when nothing has been reported of it yet. */
export function whyNotPlaced(proxy: Pod): PodCondition | undefined {
  const condition = conditionOf(proxy, typeFor(proxy));
  // The API server writes SchedulingGated at creation, and kubelets give no reason.
  const isOurs = condition?.reason !== undefined && condition.reason !== "SchedulingGated";
  return isOurs && condition.status === "False" ? condition : undefined;
}

/** Only a Binding makes `PodScheduled` True, and nothing makes it False again. */
function typeFor(proxy: Pod): string {
  return isBound(proxy) ? "PodReadyToStartContainers" : "PodScheduled";
}
