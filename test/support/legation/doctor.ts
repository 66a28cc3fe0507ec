import { expect } from "vitest";
import type { FindingGroup, State } from "../../../src/cli/explain/installation/finding.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { type EventuallyOptions, eventuallyPasses } from "../harness/wait.ts";
import { legationOn } from "./process.ts";

// A controller that starts again needs some seconds to see its members.
export const patient: EventuallyOptions = { timeoutMs: 60_000, intervalMs: 500 };

/** On a machine that does other things, too, each part answers by then. */
export const UNHURRIED = "--timeout=20s";

/** The result of a run. */
export interface Diagnosis {
  readonly code: number;
  readonly healthy: boolean;
  /** Words of each failure, and its remedy. */
  readonly problems: ReadonlyMap<string, string | undefined>;
  readonly states: (part: string) => readonly State[];
}

/** Runs `legation doctor` on the shared host, which has five seconds for each part without `--timeout`. */
export async function doctor(...args: string[]): Promise<Diagnosis> {
  const timeout = args.some((arg) => arg.startsWith("--timeout=")) ? [] : ["--timeout=5s"];
  const { code, stdout } = await legationOn(hostCluster(), "doctor", "-o", "json", ...timeout, ...args);
  const { healthy, groups } = JSON.parse(stdout) as { healthy: boolean; groups: readonly FindingGroup[] };
  const all = groups.flatMap(({ findings }) => findings);
  const problems = all.filter(({ state }) => state === "FAIL");
  return {
    code,
    healthy,
    problems: new Map(problems.map(({ what, remedy }) => [what, remedy])),
    states: (part) => all.filter(({ what }) => what.includes(part)).map(({ state }) => state),
  };
}

/** Returns the remedy of the failure whose words include these. */
export function remedyOf({ problems }: Diagnosis, words: string): string | undefined {
  const found = [...problems].find(([what]) => what.includes(words));
  expect(found, `${words} among ${[...problems.keys()].join("; ")}`).toBeDefined();
  return found?.[1];
}

/** Waits until nothing is wrong. */
export async function allWell(): Promise<void> {
  await eventuallyPasses(async () => {
    const { code, problems } = await doctor(UNHURRIED);
    expect([...problems.keys()]).toEqual([]);
    expect(code).toBe(0);
  }, patient);
}

/** Joins west again, which is the remedy of what is missing there. */
export async function rejoin(): Promise<void> {
  const west = `--member-kubeconfig=${memberCluster("west").kubeconfig}`;
  const server = `--member-server=${memberCluster("west").proxiedServer}`;
  expect(await legationOn(hostCluster(), "join", "west", west, server)).toMatchObject({ code: 0 });
}
