import { describe, expect, test } from "vitest";
import { failed, safeHeaders, slashedPath, tooMany, unsafeResponse } from "../../../src/access/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

describe("a member's response", () => {
  test.each([
    [200, [], undefined],
    [404, ["Location"], undefined],
    [302, ["location"], "answered with a redirect"],
    [304, ["etag"], undefined],
    [401, [], "refuses the credentials of legation access"],
  ])(
    "with status %d and headers %j reaches the user, unless it would take credentials elsewhere: %s",
    (status, names, why) => {
      const text = unsafeResponse("west", status, names)?.text;
      expect(text).toEqual(why === undefined ? undefined : expect.stringContaining(why));
    },
  );

  test("has its headers, without orders to browsers and without a second Audit-ID", () => {
    const kept = ["Content-Type", "text/plain", "Etag", "1"];
    expect(safeHeaders([...kept, "Set-Cookie", "a=b", "AUDIT-ID", "1", "Alt-Svc", "h3", "NEL", "{}"])).toEqual(kept);
  });

  test.each([
    ["/p/proxy", 301, ["Location", "/p/proxy/"], "/p/proxy/"],
    ["/p/proxy?a=b", 301, ["location", "/p/proxy/?a=b"], "/p/proxy/?a=b"],
    ["/p/proxy", 301, ["Location", "https://elsewhere/p/proxy/"], undefined],
    ["/p/proxy", 302, ["Location", "/p/proxy/"], undefined],
    ["/p/proxy", 301, ["X-Path", "/p/proxy/"], undefined],
  ])(
    "that leads from %s with status %d by %j is followed only to the same path with a slash: %s",
    (path, status, headers, expected) => {
      expect(slashedPath(path, status, headers)).toBe(expected);
    },
  );
});

test("a lost answer says that the request may have been done, and an unsent one does not", () => {
  expect(failed(kubeError("AnswerLost", "reset"), "west", undefined).text).toContain("may have been done: reset");
  const unsent = failed(kubeError("NotSent", "refused"), "west", "its agent is away");
  expect([unsent.status, unsent.text]).toEqual([503, expect.stringContaining("cannot be reached: its agent is away")]);
});

test("a user with too many requests is told when to try again", () => {
  expect(tooMany()).toMatchObject({ status: 429, headers: { "retry-after": "1" } });
});
