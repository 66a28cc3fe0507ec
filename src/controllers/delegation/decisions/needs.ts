/** Whether a member has what a pod needs of its namespace: ConfigMaps, Secrets and its account, say. */
export type Readiness = "ready" | "unprepared" | { readonly refused: string };

/** In kubelet's or the scheduler's words, which a pod's author knows. */
export interface Why {
  readonly reason: string;
  readonly message: string;
}

/**
 * What a pod needs beside a node, as the host has it: `awaited` has not been read yet, `missing` is not there or cannot be read. Only
 * of what is there something can be said of members.
 */
export type Needs =
  | { readonly state: "awaited" }
  | ({ readonly state: "missing" } & Why)
  | { readonly state: "there"; readonly in: (member: string) => Readiness };

/** What the host does not have, no member can be given. */
export function readinessIn(needs: Needs | undefined, member: string): Readiness {
  if (needs === undefined) return "ready";
  return needs.state === "there" ? needs.in(member) : "unprepared";
}

/** Whether a pod can be made in a member as far as that depends on what it needs. */
export function isPrepared(needs: Needs | undefined, member: string): boolean {
  return readinessIn(needs, member) === "ready";
}

/** Why the member cannot have what the pod needs; undefined while it has it, or may. */
export function refusedIn(needs: Needs | undefined, member: string): string | undefined {
  const readiness = readinessIn(needs, member);
  return typeof readiness === "object" ? readiness.refused : undefined;
}

/** How ready a member is for all, by how ready it is for each: one refusal is enough. */
export function leastReady(all: readonly Readiness[]): Readiness {
  const refused = all.find((readiness) => typeof readiness === "object");
  return refused ?? (all.includes("unprepared") ? "unprepared" : "ready");
}

/** What a pod is told when neither time nor Legation gives the member what it needs. */
export function whyUnprepared(needs: Needs | undefined, member: string): Why | undefined {
  if (needs?.state === "missing") return { reason: needs.reason, message: needs.message };
  const refused = refusedIn(needs, member);
  return refused === undefined ? undefined : { reason: "RefusedByMember", message: `${member}: ${refused}` };
}
