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

export function ok(what: string): Finding {
  return { state: "OK", what };
}

export function info(what: string, remedy: string): Finding {
  return { state: "INFO", what, remedy };
}

export function warn(what: string, remedy: string): Finding {
  return { state: "WARN", what, remedy };
}

export function fail(what: string, remedy: string): Finding {
  return { state: "FAIL", what, remedy };
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

export function skip(what: string, remedy?: string): Finding {
  return remedy === undefined ? { state: "SKIP", what } : { state: "SKIP", what, remedy };
}

export function countStates(groups: readonly FindingGroup[]): Readonly<Record<State, number>> {
  const counts: Record<State, number> = { OK: 0, INFO: 0, WARN: 0, FAIL: 0, SKIP: 0 };
  for (const { state } of groups.flatMap(({ findings }) => findings)) counts[state] += 1;
  return counts;
}
