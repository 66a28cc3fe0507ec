import type { PlannedMember } from "../../plan/outcome.ts";
import { counted } from "./format.ts";

/** Returns why pods of a plan do not go to a member. With those that it gets, their numbers add up to all. */
export function whyNotMore({ whyNot }: Pick<PlannedMember, "whyNot">, all: number): string[] {
  return whyNot.map(({ message, pods }) => (pods === all ? message : `${counted(pods, "pod")} of ${all}: ${message}`));
}
