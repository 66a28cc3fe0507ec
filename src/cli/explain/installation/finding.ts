import type { Trouble } from "../model.ts";

/**
 * The outcome of one check. `INFO`: right for some users and not for others, and says for whom. `SKIP`: it could not be checked from
 * here, and says why.
 */
export type State = "OK" | "INFO" | "WARN" | "FAIL" | "SKIP";

/** The result of one check: the subject and what was found, in one line. */
export interface Finding extends Trouble {
  readonly state: State;
}

/** The findings about one part of the installation. */
export interface FindingGroup {
  readonly name: string;
  readonly findings: readonly Finding[];
}

type Judge = (what: string, remedy: string) => Finding;

export const info: Judge = (what, remedy) => ({ state: "INFO", what, remedy });
export const warn: Judge = (what, remedy) => ({ state: "WARN", what, remedy });
export const fail: Judge = (what, remedy) => ({ state: "FAIL", what, remedy });

export function ok(what: string): Finding {
  return { state: "OK", what };
}

export function skip(what: string, remedy?: string): Finding {
  return { state: "SKIP", what, ...(remedy === undefined ? {} : { remedy }) };
}

const AS_ADMINISTRATOR = "run it with an administrator's account of the host";

/** Returns the finding of what the user may not see. */
export function forbidden(what: string): Finding {
  return skip(what, AS_ADMINISTRATOR);
}

/** Reports whether a finding says that the user may not see something. */
export function isForbidden({ state, remedy }: Finding): boolean {
  return state === "SKIP" && remedy === AS_ADMINISTRATOR;
}

export function countStates(groups: readonly FindingGroup[]): Readonly<Record<State, number>> {
  const counts: Record<State, number> = { OK: 0, INFO: 0, WARN: 0, FAIL: 0, SKIP: 0 };
  for (const { state } of groups.flatMap(({ findings }) => findings)) counts[state] += 1;
  return counts;
}
