import { expect, test } from "vitest";
import { isMakerOf, isPodOf, missingOrdinal } from "../../../../src/cli/simulation/controller-pods.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-abc", uid: "rs", controller: true };

test.each([
  ["Deployment", "web", owner, { "pod-template-hash": "abc" }, true],
  ["Deployment", "web", { ...owner, name: "web-x-abc" }, { "pod-template-hash": "abc" }, false],
  ["ReplicaSet", "web-abc", owner, {}, true],
  ["ReplicaSet", "web", owner, {}, false],
  ["Job", "once", { ...owner, kind: "Job", name: "once" }, {}, true],
  ["CronJob", "daily", { ...owner, kind: "Job", name: "daily-29000001" }, {}, true],
  ["CronJob", "daily", { ...owner, kind: "Job", name: "daily-x-29000001" }, {}, false],
] as const)("knows a pod of %s %s by its owner (%#)", (kind, name, reference, labels, expected) => {
  const found = pod({ metadata: { ownerReferences: [{ ...reference }], labels } });
  expect(isPodOf({ kind, namespace: "team", name }, found)).toBe(expected);
  expect(isPodOf({ kind, namespace: "other", name }, found)).toBe(false);
});

test.each([
  ["Deployment", { kind: "ReplicaSet", name: "web-6d4cf56db6" }, true],
  ["Deployment", { kind: "ReplicaSet", name: "web-api-6d4cf56db6" }, false],
  ["Deployment", { kind: "Job", name: "web-1" }, false],
  ["CronJob", { kind: "Job", name: "web-29000000" }, true],
  ["CronJob", { kind: "Job", name: "web-once" }, false],
  ["StatefulSet", { kind: "StatefulSet", name: "web" }, true],
  ["Job", { kind: "Job", name: "web-2" }, false],
] as const)("knows the maker of pods of a %s named web: %j: %s", (kind, maker, makes) => {
  expect(isMakerOf({ kind, namespace: "shop", name: "web" }, maker)).toBe(makes);
});

test.each<[string, readonly string[], number, number]>([
  ["none is there", [], 3, 3],
  ["one in the middle is missing", ["web-0", "web-2"], 0, 1],
  ["all are there", ["web-2", "web-3"], 2, 4],
])("gives the next pod of a StatefulSet the first missing ordinal: %s", (_case, names, first, next) => {
  expect(
    missingOrdinal(
      names.map((name) => proxyPod({ name })),
      first,
    ),
  ).toBe(next);
});
