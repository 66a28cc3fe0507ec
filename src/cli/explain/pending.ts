import type { WholePlace } from "../../whole/type.ts";
import type { Reason } from "./model.ts";

/** Pods without a member, for one reason. */
export interface PendingPods {
  readonly pods: readonly string[];
  readonly reason: string;
  /** The condition's message, with a reason for each member. */
  readonly message: string;
}

/** Returns pods without a member, those of one reason together. */
export function pendingPods(waiting: readonly (Reason & { readonly name: string })[]): PendingPods[] {
  const groups = Map.groupBy(waiting, ({ reason, message }) => `${reason}: ${message}`);
  return [...groups.values()].flatMap((those) =>
    those.slice(0, 1).map(({ reason, message }) => ({ pods: those.map(({ name }) => name), reason, message })),
  );
}

/** Returns why no member gets a whole object, where that is said of no single member. */
export function whyNowhere({ problem, clusters, others }: WholePlace): string | undefined {
  return (
    problem ?? (clusters.length + others.length === 0 ? "no member cluster has joined: see `legation join`" : undefined)
  );
}
