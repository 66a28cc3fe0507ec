import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { ShapeMap, shapeOf } from "../../../src/scheduling/pod-shapes.ts";
import { pod } from "../../support/builders/pod.ts";

describe("the shape of a pod", () => {
  const first = shapeOf(pod({ name: "web-0" }));

  test.each<[string, Stored<Pod>]>([
    ["name, uid and hostname", pod({ name: "web-1", uid: "uid-2", spec: { hostname: "web-1" } })],
    ["node", pod({ spec: { nodeName: "legation-west" } })],
    ["number in its workload", pod({ metadata: { labels: { "apps.kubernetes.io/pod-index": "1" } } })],
  ])("is the same whatever its %s", (_what, other) => {
    expect(shapeOf(other)).toEqual(first);
  });

  test("is the same whatever the names of its token volumes", () => {
    const [one, other] = ["kube-api-access-a1", "kube-api-access-b2"].map((name) =>
      pod({ spec: { volumes: [{ name }] } }),
    );
    expect(one && shapeOf(one)).toEqual(other && shapeOf(other));
  });

  test.each<[string, Stored<Pod>]>([
    ["namespace", pod({ metadata: { namespace: "other" } })],
    ["overrides", pod({ metadata: { annotations: { "legation.dev/overrides": "[]" } } })],
    ["spec", pod({ spec: { priority: 1 } })],
    ["node selector, whatever its keys", pod({ spec: { nodeSelector: { hostname: "a" } } })],
  ])("is another for another %s", (_what, other) => {
    expect(shapeOf(other).spec).not.toBe(first.spec);
  });

  test("with labels is another for other labels, and the spec's alone is not", () => {
    const labelled = shapeOf(pod({ metadata: { labels: { app: "web" } } }));
    expect([labelled.spec === first.spec, labelled.labels === first.labels]).toEqual([true, false]);
  });
});

describe("facts by shape", () => {
  test("are forgotten first that were set first, beyond a thousand of a member", () => {
    const facts = new ShapeMap<number>();
    for (let index = 0; index < 1000; index += 1) facts.set("west", `shape ${index}`, index);
    facts.set("west", "shape 0", 0);
    facts.set("west", "one more", -1);
    facts.set("east", "shape 1", 1);
    expect([facts.get("west", "shape 0"), facts.get("west", "shape 1"), facts.get("east", "shape 1")]).toEqual([
      0,
      undefined,
      1,
    ]);
  });

  test("leave nothing behind once all are deleted", () => {
    const facts = new ShapeMap<number>();
    facts.set("west", "a", 1);
    expect([facts.delete("west", "b"), facts.delete("west", "a"), facts.empty]).toEqual([false, true, true]);
  });
});
