import { MEMBER_NAMES, type MemberName } from "./members.ts";

/** Default refusals of members in the namespace that scenarios share. */
export const CLOSED = {
  north: "the pod does not tolerate its taint team=gold:NoSchedule",
  south: "its namespaceSelector does not admit namespace {namespace}",
} as const;

/** The refusal for members that `legation.dev/clusters` does not name. */
export const NOT_NAMED = "not named by legation.dev/clusters";

/** Stands for the words of a member's scheduler, where the pod waits for a node. */
export const SCHEDULER = "{scheduler}";

/** A waiting pod's words: those given, and for the other members those of the author's names or of their operators. */
export function says(
  words: Partial<Record<MemberName, string>>,
  otherwise: Partial<Record<MemberName, string>> = CLOSED,
): string {
  const all = MEMBER_NAMES.flatMap((member) => {
    const text = words[member] ?? otherwise[member];
    return text === undefined ? [] : [`${member}: ${text}`];
  });
  return all.sort().join("; ");
}

/** Returns the same refusal for every member. */
export function allSay(words: string): Record<MemberName, string> {
  return { west: words, east: words, north: words, south: words };
}

/** The members that are not named. */
export function onlyNamed(words: Partial<Record<MemberName, string>>): string {
  return says(words, allSay(NOT_NAMED));
}
