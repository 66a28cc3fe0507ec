import { afterAll, beforeAll, expect, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { isJsonObject, valueAt } from "../../src/api/json.ts";
import { APPLIED_ANNOTATION, DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Stored } from "../../src/api/kubernetes.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { membersOfObject } from "../../src/copies/object-members.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { type AuditEvent, auditEvents, isWrite } from "../support/clusters/audit.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import {
  autoscaler,
  FLEETS,
  fleetDefinition,
  fleets,
  installMetric,
  operate,
  removeMetric,
  setBacklog,
} from "../support/legation/fleets.ts";
import { installType, removeType } from "../support/legation/widgets.ts";

useLegation();
const clients = useClients();

// Minutes on demand, and some seconds in the suite.
const SCALED_FOR_MS = Number(process.env.LEGATION_AUTOSCALER_MINUTES ?? 0.1) * 60_000;
const TIMEOUT_MS = SCALED_FOR_MS + 180_000;
const WEST = { "legation.dev/clusters": "west" };
// None is a number that an author writes here, or the default of the definition.
const BACKLOGS = [4, 7, 3, 9, 5];
const RETAINED = { retain: ["/spec/replicas"], replicas: null, sum: ["replicas"] };

interface Spec {
  readonly replicas?: number;
  readonly size?: number;
}

beforeAll(async () => {
  const type = { name: FLEETS, definition: fleetDefinition, spec: {} };
  await installType(type, hostCluster(), { west: memberCluster("west"), east: memberCluster("east") });
  for (const cluster of [hostCluster(), memberCluster("west")]) await installMetric(cluster);
});

// Later files share the clusters.
afterAll(async () => {
  await removeType(FLEETS, hostCluster(), [memberCluster("west"), memberCluster("east")]);
  for (const cluster of [hostCluster(), memberCluster("west")]) await removeMetric(cluster);
});

async function changeType(spec: object): Promise<void> {
  await clients().host.patch(delegatedTypes, { name: FLEETS }, { type: "merge", body: { spec } });
}

function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { labels: { [DELEGATION_LABEL]: "annotated" }, onFinished: afterFile });
}

async function fleet(namespace: string, spec: Spec, annotations: object = WEST): Promise<void> {
  const metadata = { name: "one", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } };
  await clients().host.create(fleets, { apiVersion: "scale.example.com/v1", kind: "Fleet", metadata, spec });
}

/** Changes the object as its author does. */
async function change(namespace: string, spec: Spec): Promise<void> {
  await clients().host.patch(fleets, { namespace, name: "one" }, { type: "merge", body: { spec } });
}

async function remove(namespace: string): Promise<void> {
  await clients().host.delete(fleets, { namespace, name: "one" });
  await eventuallyPasses(async () => {
    expect(await clients().host.find(fleets, { namespace, name: "one" })).toBeUndefined();
  });
}

function find(client: ClusterClient, namespace: string): Promise<Stored<AnyObject & { spec?: Spec }> | undefined> {
  return client.find<AnyObject & { spec?: Spec }>(fleets, { namespace, name: "one" });
}

/** Waits until the members have the object, and the host's record says so. */
async function inStep(namespace: string, members: readonly string[]): Promise<void> {
  await eventuallyPasses(async () => {
    const object = await find(clients().host, namespace);
    const records = object === undefined ? undefined : membersOfObject(object);
    expect(records).toMatchObject(members.map((member) => ({ member, state: "InStep" })));
  });
}

async function reasonsOf(namespace: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.filter(({ involvedObject: { kind } }) => kind === "Fleet").map(({ reason = "" }) => reason);
}

/** Returns Legation's requests, done or refused, that change the object in a member. */
function writesIn(cluster: Cluster, namespace: string): Promise<AuditEvent[]> {
  const isOurs = ({ user: { username } }: AuditEvent): boolean =>
    username.startsWith("system:serviceaccount:legation-system:");
  const isHere = ({ objectRef }: AuditEvent): boolean =>
    objectRef?.resource === "fleets" && objectRef.namespace === namespace;
  return auditEvents(cluster, (event) => isOurs(event) && isWrite(event) && isHere(event), [namespace]);
}

function isDone({ responseStatus }: AuditEvent): boolean {
  return (responseStatus?.code ?? 0) < 300;
}

/** Reports whether a request is an apply. The first one is preceded by a JSON patch of the fields' owners. */
function isApply({ verb, requestObject }: AuditEvent): boolean {
  return verb === "patch" && isJsonObject(requestObject);
}

