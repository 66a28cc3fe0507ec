import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../../../src/api/keys.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { endedStatus, runningStatus } from "../../../../support/builders/pod.ts";
import { names, now } from "../decided.ts";
import { boundProxy, delegateOf, member, memory, world } from "../world.ts";

describe("a bound proxy", () => {
  test("takes no status from a delegate other than the recorded one", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const delegate = delegateOf(proxy, { uid: "forged", spec: { nodeName: "n" }, status: endedStatus(0) });
    expect(names(decide(world(proxy, [member("west", { delegate })]), now).actions)).toEqual(["delete west"]);
  });
});

test("drops the first delegate's member conditions from the proxy when it adopts a second delegate", () => {
  const conditions = [
    { type: "example.com/of-the-first", status: "True" },
    { type: "example.com/of-the-host", status: "True" },
  ];
  const proxy = boundProxy({ status: { phase: "Pending", conditions } });
  const record = { labels: [], annotations: [], conditions: ["example.com/of-the-first"] };
  const first = delegateOf(proxy);
  const annotations = { ...first.metadata.annotations, [FORWARDED_ANNOTATION]: JSON.stringify(record) };
  const departed = { ...first, metadata: { ...first.metadata, annotations } };
  const west = member("west", { departed, delegate: delegateOf(proxy, { uid: "second", spec: { nodeName: "n" } }) });
  expect(decide(world(proxy, [west]), now).actions).toMatchObject([
    { type: "status", patch: { status: { conditions: [{ type: "example.com/of-the-first", $patch: "delete" }] } } },
  ]);
  // A refused or undone write holds up nothing here.
  const [action] = decide(world(proxy, [west]), now).actions;
  const refused = memory({ ineffective: new Map([[JSON.stringify((action as { patch?: object }).patch), now + 1]]) });
  expect(decide(world(proxy, [west], { memory: refused }), now).actions).toMatchObject([{ type: "recordDelegate" }]);
  const rest = { ...proxy, status: { phase: "Pending", conditions: conditions.slice(1) } };
  expect(decide(world(rest, [west]), now).actions).toMatchObject([{ type: "recordDelegate", delegateUid: "second" }]);
});
