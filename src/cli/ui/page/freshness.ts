import { age } from "../../../api/wording.ts";
import type { MemberRow, PodRow } from "../model.ts";

/** Silence of the host after which what the page shows may be old. */
const OLD_AFTER_MS = 10_000;

/** The page's connection, and when the host's API server was last heard. */
export interface Heard {
  readonly isConnected: boolean;
  /** Epoch ms of the browser. Undefined: never heard. */
  readonly heardAt: number | undefined;
  /** The time at which the page began to listen; epoch ms of the browser. */
  readonly startedAt: number;
  /** Why the host cannot be read. */
  readonly problem: string | undefined;
}

/** Reports whether what the page shows may be old. */
export function isOld({ heardAt, startedAt }: Heard, now: number): boolean {
  return now - (heardAt ?? startedAt) > OLD_AFTER_MS;
}

/** Returns the state of the connection in a few words. */
export function connectionWords(heard: Heard, now: number): string {
  const { isConnected, heardAt, problem } = heard;
  if (isOld(heard, now)) return heardAt === undefined ? "never heard" : `last heard ${age(now - heardAt)} ago`;
  if (!isConnected) return heardAt === undefined ? "connecting" : "not connected";
  if (problem !== undefined) return "cannot be read";
  return heardAt === undefined ? "connecting" : "live";
}

/** Returns why what is shown may be old, as a sentence. Undefined if it is not. */
export function whyOld(heard: Heard, now: number): string | undefined {
  const { heardAt, isConnected, problem } = heard;
  if (!isOld(heard, now)) {
    return problem === undefined ? undefined : `The host cannot be read, so what is shown may be old: ${problem}`;
  }
  const who = isConnected ? "The host's API server" : "The server of this page";
  const since = heardAt === undefined ? "has not answered yet" : `was last heard ${age(now - heardAt)} ago`;
  const shown = heardAt === undefined ? "" : "; what is shown is from then";
  return `${who} ${since}${shown}${problem === undefined ? "." : `: ${problem}`}`;
}

// Each row of a table asks for its member.
const BY_NAME = new WeakMap<readonly MemberRow[], ReadonlyMap<string, MemberRow>>();

function memberNamed(name: string, members: readonly MemberRow[]): MemberRow | undefined {
  const byName = BY_NAME.get(members) ?? new Map(members.map((row) => [row.name, row]));
  BY_NAME.set(members, byName);
  return byName.get(name);
}

/** Returns why what is known of a member's pods is old. Undefined: it is current, or the members are not read yet. */
export function whyLost(member: string, members: readonly MemberRow[] | undefined): string | undefined {
  if (members === undefined) return undefined;
  const row = memberNamed(member, members);
  if (row === undefined) return `${member} is no member any more`;
  return row.ready === "True"
    ? undefined
    : `${member} is not ready${row.reason === undefined ? "" : `: ${row.reason}`}`;
}

/** Returns why a pod's row is what was last known. Undefined: it is current, or the pod has ended. */
export function whyLastKnown(
  { state, member }: Pick<PodRow, "state" | "member">,
  members: readonly MemberRow[] | undefined,
): string | undefined {
  const isOver = state === "succeeded" || state === "failed";
  return isOver || member === undefined ? undefined : whyLost(member, members);
}
