import fc from "fast-check";
import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { PodsInMembers } from "../../../../src/controllers/copying/pods-in-members.ts";

function pod(uid: string, namespace: string, labels: Record<string, string>): Stored<Pod> {
  return { metadata: { name: uid, namespace, uid, resourceVersion: "1", labels } };
}

const someLabels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"));
const step = fc.record({
  uid: fc.constantFrom("p", "q", "r"),
  member: fc.constantFrom("west", "east", undefined),
  labels: someLabels,
});

function words(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort());
}

test("has each pod where it was last placed", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const placements = new PodsInMembers();
      const last = new Map<string, { readonly member: string; readonly labels: Record<string, string> }>();
      for (const { uid, member, labels } of steps) {
        if (member === undefined) {
          const before = last.get(uid);
          last.delete(uid);
          const wasLast = before !== undefined && ![...last.values()].some((other) => other.member === before.member);
          expect(placements.forget(uid)?.member).toBe(wasLast ? before.member : undefined);
        } else {
          const others = [...last].filter(([other]) => other !== uid).map(([, other]) => other.member);
          const before = last.get(uid);
          last.set(uid, { member, labels });
          const placed = placements.place(pod(uid, "team", labels), member);
          const isKnown = before?.member === member && words(before.labels) === words(labels);
          const isFirst = before?.member !== member && !others.includes(member);
          const from = before?.member === member ? undefined : before?.member;
          const left = from === undefined || others.includes(from) ? {} : { left: { member: from, namespace: "team" } };
          if (isKnown) expect(placed).toBeUndefined();
          else expect(placed).toMatchObject({ isFirst, ...left });
          if (!("left" in left)) expect(placed?.left).toBeUndefined();
          expect(placements.place(pod(uid, "team", { ...labels }), member)).toBeUndefined();
        }
      }
      for (const member of ["west", "east"]) {
        const there = [...last.values()].filter((placement) => placement.member === member);
        expect(placements.any(member, "team")).toBe(there.length > 0);
        expect(placements.namespacesIn(member)).toEqual(there.length > 0 ? ["team"] : []);
        const found = [...placements.labelsIn(member, "team")].map(words);
        expect(found.sort()).toEqual(there.map(({ labels }) => words(labels)).sort());
      }
      for (const [uid, { member }] of last) expect(placements.memberOf(uid)).toBe(member);
    }),
  );
});

test("separates namespaces with a common prefix", () => {
  const placements = new PodsInMembers();
  placements.place(pod("p", "team-two", {}), "west");
  expect(placements.any("west", "team")).toBe(false);
});
