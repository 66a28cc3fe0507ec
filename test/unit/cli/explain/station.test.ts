import { describe, expect, test } from "vitest";
import { inMember, inOrder, onHost, type Stamp, station, UNTIMED } from "../../../../src/cli/explain/station.ts";

const AT = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const PENDING = onHost(undefined);

describe("steps", () => {
  test.each<[string, readonly Stamp[], string]>([
    ["of one second keep the order of their causes", [onHost(AT(1)), inMember(AT(1), "west"), onHost(AT(1))], "abc"],
    ["keep it where an effect is two seconds earlier", [onHost(AT(3)), inMember(AT(1), "west")], "ab"],
    ["are ordered by time where an effect is more than two seconds earlier", [onHost(AT(4)), onHost(AT(1))], "ba"],
    ["pass only those that are much later", [onHost(AT(0)), onHost(AT(9)), onHost(AT(1))], "acb"],
    ["without a time follow their cause", [onHost(AT(5)), UNTIMED, UNTIMED, onHost(AT(6))], "abcd"],
    ["without a time come before what is much later than their cause", [onHost(AT(1)), UNTIMED, onHost(AT(9))], "abc"],
    ["that are pending come last", [onHost(AT(1)), PENDING, onHost(AT(9))], "acb"],
    ["that are pending keep their order", [PENDING, PENDING], "ab"],
  ])("%s", (_, stamps, order) => {
    const steps = stamps.map((stamp, index) => station(stamp, String.fromCharCode(97 + index)));
    expect(
      inOrder(steps)
        .map(({ what }) => what)
        .join(""),
    ).toBe(order);
  });

  test("name the clock of their time, which without a member is the host's", () => {
    expect([onHost(AT(1)), inMember(AT(1), "west"), inMember(AT(1), undefined)].map(({ clock }) => clock)).toEqual([
      "host",
      "west",
      "host",
    ]);
    expect(inMember(undefined, "west")).toEqual({ at: undefined });
  });
});
