import type { Refusal } from "./candidate.ts";
import { explain } from "./rank.ts";

/** The state of the copies that a pod needs in a member: ConfigMaps, Secrets, its service account. */
export type Preparation = "prepared" | "unprepared" | { readonly refused: string };

/** A reason to wait, in the kubelet's or the scheduler's words. */
export interface WaitReason {
  readonly reason: string;
  readonly message: string;
  /** The reason in each member that the message names. Reasons are compared by these, never by their words. */
  readonly refusals?: readonly WaitRefusal[];
}

/** The reason of one member in a message. Unlike a refusal it may have any reason. */
export type WaitRefusal = Omit<Refusal, "reason"> & { readonly reason: string };

export function because(reason: string, refusals: readonly WaitRefusal[]): WaitReason {
  return { reason, message: explain(refusals), refusals };
}

/** State of a pod's needs beside a node, on the host. `awaited`: not read yet. `missing`: not there, or unreadable. */
export type NeedsState =
  | { readonly state: "awaited" }
  | ({ readonly state: "missing" } & WaitReason)
  | { readonly state: "there" };

/** The state of a pod's needs on the host, and of their copies in each member. */
export type Needs =
  | Exclude<NeedsState, { readonly state: "there" }>
  | { readonly state: "there"; readonly in: (member: string) => Preparation };

export function needsState(needs: Needs | undefined): NeedsState | undefined {
  return needs?.state === "there" ? { state: "there" } : needs;
}

/** Returns the state of the copies in the member. `unprepared` while the host lacks one of their sources. */
export function preparationIn(needs: Needs | undefined, member: string): Preparation {
  if (needs === undefined) return "prepared";
  return needs.state === "there" ? needs.in(member) : "unprepared";
}

export function isPreparedIn(needs: Needs | undefined, member: string): boolean {
  return isPrepared(preparationIn(needs, member));
}

export function refusedIn(needs: Needs | undefined, member: string): string | undefined {
  return refusalIn(preparationIn(needs, member));
}

export function isPrepared(preparation: Preparation = "prepared"): boolean {
  return preparation === "prepared";
}

export function refusalIn(preparation: Preparation = "prepared"): string | undefined {
  return typeof preparation === "object" ? preparation.refused : undefined;
}

/** Returns a refusal if there is any: the pod needs all of them. */
export function leastPrepared(all: readonly Preparation[]): Preparation {
  const refused = all.find((preparation) => typeof preparation === "object");
  return refused ?? (all.includes("unprepared") ? "unprepared" : "prepared");
}

/** Returns the needs of a pod that has all of them. Undefined if there are none. */
export function mergedNeeds(needs: readonly Needs[]): Needs | undefined {
  const [only] = needs;
  if (needs.length < 2) return only;
  const unmet = needs.find(({ state }) => state === "missing") ?? needs.find(({ state }) => state === "awaited");
  if (unmet !== undefined) return unmet;
  return {
    state: "there",
    in: (member) => leastPrepared(needs.map((one) => preparationIn(one, member))),
  };
}

/** Returns what to tell the author when neither time nor Legation gives the member what the pod needs. */
export function whyUnprepared(
  needs: NeedsState | undefined,
  { name, preparation }: { readonly name: string; readonly preparation?: Preparation },
): WaitReason | undefined {
  if (needs?.state === "missing") return { reason: needs.reason, message: needs.message };
  const refused = refusalIn(preparation);
  const reason = "RefusedByMember";
  return refused === undefined ? undefined : because(reason, [{ cluster: name, reason, message: refused }]);
}
