import { beforeAll, beforeEach, expect, test } from "vitest";
import { isBound } from "../../../src/pods/pod-state.ts";
import { numbered } from "../../support/delegated/pods.ts";
import { cleanUpFile } from "../../support/harness/after-file.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { GANG_SIZE, GangScene, PATIENT } from "../../support/legation/gangs.ts";

const GATES = "--feature-gates=GenericWorkload=true";

let scene: GangScene;
let namespace: string;

beforeAll(async () => {
  scene = await GangScene.start({
    type: { group: "scheduling.k8s.io", version: "v1alpha2", plural: "podgroups", kind: "PodGroup", namespaced: true },
    spec: { schedulingPolicy: { gang: { minCount: GANG_SIZE } } },
    member: (podGroupName) => ({ spec: { schedulingGroup: { podGroupName } } }),
    options: {
      apiServerFlags: [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
      controllerManagerFlags: [GATES],
      schedulerFlags: [`${GATES},GangScheduling=true`],
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
  expect(await podsOf(scene.east, namespace)).toEqual([]);
  await eventuallyPasses(async () => {
    expect(await scene.status(namespace)).toMatchObject({
      conditions: [{ type: "PodGroupScheduled", status: "True" }],
    });
  }, PATIENT);
});

test("a gang that does not fit into the preferred member runs in another as a whole", async () => {
  await scene.create(namespace, "1");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
  await eventuallyPasses(async () => expect(await podsOf(scene.west, namespace)).toEqual([]), PATIENT);
});

test("a PodGroup keeps pods together that name different groups", async () => {
  await scene.create(namespace, "100m", { "legation.dev/group-by": "owner" });
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-west"]));
});

test("a gang runs in one member whose controller is killed while its pods wait", async () => {
  const names = numbered("worker", GANG_SIZE);
  await scene.create(namespace, "1", {}, names.slice(0, GANG_SIZE - 2));
  await eventuallyPasses(async () => {
    const delegates = [...(await podsOf(scene.west, namespace)), ...(await podsOf(scene.east, namespace))];
    expect(delegates).toHaveLength(GANG_SIZE - 2);
  }, PATIENT);
  await scene.running.controller.stop("SIGKILL");
  await scene.createPods(namespace, names.slice(GANG_SIZE - 2), "1");
  await scene.running.controller.start();
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
});

test("a gang that fits nowhere waits as a whole for one reason, and runs when there is room", async () => {
  await scene.create(namespace, "3");
  const inMember = (room: string): string => `cpu: 36 requested by the pods of PodGroup gang together, ${room} left`;
  const reason = `east: ${inMember("16")}; west: ${inMember("8")}`;
  await eventuallyPasses(async () => {
    expect(await scene.reasons(namespace)).toEqual(new Set([reason]));
    expect(await podsOf(scene.west, namespace)).toHaveLength(GANG_SIZE);
  }, PATIENT);
  for (const client of [scene.host, scene.west, scene.east]) {
    expect((await podsOf(client, namespace)).filter(isBound)).toEqual([]);
  }
  await scene.addNodes("east", "east-more", { count: 3, cpu: "16" });
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
  await eventuallyPasses(async () => expect(await podsOf(scene.west, namespace)).toEqual([]), PATIENT);
});

test("a gang leaves a member as a whole whose scheduler finds too few nodes for it", async () => {
  // West has room for the pods by the sum of its nodes, of which two are large enough for one.
  await scene.addNodes("west", "west-small", { count: 20, cpu: "2" });
  await scene.create(namespace, "3");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
  expect(await scene.failedInWest(namespace)).toBe(GANG_SIZE);
  await eventuallyPasses(async () => expect(await podsOf(scene.west, namespace)).toEqual([]), PATIENT);
});
