import { expect, test } from "vitest";
import { DeadlinePassed } from "../../../src/kube/errors.ts";
import { failureOf } from "../../../src/runtime/reflector-failure.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

const late = kubeError("AnswerLost", "no answer", { cause: new DeadlinePassed() });
const refused = kubeError("Forbidden", "no right");

test("counts a failure from its beginning, with the last reason", () => {
  expect(failureOf(refused, { since: 1, reason: "no room" }, 5)).toEqual({
    since: 1,
    reason: "no right",
    code: "Forbidden",
  });
});

test("counts a failure of a server that was only slow before from now", () => {
  const slow = failureOf(late, undefined, 1);
  expect(slow).toEqual({ since: 1, reason: "no answer", code: "AnswerLost", isLate: true });
  expect(failureOf(late, slow, 3).since).toBe(1);
  expect(failureOf(refused, slow, 5).since).toBe(5);
});

test("quotes nothing of an answer that could not be understood", () => {
  expect(failureOf(new TypeError("secret"), undefined, 1)).toEqual({
    since: 1,
    reason: "an answer could not be understood",
  });
});
