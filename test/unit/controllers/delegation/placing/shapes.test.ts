import { describe, expect, test } from "vitest";
import { Shapes, shapeOf } from "../../../../../src/controllers/delegation/placing/shapes.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";

const refusal = { cluster: "west", reason: "Unschedulable", message: "no node fits" } as const;
const now = 1_000_000;

function refused(): Shapes {
  const shapes = new Shapes();
  shapes.refuse("west", "large", refusal, "1.0", now);
  return shapes;
}

describe("a shape of pod that a member has refused", () => {
  test.each<[string, Parameters<Shapes["refusal"]>, boolean]>([
    ["is not tried there again", ["west", "large", "b", "1.0", now + 1], true],
    ["is tried elsewhere", ["east", "large", "b", "1.0", now + 1], false],
    ["says nothing of other shapes", ["west", "small", "b", "1.0", now + 1], false],
    ["is tried again when something there has changed", ["west", "large", "b", "1.1", now + 1], false],
    ["is tried again after a while", ["west", "large", "b", "1.0", now + 30_000], false],
  ])("%s", (_, question, known) => {
    expect(refused().refusal(...question)?.refusal).toBe(known ? refusal : undefined);
  });

  test("is tried by one pod at a time", () => {
    const shapes = refused();
    shapes.attempt("west", "large", "a", now + 30_000);
    expect(shapes.refusal("west", "large", "a", "1.1", now + 31_000)).toBeUndefined();
    expect(shapes.refusal("west", "large", "b", "1.1", now + 31_000)).toEqual({ refusal, until: now + 90_000 });
    expect(shapes.refusal("west", "large", "b", "1.1", now + 90_000)).toBeUndefined();
  });

  test("is free for all once one has found a node", () => {
    const shapes = refused();
    expect(shapes.accept("west", "small")).toBe(false);
    expect(shapes.accept("west", "large")).toBe(true);
    expect(shapes.empty).toBe(true);
  });

  test("is another thing than what keeps one pod alone out, whatever its shape, for half a minute", () => {
    const shapes = new Shapes();
    shapes.refuseAlone("west", "a", refusal, now);
    const refusedFor = (uid: string, at: number) => shapes.refusal("west", "large", uid, "1.0", at)?.refusal;
    expect([refusedFor("a", now), refusedFor("a", now + 29_999)]).toEqual([refusal, refusal]);
    expect([refusedFor("b", now), refusedFor("a", now + 30_000)]).toEqual([undefined, undefined]);
  });

  test("is forgotten when there are too many", () => {
    const shapes = refused();
    for (let count = 0; count < 1000; count++) shapes.refuse("west", `s${count}`, refusal, "1.0", now);
    expect(shapes.refusal("west", "large", "b", "1.0", now)).toBeUndefined();
    expect(shapes.refusal("west", "s0", "b", "1.0", now)).toBeDefined();
  });
});

describe("the shape of a pod", () => {
  const volume = (name: string) => ({
    volumes: [{ name }],
    containers: [{ name: "main", image: "x", volumeMounts: [{ name, mountPath: "/token" }] }],
  });
  test("leaves out what is its own", () => {
    const one = proxyPod({ name: "one", spec: { hostname: "one", ...volume("kube-api-access-abcde") } });
    const two = proxyPod({ name: "two", spec: { hostname: "two", ...volume("kube-api-access-fghij") } });
    expect(shapeOf(one)).toBe(shapeOf(two));
  });

  test.each([
    ["namespace", proxyPod({ metadata: { namespace: "other" } })],
    ["volumes", proxyPod({ spec: volume("data") })],
    ["node selector", proxyPod({ spec: { nodeSelector: { gpu: "" } } })],
  ])("is another with another %s", (_, pod) => {
    expect(shapeOf(pod)).not.toBe(shapeOf(proxyPod()));
  });

  test("is another with other overrides, which make another pod of it", () => {
    const annotations = { "legation.dev/overrides": '[{"patch": [{"op": "remove", "path": "/spec/hostname"}]}]' };
    expect(shapeOf(proxyPod({ metadata: { annotations } }))).not.toBe(shapeOf(proxyPod()));
  });
});
