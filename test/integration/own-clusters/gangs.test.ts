import { beforeAll, beforeEach, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { jobs, pods, priorityClasses, type Resource } from "../../../src/kube/resources.ts";
import { isBound } from "../../../src/pods/pod-state.ts";
import { KWOK_ANNOTATIONS } from "../../support/clusters/stages.ts";
import { numbered } from "../../support/delegated/pods.ts";
import { cleanUpFile } from "../../support/harness/after-file.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { GANG_SIZE, GangScene, PATIENT } from "../../support/legation/gangs.ts";

const GATES = "--feature-gates=GenericWorkload=true,WorkloadWithJob=true";

const API = { group: "scheduling.k8s.io", version: "v1alpha2", namespaced: true };
const podGroups: Resource<AnyObject> = { ...API, plural: "podgroups", kind: "PodGroup" };
const ADMISSION = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false };
const policies: Resource<AnyObject> = {
  ...{ ...ADMISSION, plural: "validatingadmissionpolicies" },
  kind: "ValidatingAdmissionPolicy",
};
const policyBindings: Resource<AnyObject> = {
  ...{ ...ADMISSION, plural: "validatingadmissionpolicybindings" },
  kind: "ValidatingAdmissionPolicyBinding",
};
const workloads: Resource<AnyObject> = { ...API, plural: "workloads", kind: "Workload" };

let scene: GangScene;
let namespace: string;

beforeAll(async () => {
  scene = await GangScene.start({
    type: podGroups,
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

/** Creates a Job for which its controller makes a Workload and a PodGroup. */
async function createJob(cpu: string): Promise<void> {
  const requests = { cpu };
  const template = {
    metadata: { annotations: { "legation.dev/delegate": "true", [KWOK_ANNOTATIONS.outcome]: "running" } },
    spec: { restartPolicy: "Never", containers: [{ name: "main", image: "work:1", resources: { requests } }] },
  };
  await scene.host.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { namespace, name: "job" },
    spec: { completions: GANG_SIZE, parallelism: GANG_SIZE, completionMode: "Indexed", template },
  });
}

test("the pods of a Job are a gang for which the host has a Workload, and members have none", async () => {
  await createJob("1");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-east"]));
  const [onHost, inEast] = await Promise.all(
    [scene.host, scene.east].map(async (client) => (await client.list(podGroups, { namespace })).items),
  );
  expect(onHost).toMatchObject([{ spec: { podGroupTemplateRef: { workload: {} } } }]);
  expect(inEast).toMatchObject([{ spec: { podGroupTemplateRef: null } }]);
  expect((await scene.host.list(workloads, { namespace })).items).toHaveLength(1);
  expect((await scene.east.list(workloads, { namespace })).items).toEqual([]);
});

test("a pod of a gang that the member's scheduler preempts is replaced in the same member", async () => {
  await createJob("500m");
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-west"]));
  const before = new Set((await podsOf(scene.host, namespace)).map(({ metadata }) => metadata.uid));
  // Each node of west has one core left for a pod that asks for more.
  const metadata = { name: `high-${namespace}` };
  await scene.west.create(priorityClasses, { metadata, value: 1_000 });
  const resources = { requests: { cpu: "1500m" } };
  const spec = { priorityClassName: metadata.name, containers: [{ name: "main", image: "work:1", resources }] };
  await scene.west.create(pods, { metadata: { namespace, name: "preemptor" }, spec });
  await eventuallyPasses(async () => {
    const uids = (await podsOf(scene.host, namespace)).map(({ metadata: { uid } }) => uid);
    expect(uids.filter((uid) => !before.has(uid))).not.toEqual([]);
  }, PATIENT);
  expect(await scene.nodes(namespace)).toEqual(new Set(["legation-west"]));
  expect(await podsOf(scene.east, namespace)).toEqual([]);
  await scene.west.delete(pods, { namespace, name: "preemptor" });
  await scene.west.delete(priorityClasses, metadata);
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

test("no pod of a gang enters a member while one that waits in another may still get a node there", async () => {
  const names = numbered("worker", GANG_SIZE);
  await scene.create(namespace, "100m", {}, names.slice(0, GANG_SIZE - 2));
  await eventuallyPasses(async () => expect(await podsOf(scene.west, namespace)).toHaveLength(GANG_SIZE - 2), PATIENT);
  const metadata = { name: `keeps-${namespace}` };
  const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["DELETE"] }];
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  const validations = [{ expression: "false", message: "the pods stay" }];
  await scene.west.create(policies, {
    metadata,
    spec: { matchConstraints: { namespaceSelector, resourceRules }, validations },
  });
  await scene.west.create(policyBindings, {
    metadata,
    spec: { policyName: metadata.name, validationActions: ["Deny"] },
  });
  // The scheduler of west waits for more pods until its time is over.
  await eventuallyPasses(async () => expect(await scene.refusedDeletions(namespace)).toBeGreaterThan(0), PATIENT);
  await scene.createPods(namespace, names.slice(GANG_SIZE - 2), "100m");
  const reason = "east: the pods of PodGroup gang have to leave west first";
  await eventuallyPasses(async () => expect(await scene.reasons(namespace)).toContain(reason), PATIENT);
  expect(await podsOf(scene.east, namespace)).toEqual([]);
  await scene.west.delete(policyBindings, metadata);
  await scene.west.delete(policies, metadata);
  const nodes = await scene.nodes(namespace);
  expect(nodes.size).toBe(1);
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