/** Reports whether a request changes the number of replicas. That of a creation is the definition's default. */
function setsReplicas({ verb, requestObject }: AuditEvent): boolean {
  if (verb === "create" || requestObject === undefined) return false;
  if (isJsonObject(requestObject)) return valueAt(requestObject, ["spec", "replicas"]) !== undefined;
  return JSON.stringify(requestObject).includes('"path":"/spec');
}

/** Records each number of replicas that the object in a member has, one after the other. */
function watchReplicas(client: ClusterClient, namespace: string): { readonly seen: number[]; stop(): Promise<void> } {
  const seen: number[] = [];
  const reflector = new Reflector<AnyObject & { spec?: Spec }>({
    client,
    resource: fleets,
    namespace,
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: ({ object }) => {
      const { replicas = -1 } = object.spec ?? {};
      if (seen.at(-1) !== replicas) seen.push(replicas);
    },
  });
  reflector.start();
  return { seen, stop: () => reflector.stop() };
}

/** Lets the member's autoscaler set this number. */
async function scaleTo(client: ClusterClient, namespace: string, replicas: number): Promise<void> {
  await setBacklog(client, namespace, replicas);
  await eventuallyPasses(async () => expect(await operate(client, namespace)).toBe(replicas), { timeoutMs: 60_000 });
}

test("a field that a type retains later keeps its value in members, which may then change it", async () => {
  const namespace = await newNamespace();
  const { west } = clients();
  await changeType({ retain: null, replicas: null });
  await fleet(namespace, { replicas: 3, size: 1 });
  await inStep(namespace, ["west"]);
  const before = await find(west, namespace);
  expect(before?.spec).toEqual({ replicas: 3, size: 1 });
  await changeType(RETAINED);
  await eventuallyPasses(async () => {
    expect((await find(west, namespace))?.metadata.annotations?.[APPLIED_ANNOTATION]).toContain("/spec/replicas");
  });
  const after = await find(west, namespace);
  expect(after?.spec).toEqual({ replicas: 3, size: 1 });
  // Nothing has set it to another value meanwhile.
  expect(after?.metadata.generation).toBe(before?.metadata.generation);
  await west.patch(fleets, { namespace, name: "one" }, { type: "merge", body: { spec: { replicas: 5 } } });
  await change(namespace, { replicas: 9, size: 2 });
  await eventuallyPasses(async () => expect((await find(west, namespace))?.spec).toEqual({ replicas: 5, size: 2 }));
  expect(await reasonsOf(namespace)).toEqual([]);
  await remove(namespace);
});

test("replicas that a type retains are the autoscaler's of the member alone, while the author changes other fields", {
  timeout: TIMEOUT_MS,
}, async () => {
  const namespace = await newNamespace();
  const { west } = clients();
  await changeType(RETAINED);
  await fleet(namespace, { replicas: 2, size: 0 });
  await inStep(namespace, ["west"]);
  const watch = watchReplicas(west, namespace);
  await applyAll(memberCluster("west"), [autoscaler(namespace)]);
  // The autoscaler finds the type some time after its installation.
  await scaleTo(west, namespace, 6);
  const scaledTo: number[] = [];
  const until = performance.now() + SCALED_FOR_MS;
  for (let size = 1; size <= BACKLOGS.length || performance.now() < until; size += 1) {
    const replicas = BACKLOGS[size % BACKLOGS.length] ?? 1;
    scaledTo.push(replicas);
    const changed = change(namespace, { size, ...(size % 3 === 0 ? { replicas: size } : {}) });
    await Promise.all([scaleTo(west, namespace, replicas), changed]);
    await eventuallyPasses(async () => expect((await find(west, namespace))?.spec).toEqual({ replicas, size }));
  }
  await watch.stop();
  const writes = await writesIn(memberCluster("west"), namespace);
  expect(writes.filter(setsReplicas)).toEqual([]);
  // The copy may have another version by then, and its change is sent again.
  const refused = writes.filter((write) => !isDone(write)).map(({ responseStatus }) => responseStatus?.code);
  expect(refused.filter((code) => code !== 409)).toEqual([]);
  const done = writes.filter(isDone);
  expect(done.filter(isApply)).toHaveLength(scaledTo.length);
  // The creation, and the fields' owners once.
  expect(done).toHaveLength(scaledTo.length + 2);
  process.stderr.write(`${scaledTo.length} changes, ${refused.length} of them sent again\n`);
  expect(watch.seen).toEqual([1, 6, ...scaledTo]);
  expect(await reasonsOf(namespace)).toEqual([]);
  await remove(namespace);
});

