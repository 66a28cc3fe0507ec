import { describe, expect, test } from "vitest";
import { DeadlinePassed, type KubeError, type KubeErrorCode, ResponseTooLarge } from "../../../../src/kube/errors.ts";
import { RelistPolicy } from "../../../../src/runtime/internal/relist-policy.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";

function failure(code: KubeErrorCode, more: { readonly status?: number; readonly cause?: Error } = {}): KubeError {
  return kubeError(code, "no", { cluster: "west", verb: "watch", resource: "pods", ...more });
}

/** A policy that was listed at version 5, and has a watch. */
function resuming() {
  let now = 0;
  const policy = new RelistPolicy(40, { now: () => now });
  policy.listed("5");
  policy.opened();
  return {
    policy,
    at: (ms: number) => {
      now = ms;
    },
  };
}

describe("after a failure", () => {
  test.each<[string, unknown, string | undefined]>([
    ["that the connection was cut, a watch goes on", failure("AnswerLost"), "5"],
    ["of the server, a watch goes on", failure("ServerError"), "5"],
    ["that a proxy in between answers 404, a watch goes on", failure("BadAnswer", { status: 404 }), "5"],
    ["that the version has expired, a list is due", failure("Gone"), undefined],
    ["to understand what came, a list is due", failure("BadAnswer"), undefined],
    ["that nobody has foreseen, a list is due", new Error("no"), undefined],
  ])("%s", (_, error, version) => {
    const { policy } = resuming();
    policy.failed(error);
    expect([policy.version, policy.doubted]).toEqual([version, true]);
    policy.begun();
    expect(policy.doubted).toBe(false);
  });

  test("lists after the third consecutive refusal of a watch", () => {
    const { policy } = resuming();
    for (const version of ["5", "5", undefined]) {
      policy.failed(failure("BadRequest"));
      expect(policy.version).toBe(version);
    }
  });

  test("counts refusals anew after an accepted watch", () => {
    const { policy } = resuming();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      policy.failed(failure("ServerError"));
      policy.failed(failure("ServerError"));
      policy.opened();
    }
    expect(policy.version).toBe("5");
  });
});

test("follows the version through events and bookmarks", () => {
  const { policy } = resuming();
  policy.reached("6");
  expect(policy.version).toBe("6");
  policy.bookmark("9");
  expect(policy.version).toBe("9");
});

describe("pages", () => {
  test("are halved beyond the size limit, down to five, until a list succeeds", () => {
    const policy = new RelistPolicy(40, { now: () => 0 });
    const sizes = [40, 20, 10, 5, 5];
    for (const size of sizes) {
      expect(policy.pageSize).toBe(size);
      policy.failed(failure("AnswerLost", { cause: new ResponseTooLarge(9) }));
    }
    policy.listed("5");
    expect(policy.pageSize).toBe(40);
  });

  test("are not used after a continue token expired", () => {
    const policy = new RelistPolicy(40, { now: () => 0 });
    policy.failed(failure("Gone"));
    expect(policy.pageSize).toBeUndefined();
    policy.failed(failure("AnswerLost"));
    expect(policy.pageSize).toBe(40);
  });

  test("keep their size after a watch expired", () => {
    const { policy } = resuming();
    policy.failed(failure("Gone"));
    expect(policy.pageSize).toBe(40);
  });
});

describe("a server that may have been restored from a backup", () => {
  test("is listed when it is behind, and else watched on", () => {
    const { policy } = resuming();
    policy.failed(failure("AnswerLost"));
    policy.compared(false);
    expect(policy.version).toBe("5");
    policy.compared(true);
    expect(policy.version).toBeUndefined();
  });

  test.each<[string, boolean, number, number, string | undefined]>([
    ["a minute without a watch is no time to come as far again", true, 0, 60_000, "5"],
    ["it may have come as far again in more", true, 0, 60_001, undefined],
    [
      "a watch that was silent for longer than bookmarks take was lost when it was last heard of",
      true,
      150_000,
      0,
      undefined,
    ],
    ["the silence of one without bookmarks says nothing", false, 150_000, 0, "5"],
  ])("%s", (_, bookmarks, silentMs, lostMs, version) => {
    const { policy, at } = resuming();
    if (bookmarks) policy.bookmark("5");
    at(silentMs);
    policy.failed(failure("AnswerLost"));
    at(silentMs + lostMs);
    policy.compared(false);
    expect(policy.version).toBe(version);
  });
});

test("records when the server last sent anything", () => {
  const { policy, at } = resuming();
  at(7);
  policy.heard();
  at(9);
  expect(policy.lastContactMs).toBe(7);
});

describe("while pages of a list are late", () => {
  const late = failure("AnswerLost", { cause: new DeadlinePassed("no answer") });

  test("waits longer for each, up to two minutes, and as before once a list is complete", () => {
    const policy = new RelistPolicy(40, { now: () => 0 });
    const waits = [1, 2, 3].map(() => {
      policy.failed(late);
      return policy.listTimeoutMs;
    });
    expect(waits).toEqual([60_000, 120_000, 120_000]);
    expect(policy.pageSize).toBe(40);
    policy.listed("5");
    expect(policy.listTimeoutMs).toBe(30_000);
  });

  test("asks for smaller pages when the API server itself gave up", () => {
    const policy = new RelistPolicy(40, { now: () => 0 });
    policy.failed(failure("ServerError", { status: 504 }));
    expect(policy.pageSize).toBe(20);
  });

  test("waits no longer after another failure", () => {
    const policy = new RelistPolicy(40, { now: () => 0 });
    policy.failed(failure("AnswerLost"));
    expect(policy.listTimeoutMs).toBe(30_000);
  });
});
