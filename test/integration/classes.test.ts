import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { COPY_LABEL, HOST_LABEL } from "../../src/api/keys.ts";
import type { KubeObject, PodSpec, PriorityClass, RuntimeClass } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { pods, priorityClasses, type Resource, runtimeClasses } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();
// Copies stay for ten seconds after their last user.
const PATIENT = { timeoutMs: 60_000 };

let namespace: string;
/** Labels of this test's classes, and the name of its namespace. */
let follows: Record<string, string>;

beforeEach(async () => {
  namespace = await optedIn();
  follows = { "example.com/follows": namespace };
  await select({ matchLabels: follows });
});
afterEach(() => select(null));

function optedIn(): Promise<string> {
  const everywhere = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(everywhere, { prefix: "classes", labels: { "legation.dev/delegation": "annotated" } });
}

async function select(classSelector: object | null): Promise<void> {
  const body = { spec: { classSelector } };
  for (const name of ["west", "east"]) await clients().host.patch(clusters, { name }, { type: "merge", body });
}

type Where = "host" | "west" | "east";

async function make<T extends KubeObject>(where: Where, resource: Resource<T>, object: T): Promise<void> {
  const client = clients()[where];
  const name = object.metadata?.name ?? "";
  await client.create(resource, object);
  onTestFinished(async () => {
    if ((await client.find(resource, { name })) !== undefined) await client.delete(resource, { name });
  });
}

function priority(value: number, parts: Partial<PriorityClass> = {}, name = namespace): PriorityClass {
  return { metadata: { name, labels: follows }, value, ...parts };
}

function runtime(parts: Partial<RuntimeClass> = {}): RuntimeClass {
  return { metadata: { name: namespace, labels: follows }, handler: "runc", ...parts };
}

interface Place {
  readonly clusters?: string;
  readonly in?: string;
}

async function create(name: string, spec: Partial<PodSpec>, where: Place = {}): Promise<void> {
  const annotations = { "legation.dev/clusters": where.clusters ?? "west" };
  const parts = { annotations, spec: { automountServiceAccountToken: false, ...spec } };
  await clients().host.create(pods, delegatedPod(where.in ?? namespace, name, parts));
}

async function runs(name: string, of = namespace): Promise<void> {
  await podThat(clients().host, of, name, inPhase("Running"), PATIENT);
}

async function end(name: string, of = namespace): Promise<void> {
  await clients().host.delete(pods, { namespace: of, name }, { gracePeriodSeconds: 0 });
}

async function goes(resource: Resource<KubeObject>, where: Where = "west", name = namespace): Promise<void> {
  const isGone = async (): Promise<boolean> => (await clients()[where].find(resource, { name })) === undefined;
  await eventually(isGone, { ...PATIENT, what: `the end of ${resource.kind} ${name}` });
}

test("copies classes with the first pod that names them, shares them between namespaces, and removes them after the last pod", async () => {
  const { west, east } = clients();
  await make("host", priorityClasses, priority(1000, { preemptionPolicy: "Never" }));
  const scheduling = { tolerations: [{ key: "host-only", operator: "Exists" }] };
  const overhead = { podFixed: { cpu: "10m", memory: "1Mi" } };
  await make("host", runtimeClasses, runtime({ scheduling, overhead }));
  const other = await optedIn();
  await create("a", { runtimeClassName: namespace, priorityClassName: namespace });
  await create("b", { priorityClassName: namespace }, { in: other });
  await Promise.all([runs("a"), runs("b", other)]);

  const copy = await west.get(priorityClasses, { name: namespace });
  expect(copy).toMatchObject({ value: 1000, preemptionPolicy: "Never" });
  expect(copy.metadata.labels).toMatchObject({ ...follows, [HOST_LABEL]: expect.any(String), [COPY_LABEL]: "true" });
  expect(ownerOf(copy)).toMatchObject({ namespace: "", name: namespace });
  const runtimeCopy = await west.get(runtimeClasses, { name: namespace });
  expect(runtimeCopy).toMatchObject({ handler: "runc", overhead });
  expect(runtimeCopy.scheduling).toBeUndefined();
  expect((await podOf(west, namespace, "a"))?.spec).toMatchObject({ priority: 1000, overhead: overhead.podFixed });
  expect(await east.find(priorityClasses, { name: namespace })).toBeUndefined();

  await clients().host.patch(priorityClasses, { name: namespace }, { type: "merge", body: { description: "new" } });
  const larger = { podFixed: { cpu: "20m", memory: "1Mi" } };
  await clients().host.patch(runtimeClasses, { name: namespace }, { type: "merge", body: { overhead: larger } });
  await eventuallyPasses(async () => {
    expect(await west.get(priorityClasses, { name: namespace })).toMatchObject({ description: "new", value: 1000 });
    expect(await west.get(runtimeClasses, { name: namespace })).toMatchObject({ handler: "runc", overhead: larger });
  }, PATIENT);

  await end("a");
  await goes(runtimeClasses);
  expect((await west.find(priorityClasses, { name: namespace }))?.metadata.uid).toBe(copy.metadata.uid);
  await end("b", other);
  await goes(priorityClasses);
});

