import { describe, expect, test } from "vitest";
import { findingsText } from "../../../../src/cli/doctor/text.ts";
import { recordedSession } from "../session.ts";

describe("the text", () => {
  const groups = [
    { name: "Host", findings: [{ state: "OK", what: "fine" } as const] },
    { name: "Empty", findings: [] },
    {
      name: "Member west",
      findings: [{ state: "FAIL", what: "broken\u001b[2J:\n two lines", remedy: "legation join" } as const],
    },
  ];

  test("has one line for each finding, without control characters", () => {
    expect(findingsText(groups, recordedSession().terminal)).toBe(
      "Host\n  OK    fine\n\nMember west\n  FAIL  broken: two lines. Fix: legation join\n\n1 OK, 1 failure",
    );
  });

  test("counts notes apart from warnings", () => {
    const noted = [{ name: "home API", findings: [{ state: "INFO", what: "no way", remedy: "leave it" } as const] }];
    expect(findingsText(noted, recordedSession().terminal)).toBe(
      "home API\n  INFO  no way. Fix: leave it\n\n0 OK, 1 note",
    );
  });

  test("is coloured on a terminal, unless NO_COLOR is set", () => {
    expect(findingsText(groups, recordedSession({ isTTY: true }).terminal)).toContain("\u001b[31mFAIL");
    const plain = recordedSession({ isTTY: true, env: { NO_COLOR: "1" } });
    expect(findingsText(groups, plain.terminal)).not.toContain("\u001b");
  });
});
