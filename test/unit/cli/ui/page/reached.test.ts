import { expect, test } from "vitest";
import type { MemberCredentials } from "../../../../../src/cli/explain/credentials.ts";
import { reachedWords } from "../../../../../src/cli/ui/page/reached.ts";

const credentials: MemberCredentials = {
  secret: "member-west",
  state: "renewed",
  expires: "2026-01-31T00:00:00Z",
  since: "2026-01-01T00:00:00Z",
};

function words(parts: Partial<Parameters<typeof reachedWords>[0]>): string[] {
  const member = { connection: undefined, agent: undefined, access: undefined, credentials, ...parts };
  return reachedWords(member, Date.parse("2026-01-01T01:05:00Z"), "UTC");
}

test("a member behind an agent has the agent's version, time and certificate, and when its token ends and is renewed", () => {
  const certificateExpires = "2026-03-01T00:00:00Z";
  const agent = { version: "0.2.0", connectedSince: "2026-01-01T01:00:00Z", certificateExpires };
  expect(words({ connection: "Agent", agent, access: { prefix: "legation:" } })).toEqual([
    "By its agent of version 0.2.0, connected since 2026-01-01 01:00:00 UTC (5m), " +
      "with a certificate that is valid until 2026-03-01 00:00:00 UTC.",
    "Open to users of the host as legation:USER.",
    "Its token is in Secret legation-system/member-west, valid until 2026-01-31 00:00:00 UTC, made at " +
      "2026-01-01 00:00:00 UTC, and renewed at 2026-01-16 00:00:00 UTC.",
  ]);
});

test("a member without a report says so, and why the end of its credentials is not shown", () => {
  expect(words({ credentials: { secret: "member-west", state: "hidden" } })).toEqual([
    "No controller says how.",
    "Closed to users of the host.",
    "Its credentials are in Secret legation-system/member-west; when they end is not shown, since you may not read it.",
  ]);
  expect(words({ connection: "Direct" })[0]).toBe("Directly.");
});
