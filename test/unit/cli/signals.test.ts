import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { answerSignals } from "../../../src/cli/signals.ts";

/** Returns a program's answers to signals that come at these milliseconds. */
function answersTo(...signals: readonly [atMs: number, name: "SIGINT" | "SIGTERM"][]): string[] {
  const answers: string[] = [];
  const source = new EventEmitter();
  let atMs = 0;
  answerSignals(
    ["SIGINT", "SIGTERM"],
    { first: (name) => answers.push(`cleans up on ${name}`), again: (name) => answers.push(`ends at once on ${name}`) },
    { on: (name, listener) => source.on(name, listener), now: () => atMs },
  );
  for (const [at, name] of signals) {
    atMs = at;
    source.emit(name);
  }
  return answers;
}

test("takes two signals at once for one Ctrl-C under npm run", () => {
  expect(answersTo([10, "SIGINT"], [11, "SIGINT"], [12, "SIGTERM"])).toEqual(["cleans up on SIGINT"]);
});

test("ends the program at a later second signal", () => {
  expect(answersTo([10, "SIGTERM"], [11, "SIGTERM"], [900, "SIGINT"])).toEqual([
    "cleans up on SIGTERM",
    "ends at once on SIGINT",
  ]);
});
