import { describe, expect, test } from "vitest";
import { hostVersion, installedVersions, memberVersion } from "../../../../../src/cli/explain/installation/versions.ts";

describe("versions", () => {
  test.each([
    ["v1.29.9", "FAIL", "is older than 1.30"],
    ["v1.30.0", "OK", "no whole Jobs before 1.32; no overflow before 1.35"],
    ["v1.36.3", "OK", "Kubernetes v1.36.3"],
    ["v1.38.0-alpha.1", "WARN", "is newer than 1.37"],
    [undefined, "WARN", "of an unknown version"],
  ])("of the host: %s is %s", (version, state, what) => {
    expect(hostVersion(version)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test.each([
    ["v1.31.2", "OK"],
    ["v1.27.1", "WARN"],
    ["v1.38.0", "WARN"],
  ])("of a member: %s is %s", (version, state) => {
    expect(memberVersion("west", version)).toMatchObject({ state });
  });

  test("of the parts are compared with the command's", () => {
    const parts = new Map([
      ["legation-webhook", "0.2.0"],
      ["legation-controller", "0.1.0"],
    ]);
    const repair = "helm upgrade legation CHART";
    expect(installedVersions("0.2.0", parts, repair)).toMatchObject([
      {
        state: "WARN",
        what: "legation-controller is version 0.1.0, and this command is 0.2.0",
        remedy: "run `helm upgrade legation CHART` of the newer version, and use that version here",
      },
    ]);
    const same = new Map([["legation-controller", "0.1.0"]]);
    expect(installedVersions("0.1.0", same, repair)).toMatchObject([{ state: "OK" }]);
  });
});
