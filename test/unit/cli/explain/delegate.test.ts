import { describe, expect, test } from "vitest";
import { readDelegateMade } from "../../../../src/cli/explain/read-pod.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const MADE = "2026-01-01T00:00:01Z";
const { signal } = new AbortController();
const annotations = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": "d-1" };
const proxy = proxyPod({ name: "web", metadata: { annotations } });

function member(uid: string, creationTimestamp = MADE) {
  const found = { metadata: { name: "web", namespace: "team", uid, resourceVersion: "1", creationTimestamp } };
  return async () => fakeClient({ find: async () => found });
}

describe("when a delegate was made", () => {
  test("is read in its member", async () => {
    expect(await readDelegateMade(proxy, member("d-1"), signal)).toBe(MADE);
  });

  test("is unknown of a pod that has none, and no member is opened", async () => {
    const never = (): never => {
      throw new Error("no member was to be opened");
    };
    expect(await readDelegateMade(proxyPod({ name: "web" }), never, signal)).toBeUndefined();
  });

  test.each([
    ["another pod has its name", member("d-2")],
    ["the member reports what is no time", member("d-1", "9999-99-99T00:00:00Z")],
    [
      "the member is closed to the user",
      () => Promise.reject(new Failure("failure", { object: "west", problem: "no" })),
    ],
    ["the user may not read pods there", () => Promise.reject(kubeError("Forbidden"))],
  ])("is unknown where %s", async (_, open) => {
    expect(await readDelegateMade(proxy, open, signal)).toBeUndefined();
  });

  test("rejects with the reason of a command that ends", async () => {
    const ended = AbortSignal.abort(new Error("interrupted"));
    await expect(readDelegateMade(proxy, () => Promise.reject(kubeError("AnswerLost")), ended)).rejects.toThrow(
      "interrupted",
    );
  });
});
