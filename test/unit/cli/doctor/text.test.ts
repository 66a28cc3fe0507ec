import { describe, expect, test } from "vitest";
import { findingsText } from "../../../../src/cli/doctor/text.ts";
import { textWidth } from "../../../../src/cli/shared/text-width.ts";
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

  test.each([40, 60, 80, 200])("is nowhere wider than a terminal of %d columns", (width) => {
    const { terminal } = recordedSession({ isTTY: true, env: { COLUMNS: String(width) } });
    const what = "west: the host's account lacks rights 東京 in a-namespace-with-a-long-name";
    const remedy = "legation join west --member-kubeconfig FILE";
    const long = [{ name: "Member west", findings: [{ state: "FAIL", what, since: "12:00", remedy } as const] }];
    const lines = findingsText(long, terminal).split("\n");
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
    expect(lines.join(" ").replaceAll(/ +/g, " ")).toContain(`${what} (since 12:00). Fix: ${remedy}`);
  });

  test("has the remedy in a line of its own on a narrow terminal, beneath what was found", () => {
    const { terminal } = recordedSession({ isTTY: true, env: { COLUMNS: "60", NO_COLOR: "1" } });
    const what = "the API server does not reach the webhook: connection refused";
    const finding = { state: "FAIL", what, remedy: "kubectl rollout restart deployment web" } as const;
    expect(findingsText([{ name: "Webhook", findings: [finding] }], terminal).split("\n")).toEqual([
      "Webhook",
      "  FAIL  the API server does not reach the webhook:",
      "        connection refused.",
      "        Fix: kubectl rollout restart deployment web",
      "",
      "0 OK, 1 failure",
    ]);
  });

  test("is coloured on a terminal, unless NO_COLOR is set", () => {
    expect(findingsText(groups, recordedSession({ isTTY: true }).terminal)).toContain("\u001b[31mFAIL");
    const plain = recordedSession({ isTTY: true, env: { NO_COLOR: "1" } });
    expect(findingsText(groups, plain.terminal)).not.toContain("\u001b");
  });
});
