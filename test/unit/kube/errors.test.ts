import { describe, expect, test } from "vitest";
import { isKubeError, isRefusal, KubeError, type KubeErrorCode, RETRY_CLASS } from "../../../src/kube/errors.ts";

const codes: Record<"retry" | "unknown" | "never", KubeErrorCode[]> = {
  retry: ["NotSent", "TooManyRequests", "Unauthorized"],
  unknown: ["AnswerLost", "BadAnswer", "ServerError"],
  never: [
    "Aborted",
    "AlreadyExists",
    "BadCredentials",
    "BadRequest",
    "Conflict",
    "Forbidden",
    "Gone",
    "MethodNotAllowed",
    "NotFound",
    "TooLarge",
    "Unprocessable",
  ],
};

const error = (code: KubeErrorCode): KubeError =>
  new KubeError("because", {
    code,
    cluster: "west",
    verb: "create",
    resource: "pods",
    namespace: "default",
    objectName: "web",
  });

describe("KubeError", () => {
  test("has a retry class for every code", () => {
    expect(Object.keys(RETRY_CLASS).sort()).toEqual(Object.values(codes).flat().sort());
    for (const [retryClass, members] of Object.entries(codes)) {
      expect(members.map((code) => error(code).retryClass)).toEqual(members.map(() => retryClass));
    }
  });

  test("never classifies a possibly executed write as safe to repeat", () => {
    for (const code of ["AnswerLost", "ServerError", "BadAnswer"] as const)
      expect(error(code).retryClass).toBe("unknown");
  });

  test("names cluster, verb and object before the server's message", () => {
    expect(error("Conflict").message).toBe("west: create pods default/web: because");
  });

  test("is recognised by its code", () => {
    expect(isKubeError(error("Gone"), "Conflict", "Gone")).toBe(true);
    expect(isKubeError(error("Gone"), "Conflict")).toBe(false);
    expect(isKubeError(error("Gone"))).toBe(true);
    expect(isKubeError(new Error("Gone"), "Gone")).toBe(false);
  });

  test("is a refusal only when the write was not executed and would be refused again", () => {
    const all = Object.values(codes).flat();
    const refusals = all.filter((code) => isRefusal(error(code)));
    expect(refusals).toEqual(["BadRequest", "Forbidden", "MethodNotAllowed", "TooLarge", "Unprocessable"]);
    for (const code of refusals) expect(RETRY_CLASS[code]).toBe("never");
    expect(isRefusal(new Error("Forbidden"))).toBe(false);
  });
});
