import { inWords } from "../../told-for.ts";
import type { MemberView } from "./model.ts";

/** Why a pod waits, as it is told now and as it was told last. */
export interface Retelling {
  readonly reason: string;
  readonly message: string;
  readonly reported: string;
  /** Undefined where it was told something else meanwhile. */
  readonly reportedReason: string | undefined;
}

/** `none`: not worth a word yet. `little`: worth telling now and then. `news`: worth telling at once. */
export type Newness = "none" | "little" | "news";

// Between what two members say, as `explain` joins them.
const BETWEEN_MEMBERS = /; (?=[a-z0-9][a-z0-9-]*: )/;
// Words of a member that is not heard, whatever it would say of the pod.
const UNHEARD =
  /^[a-z0-9-]+: its (?:API server does not answer|pods and nodes are still being read|\w+ cannot be read)/;
const NOT_READY = "ClusterNotReady";

/**
 * How new other words about the same pod are. A member that is lost, and one that is back, change those of every pod that waits: with
 * thousands, each of two writes. Where nothing else differs, nobody is told of one whose probe has failed once, as most such
 * are back before they count as lost.
 */
export function newness({ reason, message, reported, reportedReason }: Retelling, members: Members): Newness {
  if (inWords(reported) === inWords(message)) return "little";
  if (reportedReason !== reason) return "news";
  const [before, now] = [wordsOf(reported), wordsOf(message)];
  const faltering = new Set(members.filter((member) => member.faltering === true).map(({ name }) => name));
  if (isSame(before, now, faltering)) return "none";
  const unheard = [...before, ...now].filter((words) => UNHEARD.test(words)).map(memberIn);
  return reason === NOT_READY || isSame(before, now, new Set([...faltering, ...unheard])) ? "little" : "news";
}

type Members = readonly MemberView[];

function wordsOf(message: string): readonly string[] {
  return inWords(message).split(BETWEEN_MEMBERS);
}

function memberIn(words: string): string {
  return words.slice(0, Math.max(0, words.indexOf(":")));
}

/** True when all members but these say the same. */
function isSame(before: readonly string[], now: readonly string[], but: ReadonlySet<string>): boolean {
  const rest = (words: readonly string[]): string => words.filter((each) => !but.has(memberIn(each))).join("; ");
  return rest(before) === rest(now);
}
