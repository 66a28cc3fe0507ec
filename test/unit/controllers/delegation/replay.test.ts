import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/controllers/delegation/decide.ts";
import { type DecisionRecord, redacted } from "../../../../src/controllers/delegation/decision/redact.ts";
import { hasProxy, type View } from "../../../../src/controllers/delegation/decision/view.ts";
import { runningStatus } from "../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, memory, world } from "./world.ts";

const FOLDER = new URL("./recorded/", import.meta.url);
const recorded = readdirSync(FOLDER).sort();

function recordIn(file: string): DecisionRecord {
  return JSON.parse(readFileSync(new URL(file, FOLDER), "utf8"));
}

describe("a replayed line of the debug log", () => {
  test.each(recorded)("leads to the recorded decision: %s", (file) => {
    const { view, now, decision } = recordIn(file);
    expect(decide(view, now)).toEqual(decision);
  });

  test("exists", () => {
    expect(recorded.length).toBeGreaterThan(0);
  });
});

describe("a view in the log", () => {
  const containers = [
    {
      name: "main",
      image: "app:1",
      command: ["s3cret"],
      args: ["s3cret"],
      env: [{ name: "PASSWORD", value: "s3cret" }],
    },
  ];
  const annotations = {
    "kubectl.kubernetes.io/last-applied-configuration": "s3cret",
    "legation.dev/overrides": "s3cret",
  };
  const proxy = boundProxy({ metadata: { annotations }, spec: { containers } });
  const delegate = delegateOf(proxy, { spec: { nodeName: "node-1", containers }, status: runningStatus() });
  const view: View = world(proxy, [member("west", { delegate })]);

  test("contains no environment, no command and no value of another project's annotation", () => {
    const text = JSON.stringify(redacted({ view, decision: decide(view, 0) }));
    expect(text).not.toContain("s3cret");
    expect(text).toContain("legation.dev/delegate-uid");
  });

  test.each<[string, View]>([
    ["of a pod that runs", view],
    ["of a pod whose delegate vanished", world(boundProxy(), [member("west")], gone)],
    ["of a pod that waits", world(delegate, [member("west", { used: 100 })], { memory: memory({ fresh: false }) })],
  ])("leads to the same actions as JSON, %s", (_, original) => {
    const copy: View = redacted(original);
    const types = (decided: View) => decide(decided, 1000).actions.map(({ type }) => type);
    expect(hasProxy(copy)).toBe(true);
    expect(types(copy)).toEqual(types(original));
  });
});
