import { describe, expect, test } from "vitest";
import { judgeType } from "../../../../../src/cli/explain/installation/delegated-types.ts";
import { NOW } from "./given.ts";

describe("delegated types", () => {
  const judged = (status: "True" | "False" | "Unknown", secondsAgo = 3_600) => {
    const condition = {
      type: "Ready",
      status,
      reason: "NotRead",
      message: "west: forbidden",
      lastTransitionTime: new Date(NOW - secondsAgo * 1_000).toISOString(),
    };
    const spec = { version: "v1", kind: "Widget", plural: "widgets" };
    const metadata = { name: "widgets.example.com", uid: "u", resourceVersion: "1" };
    return judgeType({ metadata, spec, status: { conditions: [condition] } }, NOW).map(
      ({ state, what }) => `${state} ${what}`,
    );
  };

  test("fail with the member that cannot read them, and are well only when all conditions are True", () => {
    expect(judged("False")).toEqual(["FAIL DelegatedType widgets.example.com: Ready is False: west: forbidden"]);
    expect(judged("Unknown")).toEqual(["WARN DelegatedType widgets.example.com: Ready is Unknown: west: forbidden"]);
    expect(judged("Unknown", 20)).toEqual(["OK DelegatedType widgets.example.com: its objects are followed"]);
    expect(judged("True")).toEqual(["OK DelegatedType widgets.example.com: its objects are followed"]);
  });
});
