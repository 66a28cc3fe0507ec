import fc from "fast-check";
import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { Users } from "../../../../src/controllers/services/users.ts";
import { selects } from "../../../../src/pods/services.ts";

function pod(uid: string, namespace: string, labels: Record<string, string>): Stored<Pod> {
  return { metadata: { name: uid, namespace, uid, resourceVersion: "1", labels } };
}

const someLabels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"));
const step = fc.record({
  uid: fc.constantFrom("p", "q", "r"),
  member: fc.constantFrom("west", "east", undefined),
  labels: someLabels,
});

test("who is where is what was said last of each pod", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), someLabels, (steps, selector) => {
      const users = new Users();
      const last = new Map<string, { readonly member: string; readonly labels: Record<string, string> }>();
      for (const { uid, member, labels } of steps) {
        if (member === undefined) {
          const before = last.get(uid);
          last.delete(uid);
          const wasLast = before !== undefined && ![...last.values()].some((other) => other.member === before.member);
          expect(users.forget(uid)?.member).toBe(wasLast ? before.member : undefined);
        } else {
          last.set(uid, { member, labels });
          users.place(pod(uid, "team", labels), member);
          expect(users.place(pod(uid, "team", { ...labels }), member)).toBe(false);
        }
      }
      const service = {
        metadata: { name: "s", namespace: "team", uid: "s", resourceVersion: "1" },
        spec: { selector },
      };
      for (const member of ["west", "east"]) {
        const there = [...last.values()].filter((placement) => placement.member === member);
        expect(users.any(member, "team")).toBe(there.length > 0);
        expect(users.namespacesIn(member)).toEqual(there.length > 0 ? ["team"] : []);
        expect(users.selected(member, service)).toBe(there.some(({ labels }) => selects(service, labels)));
      }
      for (const [uid, { member }] of last) expect(users.memberOf(uid)).toBe(member);
    }),
  );
});

test("namespaces with the same beginning are apart", () => {
  const users = new Users();
  users.place(pod("p", "team-two", {}), "west");
  expect(users.any("west", "team")).toBe(false);
});