test("uses a class that the member has itself without changing it, and copies the host's once it is gone", async () => {
  const { west } = clients();
  await make("host", priorityClasses, priority(1000));
  await make("west", priorityClasses, priority(5));
  const own = await west.get(priorityClasses, { name: namespace });
  await create("a", { priorityClassName: namespace });
  await runs("a");
  expect((await podOf(west, namespace, "a"))?.spec?.priority).toBe(5);
  await end("a");
  await create("b", { priorityClassName: namespace });
  await runs("b");
  expect(await west.get(priorityClasses, { name: namespace })).toEqual(own);
  await west.delete(priorityClasses, { name: namespace });
  await create("c", { priorityClassName: namespace });
  await runs("c");
  expect((await podOf(west, namespace, "c"))?.spec?.priority).toBe(1000);
});

test("sends the pod to another member when one refuses its class, and gives the refusal as reason when none is left", async () => {
  const { west, east } = clients();
  await make("host", priorityClasses, priority(1000));
  const apiVersion = "admissionregistration.k8s.io/v1";
  const rule = {
    apiGroups: ["scheduling.k8s.io"],
    apiVersions: ["v1"],
    resources: ["priorityclasses"],
    operations: ["CREATE"],
    resourceNames: [namespace],
  };
  await applyAll(memberCluster("west"), [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: namespace },
      spec: {
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression: "false", message: "not today" }],
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name: namespace },
      spec: { policyName: namespace, validationActions: ["Deny"] },
    },
  ]);
  onTestFinished(async () => {
    const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
    await kubectl(memberCluster("west"), ["delete", kinds, namespace, "--ignore-not-found"]);
  });
  const probe = (): Promise<unknown> => west.create(priorityClasses, priority(1), { dryRun: true });
  await eventuallyPasses(() => expect(probe()).rejects.toThrow("not today"), PATIENT);

  await create("pinned", { priorityClassName: namespace });
  const why = await waitingFor(clients().host, namespace, "pinned", "not today");
  expect(why).toContain(`west: its API server refused PriorityClass ${namespace}, which the pod needs: `);
  await create("free", { priorityClassName: namespace }, { clusters: "west,east" });
  await runs("free");
  expect((await podOf(east, namespace, "free"))?.spec?.priority).toBe(1000);
});

test("replaces an immutable class once no pod there uses it, and lets new pods wait for that", async () => {
  const { host, west } = clients();
  await make("host", priorityClasses, priority(1000));
  await create("old", { priorityClassName: namespace });
  await runs("old");
  await host.delete(priorityClasses, { name: namespace });
  await host.create(priorityClasses, priority(2000));
  await create("new", { priorityClassName: namespace });
  const words = `PriorityClass ${namespace} there is as it was before it changed on the host`;
  await waitingFor(host, namespace, "new", words);
  expect(await west.get(priorityClasses, { name: namespace })).toMatchObject({ value: 1000 });
  await end("old");
  await runs("new");
  expect((await podOf(west, namespace, "new"))?.spec?.priority).toBe(2000);
});

test("keeps copied classes until their last user ends, and copies no more, once the operator withdraws the selector", async () => {
  const { host, west } = clients();
  const late = `${namespace}-late`;
  await make("host", priorityClasses, priority(1000));
  await make("host", priorityClasses, priority(1000, {}, late));
  await create("early", { priorityClassName: namespace });
  await runs("early");
  const copy = await west.get(priorityClasses, { name: namespace });
  await select(null);
  await create("late", { priorityClassName: late });
  await waitingFor(host, namespace, "late", `no PriorityClass with name ${late} was found`);
  expect(await west.get(priorityClasses, { name: namespace })).toEqual(copy);
  await end("early");
  await goes(priorityClasses);
  // An empty selector selects all classes.
  const other = `${namespace}-other`;
  await make("host", priorityClasses, { metadata: { name: other }, value: 7 });
  await select({});
  await create("other", { priorityClassName: other });
  await runs("other");
  expect((await podOf(west, namespace, "other"))?.spec?.priority).toBe(7);
});
