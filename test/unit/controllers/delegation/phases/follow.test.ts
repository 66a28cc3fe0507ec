import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../../../src/api/keys.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { runningStatus } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, memory, type WorldParts, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

describe("a bare pod that has not started as far as the host knows, and whose delegate vanished", () => {
  const proxy = boundProxy();
  const metadata = { deletionTimestamp: "2026-02-03T04:05:00Z" };
  const outcomeOf = (departed: ReturnType<typeof delegateOf> | undefined, parts: WorldParts = {}): string =>
    decide(world(proxy, [member("west", departed === undefined ? {} : { departed })], { ...gone, ...parts }), now)
      .outcome;

  test("does not run again if the delegate was last seen running", () => {
    expect(outcomeOf(delegateOf(proxy, { metadata, status: runningStatus() }))).toBe("Vanished");
    expect(outcomeOf(delegateOf(proxy, { metadata }))).toBe("Placing");
    // The state of an earlier delegate does not count.
    expect(outcomeOf(delegateOf(proxy, { uid: "earlier", metadata, status: runningStatus() }))).toBe("Placing");
  });

  test("gets no new delegate without its overrides if they no longer fit", () => {
    const problem = "legation.dev/overrides: path /spec/containers/1 does not exist";
    expect(outcomeOf(undefined, { misfit: () => problem })).toBe("Vanished");
    const { actions } = decide(world(proxy, [member("west")], { ...gone, misfit: () => problem }), now);
    expect(JSON.stringify(actions)).toContain(`cannot be made again: ${problem}`);
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
