import { describe, expect, test } from "vitest";
import { shapeOf } from "../../../../src/scheduling/pod-shapes.ts";
import { ShapeRefusals } from "../../../../src/scheduling/retries/shape-refusals.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const refusal = { cluster: "west", reason: "Unschedulable", message: "no node fits" } as const;
const now = 1_000_000;
const large = { spec: "large", labels: "large of a" };
const small = { spec: "small", labels: "small of a" };

function refused(): ShapeRefusals {
  const shapes = new ShapeRefusals();
  shapes.refuse("west", "large", refusal, "1.0", now);
  return shapes;
}

describe("a shape of pod that a member has refused", () => {
  test.each<[string, Parameters<ShapeRefusals["pause"]>, boolean]>([
    ["is not tried there again", ["west", large, "b", "1.0", now + 1], true],
    ["is tried elsewhere", ["east", large, "b", "1.0", now + 1], false],
    ["does not concern other shapes", ["west", small, "b", "1.0", now + 1], false],
    ["is tried again when something there has changed", ["west", large, "b", "1.1", now + 1], false],
    ["is tried again after a while", ["west", large, "b", "1.0", now + 30_000], false],
  ])("%s", (_, question, known) => {
    expect(refused().pause(...question)?.refusal).toBe(known ? refusal : undefined);
  });

  test("is tried by one pod at a time", () => {
    const shapes = refused();
    shapes.attempt("west", large, "a", now + 30_000);
    expect(shapes.pause("west", large, "a", "1.1", now + 31_000)).toBeUndefined();
    expect(shapes.pause("west", large, "b", "1.1", now + 31_000)).toEqual({ refusal, until: now + 90_000 });
    expect(shapes.pause("west", large, "b", "1.1", now + 90_000)).toBeUndefined();
  });

  test("is free for all once one pod has found a node", () => {
    const shapes = refused();
    expect(shapes.accept("west", small)).toBe(false);
    expect(shapes.accept("west", large)).toBe(true);
    expect(shapes.empty).toBe(true);
  });

  test("holds for the same labels alone if these decide", () => {
    const shapes = new ShapeRefusals();
    shapes.refuse("west", large.labels, refusal, "1.0", now);
    const refusedFor = (labels: string) => shapes.pause("west", { ...large, labels }, "b", "1.0", now)?.refusal;
    expect([refusedFor(large.labels), refusedFor("large of b")]).toEqual([refusal, undefined]);
    expect(shapes.accept("west", large)).toBe(true);
    expect(shapes.empty).toBe(true);
  });

  test("is tried by one pod for its spec and for its labels", () => {
    const shapes = refused();
    shapes.refuse("west", large.labels, refusal, "1.0", now);
    shapes.attempt("west", large, "a", now + 30_000);
    const until = now + 90_000;
    for (const labels of [large.labels, "large of b"])
      expect(shapes.pause("west", { ...large, labels }, "b", "1.0", now + 30_000)?.until).toBe(until);
    expect([shapes.abandon("a"), shapes.abandon("a")]).toEqual([true, false]);
    expect(shapes.pause("west", large, "b", "1.0", now + 30_000)).toBeUndefined();
  });

  test("is free for all once the API server that refused it takes one, though its scheduler has not answered", () => {
    const shapes = refused();
    shapes.refuse("west", large.labels, { ...refusal, reason: "RefusedByMember" }, "1.0", now);
    expect(shapes.accept("west", large, "RefusedByMember")).toBe(true);
    expect(shapes.pause("west", large, "b", "1.0", now)?.refusal).toBe(refusal);
  });

  test("is forgotten when there are too many", () => {
    const shapes = refused();
    for (let count = 0; count < 1000; count++) shapes.refuse("west", `s${count}`, refusal, "1.0", now);
    expect(shapes.pause("west", large, "b", "1.0", now)).toBeUndefined();
    expect(shapes.pause("west", { ...small, spec: "s0" }, "b", "1.0", now)).toBeDefined();
  });
});

describe("the shape of a pod", () => {
  const volume = (name: string) => ({
    volumes: [{ name }],
    containers: [{ name: "main", image: "x", volumeMounts: [{ name, mountPath: "/token" }] }],
  });
  test("leaves out the pod's own values", () => {
    const one = proxyPod({ name: "one", spec: { hostname: "one", ...volume("kube-api-access-abcde") } });
    const two = proxyPod({ name: "two", spec: { hostname: "two", ...volume("kube-api-access-fghij") } });
    expect(shapeOf(one)).toEqual(shapeOf(two));
  });

  test("leaves out labels that number the pods of a controller, and keeps the others beside the spec", () => {
    const labelled = (labels: Record<string, string>) => shapeOf(proxyPod({ metadata: { labels } }));
    const [one, two] = ["0", "1"].map((index) => labelled({ app: "a", "apps.kubernetes.io/pod-index": index }));
    const other = labelled({ app: "b" });
    expect(one).toEqual(two);
    expect(other.spec).toBe(one?.spec);
    expect(other.labels).not.toBe(one?.labels);
  });

  test.each([
    ["namespace", proxyPod({ metadata: { namespace: "other" } })],
    ["volumes", proxyPod({ spec: volume("data") })],
    ["node selector", proxyPod({ spec: { nodeSelector: { gpu: "" } } })],
  ])("differs with another %s", (_, pod) => {
    expect(shapeOf(pod).spec).not.toBe(shapeOf(proxyPod()).spec);
  });

  test("differs with other overrides", () => {
    const annotations = { "legation.dev/overrides": '[{"patch": [{"op": "remove", "path": "/spec/hostname"}]}]' };
    expect(shapeOf(proxyPod({ metadata: { annotations } })).spec).not.toBe(shapeOf(proxyPod()).spec);
  });
});
