import { describe, expect, test } from "vitest";
import { connectionWords, type Heard, isOld, whyLost, whyOld } from "../../../../../src/cli/ui/page/freshness.ts";
import { memberRow } from "./member-row.ts";

const NOW = 1_000_000;
const heard = (fields: Partial<Heard> = {}): Heard => ({
  isConnected: true,
  heardAt: NOW - 1_000,
  startedAt: NOW - 60_000,
  problem: undefined,
  ...fields,
});

describe("what the page says of its age", () => {
  test.each<[string, Partial<Heard>, string, boolean]>([
    ["is live while the host is heard", {}, "live", false],
    ["is live for ten silent seconds", { heardAt: NOW - 10_000 }, "live", false],
    ["is the silence after them", { heardAt: NOW - 23_400 }, "last heard 23s ago", true],
    [
      "is the silence, whether the page's server is connected or not",
      { heardAt: NOW - 23_400, isConnected: false },
      "last heard 23s ago",
      true,
    ],
    ["is that its server is gone", { isConnected: false }, "not connected", false],
    ["is never live while the host refuses", { problem: "forbidden" }, "cannot be read", false],
    ["is that it connects", { heardAt: undefined, startedAt: NOW - 500 }, "connecting", false],
    ["is that nothing ever came", { heardAt: undefined }, "never heard", true],
  ])("%s", (_, fields, words, old) => {
    expect([connectionWords(heard(fields), NOW), isOld(heard(fields), NOW)]).toEqual([words, old]);
  });

  test.each<[string, Partial<Heard>, string | undefined]>([
    ["nothing while the host is heard", {}, undefined],
    [
      "who is silent",
      { heardAt: NOW - 100_000 },
      "The host's API server was last heard 100s ago; what is shown is from then.",
    ],
    [
      "why it is silent",
      { heardAt: NOW - 130_000, problem: "connection refused" },
      "The host's API server was last heard 2m10s ago; what is shown is from then: connection refused",
    ],
    [
      "that the page's own server is silent",
      { heardAt: NOW - 30_000, isConnected: false },
      "The server of this page was last heard 30s ago; what is shown is from then.",
    ],
    ["that there was no answer yet", { heardAt: undefined }, "The host's API server has not answered yet."],
    ["a refusal at once", { problem: "no" }, "The host cannot be read, so what is shown may be old: no"],
  ])("explains %s", (_, fields, why) => {
    expect(whyOld(heard(fields), NOW)).toBe(why);
  });
});

describe("a member's pods", () => {
  const member = (name: string, ready: string, reason?: string) => memberRow(name, { ready, reason });
  const members = [
    member("east", "False", "no answer"),
    member("west", "True", "cordoned"),
    member("north", "Unknown"),
  ];
  test.each([
    ["are old in a member that is not ready", "east", "east is not ready: no answer"],
    ["are old in a member of which nothing is known", "north", "north is not ready"],
    ["are old in a member that was removed", "south", "south is no member any more"],
    ["are current in a member that is ready", "west", undefined],
  ])("%s", (_, name, why) => {
    expect(whyLost(name, members)).toBe(why);
  });

  test("are taken as current before the members are read", () => {
    expect(whyLost("east", undefined)).toBeUndefined();
  });
});
