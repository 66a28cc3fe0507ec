import { expect, test } from "vitest";
import { RESTRICTED_ANNOTATION } from "../../../src/api/keys.ts";
import { followedBy, followedObjects } from "../../../src/scheduling/followed-objects.ts";
import { podGroupType } from "../../support/builders/delegated-type.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
const member = pod({ metadata: { namespace: "team", labels } });

test("a type whose objects go to members by themselves follows no pods", () => {
  const { follows: _, ...spec } = podGroupType.spec;
  expect(followedObjects({ ...podGroupType, spec })).toBeUndefined();
});

test("a missing object is named by its type, of which another may have the same kind", () => {
  const rule = followedObjects(podGroupType);
  expect(rule?.of(member)).toMatchObject([{ kind: "PodGroup", namespace: "team", name: "gang", optional: false }]);
  expect(rule?.of(member)[0]?.missing).toEqual({
    reason: "NotPlaced",
    message: 'podgroups.scheduling.x-k8s.io "gang" not found',
  });
  expect(rule && followedBy(member, [rule])).toMatchObject([{ kind: "podgroups.scheduling.x-k8s.io", name: "gang" }]);
});

test("an object is optional where its type says so", () => {
  const { spec } = podGroupType;
  const names = spec.follows?.names ?? [];
  const rule = followedObjects({ ...podGroupType, spec: { ...spec, follows: { names, optional: true } } });
  expect(rule?.of(member)).toMatchObject([{ optional: true }]);
});

test("pods that name an object of a confining type are a gang of their namespace", () => {
  const confining = followedObjects(podGroupType);
  expect(confining?.groupOf(member)).toEqual({
    id: "team/podgroups.scheduling.x-k8s.io/gang",
    text: "the pods of PodGroup gang",
    isGang: true,
  });
  expect(confining?.groupOf(pod({}))).toBeUndefined();
  const { spec } = podGroupType;
  const names = spec.follows?.names ?? [];
  expect(followedObjects({ ...podGroupType, spec: { ...spec, follows: { names } } })?.groupOf(member)).toBeUndefined();
});

test("of a restricted type members get what the pod's record has, however its labels change", () => {
  const { spec } = podGroupType;
  const follows = { names: spec.follows?.names ?? [], confines: true, restricted: true };
  const rule = followedObjects({ ...podGroupType, spec: { ...spec, follows } });
  const naming = (name: string, record?: string) =>
    proxyPod({
      metadata: {
        labels: { ...proxyPod({}).metadata.labels, "scheduling.x-k8s.io/pod-group": name },
        annotations: record === undefined ? {} : { [RESTRICTED_ANNOTATION]: record },
      },
    });
  const asked = naming("gang", "podgroups.scheduling.x-k8s.io/gang");
  expect(rule?.givenFor(asked)).toMatchObject([{ name: "gang" }]);
  expect([rule?.withheld(asked), rule?.groupOf(asked)?.isGang]).toEqual([undefined, true]);
  for (const other of [naming("gang"), naming("other", "podgroups.scheduling.x-k8s.io/gang")]) {
    expect([rule?.givenFor(other), rule?.groupOf(other)]).toEqual([[], undefined]);
    expect(rule?.withheld(other)).toContain("needs the verb delegate on podgroups.scheduling.x-k8s.io");
  }
  // A delegate has no record.
  expect(rule?.givenFor(member)).toMatchObject([{ name: "gang" }]);
});
