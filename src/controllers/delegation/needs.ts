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

/** What a pod is told when neither time nor Legation gives the member what it needs. */
export function whyUnprepared(needs: Needs | undefined, member: string): Why | undefined {
  if (needs?.state === "missing") return { reason: needs.reason, message: needs.message };
  const readiness = readinessIn(needs, member);
  if (typeof readiness !== "object") return undefined;
  return { reason: "RefusedByMember", message: `${member}: ${readiness.refused}` };
}
