import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { between, clockFinding, clockOffset, readClock } from "../../../../../src/cli/explain/installation/clock.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { limits } from "./given.ts";

describe("clocks", () => {
  test("are compared as exactly as a Date header allows", () => {
    const at = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");
    expect(clockOffset("Fri, 27 Nov 2026 12:00:00 GMT", at, at + 200)).toEqual({ aheadMs: 400, uncertainMs: 600 });
    expect(clockOffset(undefined, at, at)).toBeUndefined();
  });

  test.each([
    [10_400, "OK"],
    [-30_000, "WARN"],
    [120_000, "FAIL"],
  ])("%d ms apart are %s", (aheadMs, state) => {
    expect(clockFinding("its clock", "ours", { aheadMs, uncertainMs: 500 })).toMatchObject({ state });
  });

  test("of a member and the host are compared by this machine's", () => {
    const offset = between({ aheadMs: 5_000, uncertainMs: 500 }, { aheadMs: -60_000, uncertainMs: 600 });
    expect(offset).toEqual({ aheadMs: 65_000, uncertainMs: 1_100 });
    expect(clockFinding("west: its clock", "the host's", offset).what).toContain("is 65 s ahead of the host's");
  });
});

test("reads a clock from a refusal, too", async () => {
  const at = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");
  const answer = { status: 403, headers: { date: "Fri, 27 Nov 2026 12:00:30 GMT" }, text: "" };
  const client = fakeClient({ stream: async () => answer });
  expect(await readClock(client, { ...limits, now: () => at })).toEqual({ aheadMs: 30_500, uncertainMs: 500 });
});

test("closes the answer that it reads a clock from", async () => {
  const body = new PassThrough();
  const client = fakeClient({ stream: async () => ({ body, headers: {} }) });
  expect(await readClock(client, limits)).toBeUndefined();
  expect(body.destroyed).toBe(true);
});
