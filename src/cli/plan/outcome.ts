import { counted } from "../../api/wording.ts";
import type { SimulatedPlace } from "../../simulation/simulation.ts";
import type { Declined, WholePlace } from "../../whole/type.ts";
import { type PendingPods, pendingPods } from "../explain/pending.ts";

export interface Plan {
  /** Every pod and whole object has a place. */
  readonly fits: boolean;
  readonly workloads: readonly WorkloadPlan[];
  /** Facts of a member that the host does not know, so that the answer is a guess there. */
  readonly guesses: readonly { readonly cluster: string; readonly message: string }[];
  /** Checks that were not made, each with the reason. */
  readonly notChecked: readonly string[];
  /** Words for what the plan does not count, since the account may not read it. */
  readonly hidden?: string | undefined;
}

export interface WorkloadPlan {
  readonly kind: string;
  /** Absent for objects without one. */
  readonly namespace?: string;
  readonly name: string;
  readonly outcome: PlanOutcome;
  /** Why it is refused, or not delegated. */
  readonly message?: string;
  /** Warnings of Legation's webhook. */
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
  readonly pods: readonly PlannedPod[];
  readonly clusters: readonly PlannedMember[];
  /** The members that get a whole object, which has no pods here. */
  readonly object?: WholePlace;
}

export type PlanOutcome =
  | "fits"
  | "waits" // some of its pods, or the whole object, find no place
  | "refused" // the API server does not take it
  | "notDelegated"; // its pods are the host's own

/** Returns a plan of an object without pods. An empty namespace stands for none. */
export function emptyPlan({
  kind,
  namespace,
  name,
}: Required<Pick<WorkloadPlan, "kind" | "namespace" | "name">>): WorkloadPlan {
  const named = { kind, ...(namespace === "" ? {} : { namespace }), name };
  return { ...named, outcome: "fits", warnings: [], notes: [], pods: [], clusters: [] };
}

export type PlannedPod = { readonly name: string } & Omit<SimulatedPlace, "others">;

export function isWaiting({ cluster }: PlannedPod): boolean {
  return cluster === undefined;
}

export function waitingPods(pods: readonly PlannedPod[]): PendingPods[] {
  return pendingPods(pods.filter(isWaiting).map(({ name, reason = "", message = "" }) => ({ name, reason, message })));
}

export interface PlannedMember {
  readonly cluster: string;
  /** Number of the workload's pods that are there now. */
  readonly now: number;
  readonly pods: number;
  /** Number of pods that wait in the member for room. */
  readonly waiting: number;
  readonly whyNot: readonly { readonly reason: string; readonly message: string; readonly pods: number }[];
}

/** Sums up a workload's pods by member, in order, with names that are no member's. `currentMembers` are the members of its pods now. */
export function plannedMembers(
  members: readonly string[],
  currentMembers: readonly (string | undefined)[],
  pods: readonly PlannedPod[],
  declined: readonly Declined[],
): PlannedMember[] {
  const names = new Set([...members, ...declined.map(({ cluster }) => cluster)]);
  return [...names].sort().map((cluster) => {
    const reasons = Map.groupBy(
      declined.filter((one) => one.cluster === cluster),
      ({ reason }) => reason,
    );
    return {
      cluster,
      now: currentMembers.filter((member) => member === cluster).length,
      pods: pods.filter((pod) => pod.cluster === cluster).length,
      waiting: pods.filter(({ waitsIn }) => waitsIn === cluster).length,
      // Room of a member changes with each pod: the last message stands.
      whyNot: [...reasons].map(([reason, those]) => ({
        reason,
        message: those.at(-1)?.message ?? "",
        pods: those.length,
      })),
    };
  });
}

/** Formats how many pods a plan places in a member: `2`, `2 (+1 waiting)`. */
export function placedText({ pods, waiting }: PlannedMember): string {
  return waiting === 0 ? String(pods) : `${pods} (+${waiting} waiting)`;
}

/** Returns why pods of a plan do not go to a member. With those that it gets, their numbers add up to all. */
export function whyNotMore({ whyNot }: Pick<PlannedMember, "whyNot">, all: number): string[] {
  return whyNot.map(({ message, pods }) => (pods === all ? message : `${message} (${counted(pods)})`));
}
