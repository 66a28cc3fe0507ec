import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import type { Observed } from "../../../../../src/controllers/delegation/decisions/model.ts";
import { runningStatus } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

describe("a bare pod that has not started as far as the host knows, and whose delegate went,", () => {
  const proxy = boundProxy();
  const metadata = { deletionTimestamp: "2026-02-03T04:05:00Z" };
  const outcomeOf = (departed: ReturnType<typeof delegateOf> | undefined, parts: Partial<Observed> = {}): string =>
    decide(world(proxy, [member("west", departed === undefined ? {} : { departed })], { ...gone, ...parts }), now)
      .outcome;

  test("is not run again when it was last seen to run in its member", () => {
    expect(outcomeOf(delegateOf(proxy, { metadata, status: runningStatus() }))).toBe("Lost");
    expect(outcomeOf(delegateOf(proxy, { metadata }))).toBe("Placing");
    // What an earlier delegate did says nothing of this one.
    expect(outcomeOf(delegateOf(proxy, { uid: "earlier", metadata, status: runningStatus() }))).toBe("Placing");
  });

  test("is not made again without its overrides when they do not fit any more", () => {
    const problem = "legation.dev/overrides: path /spec/containers/1 does not exist";
    expect(outcomeOf(undefined, { specIn: () => ({ problem }) })).toBe("Lost");
    const { actions } = decide(world(proxy, [member("west")], { ...gone, specIn: () => ({ problem }) }), now);
    expect(JSON.stringify(actions)).toContain(`cannot be made again: ${problem}`);
  });
});
