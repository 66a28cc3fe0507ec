import { beforeAll, beforeEach, expect, test } from "vitest";
import { isBound } from "../../../../src/pods/pod-state.ts";
import { installPodGroups, startCoscheduling } from "../../../support/engines/coscheduling.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { podsOf } from "../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../support/harness/wait.ts";
import { GANG_SIZE, GangScene, PATIENT } from "../../../support/legation/gangs.ts";

let scene: GangScene;
let namespace: string;

beforeAll(async () => {
  scene = await GangScene.start({
    type: {
      group: "scheduling.x-k8s.io",
      version: "v1alpha1",
      plural: "podgroups",
      kind: "PodGroup",
      namespaced: true,
    },
    spec: { minMember: GANG_SIZE },
    member: (name) => ({
      labels: { "scheduling.x-k8s.io/pod-group": name },
      spec: { schedulerName: "second-scheduler" },
    }),
    prepare: async (clusters) => {
      await Promise.all(clusters.all.map(installPodGroups));
      await Promise.all(["west", "east"].map((name) => startCoscheduling(clusters.get(name))));
    },
  });
  return cleanUpFile;
});

beforeEach(async () => {
  namespace = await scene.freshNamespace();
});

test("a gang runs in one member, and the status of its PodGroup comes back", async () => {
  await scene.create(namespace, "100m");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-west"]));
  await eventuallyPasses(async () => {
    expect(await scene.status(namespace)).toMatchObject({ phase: "Running", running: GANG_SIZE });
  }, PATIENT);
});

test("a gang that fits nowhere waits as a whole for one reason, and runs when there is room", async () => {
  await scene.create(namespace, "3");
  const inMember = (room: string): string => `cpu: 36 requested by the pods of PodGroup gang together, ${room} left`;
  const reason = `east: ${inMember("16")}; west: ${inMember("8")}`;
  await eventuallyPasses(async () => {
    expect(await scene.reasons(namespace)).toEqual(new Set([reason]));
  }, PATIENT);
  for (const client of [scene.host, scene.west, scene.east]) {
    expect((await podsOf(client, namespace)).filter(isBound)).toEqual([]);
  }
  await scene.addNodes("east", "east-more", { count: 3, cpu: "16" });
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
});

test("a gang leaves a member as a whole whose scheduler finds too few nodes for it", async () => {
  await scene.addNodes("west", "west-small", { count: 20, cpu: "2" });
  await scene.create(namespace, "3");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
  await eventuallyPasses(async () => expect(await podsOf(scene.west, namespace)).toEqual([]), PATIENT);
});
