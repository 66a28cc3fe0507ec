import { describe, expect, test, vi } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { together } from "../../../../src/controllers/copying/pod-copier.ts";
import type { Preparer } from "../../../../src/controllers/preparer.ts";
import { type Needs, type Preparation, preparationIn } from "../../../../src/placement/needs.ts";

const proxy: Stored<Pod> = { metadata: { name: "p", namespace: "n", uid: "u", resourceVersion: "1" } };

function one(needs: Needs | undefined, prepared = true): Preparer {
  return { needs: () => needs, prepare: vi.fn(() => prepared) };
}

function having(preparation: Preparation): Needs {
  return { state: "there", in: () => preparation };
}

describe("the combined state of several copiers", () => {
  test.each<[string, Preparation, Preparation, Preparation]>([
    ["is prepared when all of it is", "prepared", "prepared", "prepared"],
    ["is unprepared when one lacks a copy", "prepared", "unprepared", "unprepared"],
    ["is refused when one is", "unprepared", { refused: "no" }, { refused: "no" }],
  ])("%s", (_, first, second, expected) => {
    for (const [a, b] of [
      [first, second],
      [second, first],
    ] as const) {
      const needs = together([one(having(a)), one(having(b))]).needs(proxy);
      expect(preparationIn(needs, "west")).toEqual(expected);
    }
  });

  test("is undefined when no copier has objects for the pod", () => {
    expect(together([one(undefined), one(undefined)]).needs(proxy)).toBeUndefined();
  });

  test("is missing or awaited when one is", () => {
    const missing = { state: "missing", reason: "Failed", message: "gone" } as const;
    const awaited = { state: "awaited" } as const;
    expect(together([one(having("prepared")), one(awaited)]).needs(proxy)).toEqual(awaited);
    expect(together([one(awaited), one(missing)]).needs(proxy)).toEqual(missing);
  });

  test("asks every copier, whatever the first answers", () => {
    const [a, b] = [one(undefined, false), one(undefined, true)];
    expect(together([a, b]).prepare(objectKey({ namespace: "n", name: "p" }), "u", "west")).toBe(false);
    expect(b.prepare).toHaveBeenCalledOnce();
  });
});
