import { describe, expect, test } from "vitest";
import { issueAuthority, issueServing } from "../../../../../src/certificates/issue.ts";
import {
  authoritiesFinding,
  certificateFinding,
  tokenFinding,
} from "../../../../../src/cli/explain/installation/certificates.ts";
import { ago, DAY_MS, NOW } from "./given.ts";

describe("certificates", () => {
  test("are good until two thirds of their life, then due, then expired", async () => {
    const authority = await issueAuthority("ca", ago(0));
    const of = async (days: number) => {
      const { cert } = await issueServing(authority, ["h"], ago(days));
      return certificateFinding("the certificate", cert, { now: NOW, remedy: "renew" });
    };
    expect(await of(10)).toMatchObject({ state: "OK" });
    expect(await of(70)).toMatchObject({ state: "WARN", remedy: "renew" });
    expect(await of(100)).toMatchObject({
      state: "FAIL",
      what: expect.stringMatching(/^the certificate expired \d+d ago/),
    });
    expect(certificateFinding("it", "no PEM", { now: NOW, remedy: "renew" })).toMatchObject({ state: "FAIL" });
  });

  test("of another authority fail", async () => {
    const [own, other] = [await issueAuthority("one", ago(0)), await issueAuthority("other", ago(0))];
    const { cert } = await issueServing(own, ["h"], ago(1));
    const options = { now: NOW, remedy: "renew" };
    expect(certificateFinding("it", cert, { ...options, authority: own.cert })).toMatchObject({ state: "OK" });
    expect(certificateFinding("it", cert, { ...options, authority: other.cert })).toMatchObject({ state: "FAIL" });
  });

  test("of a bundle count if one is valid", async () => {
    const [old, fresh] = [await issueAuthority("old", ago(200)), await issueAuthority("new", ago(1))];
    const options = { now: NOW, remedy: "join" };
    expect(authoritiesFinding("b", old.cert + fresh.cert, options)).toMatchObject({ state: "OK" });
    expect(authoritiesFinding("b", old.cert, options)).toMatchObject({ state: "FAIL" });
    const early = await issueAuthority("early", ago(-40));
    expect(authoritiesFinding("b", early.cert, options)).toMatchObject({
      state: "FAIL",
      what: expect.stringContaining("not valid yet"),
    });
    expect(authoritiesFinding("b", "", options)).toMatchObject({ state: "FAIL", what: "b holds no certificate" });
  });

  test.each([
    [10, "OK"],
    [25, "WARN"],
    [31, "FAIL"],
  ])("a token of 30 days is after %d days %s", (days, state) => {
    const issuedAt = NOW - days * DAY_MS;
    const claims = { issuedAt, expiresAt: issuedAt + 30 * DAY_MS };
    expect(tokenFinding("its token", claims, { now: NOW, remedy: "join" })).toMatchObject({ state });
  });
});