test("replicas of a type that reports drift are given up to the member's autoscaler once, and the rest follows its author", async () => {
  const namespace = await newNamespace();
  const { west } = clients();
  await changeType({ retain: null, replicas: null, drift: "Report" });
  await fleet(namespace, { replicas: 2, size: 0 });
  await inStep(namespace, ["west"]);
  expect((await find(west, namespace))?.spec).toEqual({ replicas: 2, size: 0 });
  const watch = watchReplicas(west, namespace);
  await applyAll(memberCluster("west"), [autoscaler(namespace)]);
  await scaleTo(west, namespace, 4);
  await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["FieldConflict"]));
  const done = async (): Promise<number> => (await writesIn(memberCluster("west"), namespace)).filter(isDone).length;
  const before = await done();
  for (const [size, replicas] of [
    [1, 7],
    [2, 3],
  ] as const) {
    await Promise.all([change(namespace, { size }), scaleTo(west, namespace, replicas)]);
    await eventuallyPasses(async () => expect((await find(west, namespace))?.spec).toEqual({ replicas, size }));
  }
  // The author's own number changes nothing there, either.
  await change(namespace, { replicas: 8 });
  await scaleTo(west, namespace, 5);
  await inStep(namespace, ["west"]);
  await watch.stop();
  expect(watch.seen).toEqual([2, 4, 7, 3, 5]);
  expect((await done()) - before).toBe(3);
  expect(await reasonsOf(namespace)).toEqual(["FieldConflict"]);
  await remove(namespace);
});

test("replicas that no type retains are put back twice, and then left to the member's autoscaler for a while", async () => {
  const namespace = await newNamespace();
  const { host, west } = clients();
  await changeType({ retain: null, replicas: null, drift: null });
  await fleet(namespace, { replicas: 2, size: 0 });
  await inStep(namespace, ["west"]);
  const watch = watchReplicas(west, namespace);
  await applyAll(memberCluster("west"), [autoscaler(namespace)]);
  await setBacklog(west, namespace, 4);
  await eventuallyPasses(
    async () => {
      await operate(west, namespace);
      expect(await reasonsOf(namespace)).toEqual(["FieldContested"]);
    },
    { timeoutMs: 60_000 },
  );
  const message = "kube-controller-manager keeps changing .spec.replicas";
  await eventuallyPasses(async () => {
    expect(membersOfObject(await host.get(fleets, { namespace, name: "one" }))).toMatchObject([
      { member: "west", state: "Contested", message },
    ]);
  });
  await Promise.all([change(namespace, { replicas: 8, size: 1 }), scaleTo(west, namespace, 7)]);
  await eventuallyPasses(async () => expect((await find(west, namespace))?.spec).toEqual({ replicas: 7, size: 1 }));
  await watch.stop();
  expect(watch.seen).toEqual([2, 4, 2, 4, 2, 4, 7]);
  await remove(namespace);
});

test("an autoscaler of the host scales the members' shares, by one write for each change of a share", async () => {
  const namespace = await newNamespace();
  const { host, west, east } = clients();
  await changeType({ retain: null, replicas: "/spec/replicas", drift: null });
  const preferences = { clusters: { west: { weight: 1 }, east: { weight: 1 } } };
  await fleet(namespace, { replicas: 4 }, { "legation.dev/scheduling-preferences": JSON.stringify(preferences) });
  await inStep(namespace, ["east", "west"]);
  const members = [
    [west, memberCluster("west")],
    [east, memberCluster("east")],
  ] as const;
  const shares = (): Promise<number[]> => Promise.all(members.map(([client]) => operate(client, namespace)));
  const written = (): Promise<number[]> =>
    Promise.all(
      members.map(async ([, cluster]) => {
        const writes = await writesIn(cluster, namespace);
        return writes.filter((write) => isDone(write) && isApply(write)).length;
      }),
    );
  expect(await shares()).toEqual([2, 2]);
  // An autoscaler finds the number and the selector in the status.
  await eventuallyPasses(async () => {
    expect((await find(host, namespace))?.status).toMatchObject({ replicas: 4, selector: "app=fleet" });
  });
  expect(await written()).toEqual([0, 0]);
  await applyAll(hostCluster(), [autoscaler(namespace)]);
  for (const replicas of [8, 2, 12]) {
    await setBacklog(host, namespace, replicas);
    await eventuallyPasses(async () => expect(await shares()).toEqual([replicas / 2, replicas / 2]), {
      timeoutMs: 60_000,
    });
    await eventuallyPasses(async () => expect((await find(host, namespace))?.status).toMatchObject({ replicas }));
  }
  expect((await find(host, namespace))?.spec).toEqual({ replicas: 12 });
  expect(await written()).toEqual([3, 3]);
  expect(await reasonsOf(namespace)).toEqual([]);
  await remove(namespace);
});
