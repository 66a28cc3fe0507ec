import { expect, test } from "vitest";
import { UnsettledCreates } from "../../../../src/controllers/copying/unsettled-creates.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

test.each<[KubeErrorCode, string, string, boolean]>([
  ["AnswerLost", "create", "widgets", true],
  ["ServerError", "create", "widgets", true],
  ["NotSent", "create", "widgets", false],
  ["Forbidden", "create", "widgets", false],
  ["AnswerLost", "list", "widgets", false],
  ["AnswerLost", "create", "namespaces", false],
])("after %s to %s %s, a create may still be done for a minute: %s", (code, verb, resource, expected) => {
  const clock = new FakeClock();
  const creates = new UnsettledCreates<string>(clock);
  creates.note("one", kubeError(code, "no answer", { verb, resource }));
  expect(creates.endAt("one")).toBe(expected ? clock.now() + 60_000 : undefined);
});

test("forgets a create that has ended, and keeps a later one", async () => {
  const clock = new FakeClock();
  const creates = new UnsettledCreates<string>(clock);
  const lost = kubeError("AnswerLost", "no answer", { verb: "create", resource: "widgets" });
  creates.note("one", lost);
  await clock.advance(30_000);
  creates.note("two", lost);
  await clock.advance(30_000);
  expect(creates.endAt("one")).toBeUndefined();
  expect(creates.endAt("two")).toBe(clock.now() + 30_000);
});
