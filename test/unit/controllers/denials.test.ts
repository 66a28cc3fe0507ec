import { expect, test } from "vitest";
import { Denials } from "../../../src/controllers/denials.ts";
import { KubeError } from "../../../src/kube/errors.ts";

const denial = 'pods "web-0" is forbidden: User "legation" cannot patch resource "pods" in API group ""';

function forbidden(detail: string, resource = "pods team/web-0", cluster = "west"): KubeError {
  return new KubeError(detail, { code: "Forbidden", cluster, verb: "patch", resource });
}

function denying() {
  let now = 0;
  const denials = new Denials({ now: () => now });
  return {
    at: (ms: number, error: unknown): boolean => {
      now = ms;
      return denials.mayPass(error);
    },
  };
}

test("a right that is denied may be there in a moment, until it has been denied for ten seconds", () => {
  const { at } = denying();
  expect([0, 9_999, 10_000, 30_000].map((ms) => at(ms, forbidden(denial)))).toEqual([true, true, false, false]);
});

test("an old denial, or one of another object or cluster, does not count", () => {
  const { at } = denying();
  at(0, forbidden(denial));
  expect(at(10_000, forbidden(denial, "services team/web"))).toBe(true);
  expect(at(10_000, forbidden(denial, "pods team/web-0", "east"))).toBe(true);
  expect(at(10_000, forbidden(denial, "pods team/web-1"))).toBe(false);
  // Longer than anything rests that was denied.
  expect(at(600_000, forbidden(denial))).toBe(false);
  expect(at(1_500_000, forbidden(denial))).toBe(true);
});

test("a refusal by policy or quota is final at once", () => {
  const { at } = denying();
  expect(at(0, forbidden('pods "web-0" is forbidden: exceeded quota: small'))).toBe(false);
  expect(at(0, new Error("broken"))).toBe(false);
});
