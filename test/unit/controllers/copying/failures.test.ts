import { describe, expect, test } from "vitest";
import { Failures, restMsAfter } from "../../../../src/controllers/copying/failures.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";

function failing() {
  let now = 0;
  const noted: unknown[] = [];
  const member = { name: "west", reachableSince: 0, noteFailure: (error: unknown) => void noted.push(error) };
  const failures = new Failures<string>({ now: () => now });
  const answer = (code: KubeErrorCode | undefined, retryAfterMs = 0, detail = "not now", key = "key") => {
    const fields = { cluster: "west", verb: "create", resource: "configmaps", retryAfterMs };
    const error = code && new KubeError(detail, { code, ...fields });
    const write = (): Promise<string> => (error === undefined ? Promise.resolve("made") : Promise.reject(error));
    return failures.outlast(key, member, write).then(
      (result) => (typeof result === "string" ? result : `failing: ${result.detail}, for ${result.restMs}`),
      () => "rejected",
    );
  };
  return { answer, member, noted, at: (ms: number) => (now = ms) };
}

describe("a member that fails to take a copy", () => {
  test.each<KubeErrorCode>(["ServerError", "TooManyRequests", "AnswerLost", "BadAnswer"])(
    "with %s is waited for ten seconds, and then others hear of it",
    async (code) => {
      const { answer, at } = failing();
      expect(await answer(code)).toBe("rejected");
      at(9_999);
      expect(await answer(code)).toBe("rejected");
      at(10_000);
      expect(await answer(code)).toBe("failing: not now, for 30000");
      at(40_000);
      expect(await answer(code)).toBe("failing: not now, for 30000");
    },
  );

  test("by denying a right, as each does that has just been started, is waited for as long", async () => {
    const { answer, at } = failing();
    const denial = 'configmaps is forbidden: User "legation" cannot create resource "configmaps" in API group ""';
    expect(await answer("Forbidden", 0, denial)).toBe("rejected");
    at(10_000);
    expect(await answer("Forbidden", 0, denial)).toBe(`failing: ${denial}, for 30000`);
    // What is denied of one is denied of all of its kind.
    expect(await answer("Forbidden", 0, denial, "other")).toBe(`failing: ${denial}, for 30000`);
    expect(await answer("ServerError", 0, "broken", "other")).toBe("rejected");
  });

  test("is in trouble as a whole, perhaps; it rests as long as it says, if that is longer", async () => {
    const { answer, noted, at } = failing();
    await answer("TooManyRequests", 45_000);
    expect(noted).toEqual([]);
    at(10_000);
    expect(await answer("TooManyRequests", 45_000)).toBe("failing: not now, for 45000");
    expect(noted).toHaveLength(1);
  });

  test("is waited for anew after it has taken one, or has failed long ago", async () => {
    for (const between of ["made", "long"]) {
      const { answer, at } = failing();
      await answer("ServerError");
      at(20_000);
      if (between === "made") expect(await answer(undefined)).toBe("made");
      if (between === "long") at(10 * 60_000);
      expect(await answer("ServerError")).toBe("rejected");
    }
  });

  test("is waited for from when it could be reached again", async () => {
    const { answer, at, member } = failing();
    await answer("ServerError");
    at(30_000);
    member.reachableSince = 25_000;
    expect(await answer("ServerError")).toBe("rejected");
    at(35_000);
    expect(await answer("ServerError")).toBe("failing: not now, for 30000");
  });

  test.each<KubeErrorCode>(["NotSent", "Aborted", "Unauthorized", "Conflict"])("says nothing by %s", async (code) => {
    const { answer, at } = failing();
    await answer(code);
    at(60_000);
    expect(await answer(code)).toBe("rejected");
  });
});

test.each([
  ["what it forbids, for a minute", 'configmaps "settings" is forbidden: exceeded quota: small', 60_000],
  [
    "what it will take when its namespace has ended, for half of one",
    'configmaps "settings" is forbidden: unable to create new content in namespace team because it is being terminated',
    30_000,
  ],
])("a member is not asked again: %s", (_, detail, restMs) => {
  expect(restMsAfter({ type: "refused", detail })).toBe(restMs);
});
