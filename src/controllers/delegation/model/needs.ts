import type { Refusal } from "../../../placement/candidate.ts";
import { explain } from "../../../placement/rank.ts";

/** How far a member is in having what a pod needs of its namespace: ConfigMaps, Secrets, its service account. */
export type Readiness = "ready" | "unprepared" | { readonly refused: string };

/** A reason to wait, in the kubelet's or the scheduler's words. */
export interface WaitReason {
  readonly reason: string;
  readonly message: string;
  /** The reason in each member that the message names. Reasons are compared by these, never by their words. */
  readonly refusals?: readonly MemberReason[];
}

export type MemberReason = Omit<Refusal, "reason"> & { readonly reason: string };

export function because(reason: string, refusals: readonly MemberReason[]): WaitReason {
  return { reason, message: explain(refusals), refusals };
}

/** State of a pod's needs beside a node, on the host. `awaited`: not read yet. `missing`: not there, or unreadable. */
export type NeedsState =
  | { readonly state: "awaited" }
  | ({ readonly state: "missing" } & WaitReason)
  | { readonly state: "there" };

export type Needs =
  | Exclude<NeedsState, { readonly state: "there" }>
  | { readonly state: "there"; readonly in: (member: string) => Readiness };

export function needsState(needs: Needs | undefined): NeedsState | undefined {
  return needs?.state === "there" ? { state: "there" } : needs;
}

/** Returns the member's readiness. What the host lacks, no member can be given. */
export function readinessIn(needs: Needs | undefined, member: string): Readiness {
  if (needs === undefined) return "ready";
  return needs.state === "there" ? needs.in(member) : "unprepared";
}

export function isPrepared(needs: Needs | undefined, member: string): boolean {
  return isReady(readinessIn(needs, member));
}

export function refusedIn(needs: Needs | undefined, member: string): string | undefined {
  return refusalIn(readinessIn(needs, member));
}

export function isReady(readiness: Readiness = "ready"): boolean {
  return readiness === "ready";
}

export function refusalIn(readiness: Readiness = "ready"): string | undefined {
  return typeof readiness === "object" ? readiness.refused : undefined;
}

/** One refusal is enough. */
export function leastReady(all: readonly Readiness[]): Readiness {
  const refused = all.find((readiness) => typeof readiness === "object");
  return refused ?? (all.includes("unprepared") ? "unprepared" : "ready");
}

/** Returns what to tell the author when neither time nor Legation gives the member what the pod needs. */
export function whyUnprepared(
  needs: NeedsState | undefined,
  { name, readiness }: { readonly name: string; readonly readiness?: Readiness },
): WaitReason | undefined {
  if (needs?.state === "missing") return { reason: needs.reason, message: needs.message };
  const refused = refusalIn(readiness);
  const reason = "RefusedByMember";
  return refused === undefined ? undefined : because(reason, [{ cluster: name, reason, message: refused }]);
}
