import { expect } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { memberOf } from "../../../src/pods/proxy.ts";
import { whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { OBJECT_LABEL } from "./objects.ts";
import type { Expected } from "./scenario.ts";
import { SCHEDULER } from "./words.ts";

/** Reports whether an object's pods are where they should be, and say what they should. */
export function expectOutcome(all: readonly Stored<Pod>[], object: string, expected: Expected): void {
  const pods = all.filter(({ metadata }) => metadata.labels?.[OBJECT_LABEL] === object);
  const counts: Record<string, number> = {};
  const waiting: string[] = [];
  for (const pod of pods) {
    const member = memberOf(pod);
    if (member === undefined) waiting.push(whyNotPlaced(pod)?.message ?? "");
    else counts[member] = (counts[member] ?? 0) + 1;
  }
  const { in: wanted, among, together, waits } = expected;
  const placed = pods.length - waiting.length;
  if (among !== undefined) {
    expect({
      placed,
      elsewhere: Object.keys(counts).filter((name) => !among.members.some((member) => member === name)),
    }).toEqual({
      placed: among.pods,
      elsewhere: [],
    });
  } else if (together !== undefined) {
    expect(Object.values(counts)).toEqual([together]);
  } else {
    expect(counts).toEqual(wanted ?? {});
  }
  expect(waiting).toHaveLength(waits === undefined ? 0 : (expected.waiting ?? 1));
  for (const [index, message] of waiting.entries()) {
    const namespace = pods[index]?.metadata.namespace ?? "";
    if (typeof waits === "string") expect(asWritten(message)).toBe(waits.replaceAll("{namespace}", namespace));
    else if (waits !== undefined) expect(message).toMatch(waits);
  }
}

/** A message with the words of a member's scheduler, which are its own to choose, left out. */
function asWritten(message: string): string {
  return message.replace(/: 0\/\d+ nodes are available.*?(?=; (?:east|north|south|west): |$)/, `: ${SCHEDULER}`);
}
