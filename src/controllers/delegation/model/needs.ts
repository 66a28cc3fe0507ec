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

/** Returns the reason to wait that is made of the reasons in members. */
export function because(reason: string, refusals: readonly MemberReason[]): WaitReason {
  return { reason, message: explain(refusals), refusals };
}

/** State of a pod's needs beside a node, on the host. `awaited`: not read yet. `missing`: not there, or unreadable. */
export type NeedsState =
  | { readonly state: "awaited" }
  | ({ readonly state: "missing" } & WaitReason)
  | { readonly state: "there" };

/** A pod's needs, with each member's readiness once all of them are there. */
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

/** Reports whether a pod can be created in a member as far as its needs go. */
export function isPrepared(needs: Needs | undefined, member: string): boolean {
  return isReady(readinessIn(needs, member));
}

/** Returns why the member cannot have what the pod needs; undefined while it has it, or may. */
export function refusedIn(needs: Needs | undefined, member: string): string | undefined {
  return refusalIn(readinessIn(needs, member));
}

/** Reports whether a member has all that the pod needs. Absent: the pod needs nothing. */
export function isReady(readiness: Readiness = "ready"): boolean {
  return readiness === "ready";
}

/** Returns the refusal in a readiness; undefined where there is none. */
export function refusalIn(readiness: Readiness = "ready"): string | undefined {
  return typeof readiness === "object" ? readiness.refused : undefined;
}

/** Returns the readiness for all needs from that for each: one refusal is enough. */
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
