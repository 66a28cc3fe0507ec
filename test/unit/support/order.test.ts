import { describe, expect, test } from "vitest";
import { inOrder, type Timed } from "../../support/harness/order.ts";
import { TURNS } from "../../support/harness/place-of-file.ts";

const ALL_TURNS = [...new Set(Object.values(TURNS).flat())];

interface Named extends Timed {
  readonly name: string;
}

const names = (files: readonly Named[]): string[] => inOrder(files).map(({ name }) => name);
const file = (name: string, place: Named["place"], seconds: number, first = false): Named => ({
  name,
  place,
  seconds,
  first,
});

describe("the order of integration tests", () => {
  test("puts the longest first, each when the one before it for the same clusters gets its turn", () => {
    const files = [
      file("simulated 10", "simulated", 10),
      file("simulated 40", "simulated", 40),
      file("simulated 60", "simulated", 60),
      file("simulated 50", "simulated", 50),
      file("simulated 20", "simulated", 20),
      file("real 35", "real", 35),
      file("real 55", "real", 55),
      file("real 25", "real", 25),
      file("own 70", "own", 70),
      file("own 30", "own", 30),
    ];
    expect(names(files)).toEqual([
      // The first file of each turn runs at once: two on simulated nodes.
      ...["own 70", "simulated 60", "real 55", "simulated 50"],
      // The second of each turn waits for it.
      ...["simulated 40", "real 35", "own 30", "simulated 20"],
      // The third comes when the second gets its turn: after 55 seconds and after 60.
      ...["real 25", "simulated 10"],
    ]);
  });

  test("puts files that need unused clusters first, and those without Legation in a row", () => {
    const files = [
      file("own", "own", 70),
      file("pristine 5", "pristine", 5),
      file("simulated", "simulated", 60),
      file("pristine 10", "pristine", 10),
      file("unused", "simulated", 20, true),
    ];
    expect(names(files)).toEqual(["unused", "pristine 10", "simulated", "pristine 5", "own"]);
  });

  test("leaves no turn idle while a file for it waits, with two workers for each turn", () => {
    const files = Array.from({ length: 200 }, (_, number): Named => {
      const place = (["simulated", "simulated", "real", "own", "pristine"] as const)[number % 5] ?? "own";
      return file(`${place} ${number}`, place, 1 + ((number * 37) % 101));
    });
    expect(idleTurns(inOrder(files), 2 * ALL_TURNS.length)).toEqual([]);
  });
});

/** Returns the turns that were idle, and when, while a file for them waited. */
function idleTurns(files: readonly Named[], workers: number): string[] {
  const coming = [...files];
  const waiting: Named[] = [];
  const running = new Map<string, { readonly file: Named; readonly until: number }>();
  const idle: string[] = [];
  for (let now = 0; coming.length + waiting.length + running.size > 0; ) {
    waiting.push(...coming.splice(0, workers - waiting.length - running.size));
    for (const turn of ALL_TURNS.filter((name) => !running.has(name))) {
      const fits = (candidate: Named): boolean => TURNS[candidate.place].includes(turn);
      const next = waiting.findIndex(fits);
      const [begun] = next < 0 ? [] : waiting.splice(next, 1);
      if (begun !== undefined) running.set(turn, { file: begun, until: now + begun.seconds });
      else if (coming.some(fits)) idle.push(`${turn} at ${now}`);
    }
    now = Math.min(...[...running.values()].map(({ until }) => until));
    for (const [turn, { until }] of running) if (until === now) running.delete(turn);
  }
  return idle;
}
