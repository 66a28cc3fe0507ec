import { describe, expect, test } from "vitest";
import type { DivisionShare } from "../../../src/placement/division.ts";
import { sequence } from "../../../src/placement/division.ts";
import { DivisionOrder } from "../../../src/placement/division-order.ts";
import { nextInUpdate, type UpdateInput } from "../../../src/placement/update-division.ts";

function shares(
  weights: Readonly<Record<string, number>>,
  least: Readonly<Record<string, number>> = {},
): DivisionShare[] {
  return Object.entries(weights).map(([cluster, weight]) => {
    return { cluster, weight, least: least[cluster] ?? 0, most: Number.POSITIVE_INFINITY };
  });
}

/** The first so many of the order. */
function first(of: readonly DivisionShare[], count: number): string[] {
  const all: string[] = [];
  for (const cluster of sequence(of)) {
    if (all.length === count) break;
    all.push(cluster);
  }
  return all;
}

interface Case {
  readonly of: readonly DivisionShare[];
  /** The old ones, the last to go first. */
  readonly old: readonly string[];
  readonly own?: Readonly<Record<string, number>>;
  readonly atOnce?: number;
  readonly choices?: readonly string[];
}

function next({ of, old, own = {}, atOnce = 1, choices }: Case): string | undefined {
  const clusters = of.map(({ cluster }) => cluster);
  const input: UpdateInput = {
    order: new DivisionOrder(of),
    clusters,
    choices: choices ?? clusters,
    own,
    leaving: [...old].reverse(),
    atOnce,
  };
  return nextInUpdate(input);
}

describe("the next pod of a new ReplicaSet", () => {
  const even = shares({ a: 1, b: 1 });
  const twoToOne = shares({ a: 2, b: 1 });
  const eager = shares({ a: 1, b: 1 }, { a: 4 });

  test.each<[string, Case, string | undefined]>([
    ["goes where its own order begins", { of: even, old: first(even, 6) }, "a"],
    ["follows its own order", { of: twoToOne, old: first(twoToOne, 6), own: { a: 2 } }, "b"],
    ["fills what the old ones lack", { of: even, old: ["a", "a", "a", "a"] }, "b"],
    ["leaves out who has what the others lack", { of: even, old: [], own: { a: 3 } }, "b"],
    ["takes what may have it", { of: even, old: ["a", "a", "a", "a"], choices: ["a"] }, "a"],
    ["has no place if no cluster may have it", { of: even, old: ["a"], choices: [] }, undefined],
    ["does not have the least a second time", { of: eager, old: first(eager, 8), own: { a: 3 } }, "b"],
    ["has the least in time for the end", { of: eager, old: first(eager, 2), own: { a: 2, b: 4 } }, "a"],
  ])("%s", (_, given, cluster) => {
    expect(next(given)).toBe(cluster);
  });
});

describe("a bound that no placement can meet", () => {
  test("within one for weights 7, 5, 5, 5: eleven new replicas need at least 4 and at most 3 in one cluster", () => {
    const order = first(shares({ a: 7, b: 5, c: 5, d: 5 }), 80);
    const counts = Array.from(
      { length: order.length - 11 },
      (_, from) => order.slice(from, from + 11).filter((cluster) => cluster === "a").length,
    );
    // While the first `from` are old, all together are to have as many more in a as the next eleven of the order.
    const atLeast = Math.max(...counts) - 1;
    const atMost = Math.min(...counts) + 1;
    expect({ atLeast, atMost }).toEqual({ atLeast: 4, atMost: 3 });
    // The old ones go: the greater number comes first, or it would never have to be met.
    expect(counts.lastIndexOf(5)).toBeGreaterThan(counts.indexOf(2));
  });

  test("within two for minReplicas 10 while 5 more may come and 5 may go", () => {
    // a is to have its 10 at each of these moments, b what is left of 25, 15, 25, 15.
    let best = Number.POSITIVE_INFINITY;
    for (let came = 0; came <= 5; came++) {
      for (let went = 0; went <= 10; went++) {
        for (let more = 0; more <= 10; more++) {
          // Old ones in a are 10, and then those that have not gone; in the end all are new.
          const inA = [10 + came, 10 + came - went, 10 + came - went + more, came + more];
          best = Math.min(best, Math.max(...inA.map((count) => Math.abs(count - 10))));
        }
      }
    }
    expect(best).toBe(3);
  });
});
