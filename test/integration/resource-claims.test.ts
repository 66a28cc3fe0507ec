import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { isJsonObject } from "../../src/api/json.ts";
import type { PodSpec, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { apiVersionOf, kindName, namespaces, pods, type Resource } from "../../src/kube/resources.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../support/legation/allow-types.ts";
import { runCli } from "../support/legation/cli.ts";

function ofGroup(plural: string, kind: string, namespaced = true): Resource<AnyObject> {
  return { group: "resource.k8s.io", version: "v1", plural, kind, namespaced };
}
const claims = ofGroup("resourceclaims", "ResourceClaim");
const templates = ofGroup("resourceclaimtemplates", "ResourceClaimTemplate");
const deviceClasses = ofGroup("deviceclasses", "DeviceClass", false);
const slices = ofGroup("resourceslices", "ResourceSlice", false);
const TYPES = [templates, claims].map(kindName);

const DRIVER = "gpu.example.com";
const NODE = "west-node-1";
/** A driver without devices. */
const IDLE_DRIVER = "fpga.example.com";
/** The extended resource by which pods get devices of the first driver without a claim. */
const GPUS = "example.com/gpu";
// Copies stay for ten seconds after their last user.
const PATIENT = { timeoutMs: 60_000 };

const legation = useLegation();
const clients = useClients();
let namespace: string;

beforeAll(async () => {
  const { west } = clients();
  for (const driver of [DRIVER, IDLE_DRIVER]) {
    await create(west, deviceClasses, driver, classOf(driver, driver === DRIVER ? GPUS : "example.com/fpga"));
  }
  await publish(west, NODE, ["gpu-0", "gpu-1"]);
  await allowTypes(TYPES, {
    host: hostCluster(),
    members: { west: memberCluster("west"), east: memberCluster("east") },
  });
});
afterAll(async () => {
  const { west } = clients();
  await west.delete(slices, { name: NODE });
  for (const name of [DRIVER, IDLE_DRIVER]) await west.delete(deviceClasses, { name });
  await forbidTypes(TYPES, {
    host: hostCluster(),
    members: { west: memberCluster("west"), east: memberCluster("east") },
  });
});
beforeEach(async () => {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "devices", labels: { "legation.dev/delegation": "annotated" } });
});

function create(
  client: ClusterClient,
  type: Resource<AnyObject>,
  name: string,
  fields: object,
): Promise<Stored<AnyObject>> {
  const metadata = type.namespaced ? { namespace, name } : { name };
  return client.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...fields });
}

function classOf(driver: string, extendedResourceName: string): object {
  return { spec: { selectors: [{ cel: { expression: `device.driver == "${driver}"` } }], extendedResourceName } };
}

/** Publishes devices of a node as its driver does. */
async function publish(client: ClusterClient, node: string, names: readonly string[]): Promise<void> {
  const pool = { name: node, generation: 1, resourceSliceCount: 1 };
  const devices = names.map((name) => ({ name }));
  await create(client, slices, node, { spec: { driver: DRIVER, nodeName: node, pool, devices } });
}

const ONE_GPU = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: DRIVER } }] } };

/** A pod's spec whose container has what the claim gives. */
function using(claim: { readonly resourceClaimName: string } | { readonly resourceClaimTemplateName: string }): {
  readonly spec: Partial<PodSpec>;
} {
  const resources = { claims: [{ name: "gpu" }] };
  const containers = [{ name: "main", image: "work:1", resources }];
  return { spec: { containers, resourceClaims: [{ name: "gpu", ...claim }] } };
}

async function statusIn(client: ClusterClient, name: string): Promise<Readonly<Record<string, unknown>>> {
  const { status } = await client.get(claims, { namespace, name });
  return { ...(isJsonObject(status) ? status : {}) };
}

async function claimsIn(client: ClusterClient): Promise<Stored<AnyObject>[]> {
  return (await client.list(claims, { namespace, limit: 100 })).items;
}

test("a pod runs with a device that its member allocated to the claim of a copied template", async () => {
  const { host, west } = clients();
  await create(host, templates, "gpu", { spec: { spec: ONE_GPU } });
  const annotations = { "legation.dev/clusters": "west" };
  await host.create(
    pods,
    delegatedPod(namespace, "train", { annotations, ...using({ resourceClaimTemplateName: "gpu" }) }),
  );
  const proxy = await podThat(host, namespace, "train", inPhase("Running"));
  const delegate = await podThat(west, namespace, "train", inPhase("Running"));
  expect(delegate.spec?.nodeName).toBe(NODE);
  const [there, ...others] = await claimsIn(west);
  expect(others).toEqual([]);
  expect(there?.status).toMatchObject({
    allocation: { devices: { results: [{ driver: DRIVER, pool: NODE, request: "gpu" }] } },
    reservedFor: [{ resource: "pods", name: "train", uid: delegate.metadata.uid }],
  });
  // The host's own claim for the pod, which nothing allocates.
  const [here] = await claimsIn(host);
  expect(proxy.status).toMatchObject({
    resourceClaimStatuses: [{ name: "gpu", resourceClaimName: here?.metadata.name }],
  });
  expect(here?.metadata).toMatchObject({ ownerReferences: [{ kind: "Pod", uid: proxy.metadata.uid }] });
  expect(here?.status).toEqual({});
  await host.delete(pods, { namespace, name: "train" });
  await podGone(host, namespace, "train");
  await eventually(async () => (await claimsIn(host)).length === 0 && (await claimsIn(west)).length === 0, {
    what: "no claim",
    ...PATIENT,
  });
  await eventually(async () => (await west.find(templates, { namespace, name: "gpu" })) === undefined, {
    what: "no copy",
    ...PATIENT,
  });
});

test("pods that share a claim run in one member, whose allocation the host's claim has for as long as pods use it", async () => {
  const { host, west, east } = clients();
  await create(host, claims, "shared", { spec: ONE_GPU });
  const names = numbered("worker", 3);
  const created = await Promise.all(
    names.map((name) => host.create(pods, delegatedPod(namespace, name, using({ resourceClaimName: "shared" })))),
  );
  for (const name of names) await podThat(host, namespace, name, inPhase("Running"));
  const { allocation } = await statusIn(west, "shared");
  expect(allocation).toMatchObject({ devices: { results: [{ driver: DRIVER, pool: NODE, request: "gpu" }] } });
  const consumers = created.map(({ metadata: { name, uid } }) => ({ resource: "pods", name, uid }));
  await eventuallyPasses(async () => {
    const { reservedFor, ...status } = await statusIn(host, "shared");
    expect(status).toEqual({ allocation });
    expect(reservedFor).toHaveLength(3);
    expect(reservedFor).toEqual(expect.arrayContaining(consumers));
  });
  expect(await claimsIn(east)).toEqual([]);
  await legation().controller.stop("SIGKILL");
  await legation().controller.start();
  for (const name of names.slice(1)) await host.delete(pods, { namespace, name });
  await eventuallyPasses(async () =>
    expect(await statusIn(host, "shared")).toEqual({ allocation, reservedFor: consumers.slice(0, 1) }),
  );
  await host.delete(pods, { namespace, name: "worker-0" });
  await eventuallyPasses(async () => expect(await statusIn(host, "shared")).toEqual({}), PATIENT);
  await eventually(async () => (await west.find(claims, { namespace, name: "shared" })) === undefined, {
    what: "no copy",
    ...PATIENT,
  });
});

test("a pod that shares a second claim with others follows them", async () => {
  const { host } = clients();
  for (const name of ["first", "second"]) await create(host, claims, name, { spec: ONE_GPU });
  const annotations = { "legation.dev/clusters": "west" };
  const one = using({ resourceClaimName: "second" });
  await host.create(pods, delegatedPod(namespace, "one", { annotations, ...one }));
  await podThat(host, namespace, "one", inPhase("Running"));
  const { spec } = using({ resourceClaimName: "first" });
  const resourceClaims = [...(spec.resourceClaims ?? []), { name: "other", resourceClaimName: "second" }];
  const elsewhere = { annotations: { "legation.dev/clusters": "east" }, spec: { ...spec, resourceClaims } };
  await host.create(pods, delegatedPod(namespace, "both", elsewhere));
  await waitingFor(host, namespace, "both", "ResourceClaim second, which the pod needs, is in use in west");
  await host.delete(pods, { namespace, name: "both" });
  await podGone(host, namespace, "both");
  await host.create(pods, delegatedPod(namespace, "both", { spec: { ...spec, resourceClaims } }));
  const both = await podThat(host, namespace, "both", inPhase("Running"));
  expect(both.spec?.nodeName).toBe("legation-west");
});

test("a claim that is made anew with another spec replaces its copy once the pods that use it have ended", async () => {
  const { host, west } = clients();
  await create(host, claims, "remade", { spec: ONE_GPU });
  await host.create(pods, delegatedPod(namespace, "old", using({ resourceClaimName: "remade" })));
  await podThat(host, namespace, "old", inPhase("Running"));
  await host.delete(claims, { namespace, name: "remade" });
  const requests = [{ name: "gpu", exactly: { deviceClassName: DRIVER, count: 2 } }];
  await create(host, claims, "remade", { spec: { devices: { requests } } });
  await host.create(pods, delegatedPod(namespace, "new", using({ resourceClaimName: "remade" })));
  await eventuallyPasses(async () => {
    const { metadata } = await west.get(claims, { namespace, name: "remade" });
    expect(metadata.deletionTimestamp).toBeDefined();
  });
  await podThat(west, namespace, "old", inPhase("Running"));
  await host.delete(pods, { namespace, name: "old" });
  await podThat(host, namespace, "new", inPhase("Running"));
  const { allocation } = await statusIn(west, "remade");
  expect(allocation).toMatchObject({ devices: { results: [{ device: "gpu-0" }, { device: "gpu-1" }] } });
});

test("a member without a claim's DeviceClass, or without devices of its driver, gets no pod, and the reason says which", async () => {
  const { host } = clients();
  const requests = [{ name: "fpga", exactly: { deviceClassName: IDLE_DRIVER } }];
  await create(host, templates, "fpga", { spec: { spec: { devices: { requests } } } });
  await host.create(pods, delegatedPod(namespace, "train", using({ resourceClaimTemplateName: "fpga" })));
  const needed = "which ResourceClaimTemplate fpga asks for";
  const why = await waitingFor(host, namespace, "train", `east: has no DeviceClass ${IDLE_DRIVER}, ${needed}`);
  expect(why).toContain(`west: has no devices of driver ${IDLE_DRIVER}, ${needed} by DeviceClass ${IDLE_DRIVER}`);
});

test("a claim with devices of the host, or that asks for admin access, goes to no member", async () => {
  const { host, west } = clients();
  const finalizers = ["resource.kubernetes.io/delete-protection"];
  const ref = { namespace, name: "here" };
  const { group, version, kind } = claims;
  const fields = { apiVersion: `${group}/${version}`, kind, metadata: { ...ref, finalizers }, spec: ONE_GPU };
  await host.create(claims, fields);
  await host.create(pods, delegatedPod(namespace, "early", using({ resourceClaimName: "here" })));
  await waitingFor(host, namespace, "early", `ResourceClaim "here" has devices of this cluster`);
  await host.patch(claims, ref, { type: "merge", body: { metadata: { finalizers: [] } } });
  await podThat(host, namespace, "early", inPhase("Running"));
  await host.patch(
    namespaces,
    { name: namespace },
    { type: "merge", body: { metadata: { labels: { "resource.kubernetes.io/admin-access": "true" } } } },
  );
  const exactly = { deviceClassName: DRIVER, adminAccess: true };
  await create(host, templates, "admin", { spec: { spec: { devices: { requests: [{ name: "gpu", exactly }] } } } });
  await host.create(pods, delegatedPod(namespace, "monitor", using({ resourceClaimTemplateName: "admin" })));
  const path = "spec.spec.devices.requests[0].exactly.adminAccess";
  await waitingFor(host, namespace, "monitor", `ResourceClaimTemplate "admin" asks for ${path}`);
  const { uid } = (await west.get(claims, ref)).metadata;
  await host.delete(claims, ref);
  await create(host, claims, "here", { spec: { devices: { requests: [{ name: "gpu", exactly }] } } });
  await host.create(pods, delegatedPod(namespace, "late", using({ resourceClaimName: "here" })));
  await waitingFor(
    host,
    namespace,
    "late",
    `ResourceClaim "here" asks for spec.devices.requests[0].exactly.adminAccess`,
  );
  const { metadata } = await west.get(claims, ref);
  expect([metadata.uid, metadata.deletionTimestamp]).toEqual([uid, undefined]);
});

/** A pod's spec whose container requests an extended resource. */
function requesting(resource: string): { readonly spec: Partial<PodSpec> } {
  const resources = { limits: { [resource]: "1" } };
  return { spec: { containers: [{ name: "main", image: "work:1", resources }] } };
}

test("a pod with an extended resource that only a DeviceClass offers runs where its driver has devices", async () => {
  const { host, west } = clients();
  await host.create(pods, delegatedPod(namespace, "train", requesting(GPUS)));
  await host.create(
    pods,
    delegatedPod(namespace, "by-class", requesting(`deviceclass.resource.kubernetes.io/${DRIVER}`)),
  );
  for (const name of ["train", "by-class"]) {
    const proxy = await podThat(host, namespace, name, inPhase("Running"));
    expect(proxy.spec?.nodeName).toBe("legation-west");
    const { spec, status } = await podThat(west, namespace, name, inPhase("Running"));
    expect(spec?.nodeName).toBe(NODE);
    expect(status?.extendedResourceClaimStatus?.requestMappings).toHaveLength(1);
    expect(proxy.status?.extendedResourceClaimStatus).toEqual(status?.extendedResourceClaimStatus);
  }
  expect((await claimsIn(west)).map(({ status }) => status)).toMatchObject(
    ["gpu-0", "gpu-1"].map(() => ({ allocation: { devices: { results: [{ driver: DRIVER, pool: NODE }] } } })),
  );
  await host.create(pods, delegatedPod(namespace, "idle", requesting("example.com/fpga")));
  await waitingFor(host, namespace, "idle", "west: no schedulable node offers example.com/fpga");
  for (const name of ["train", "by-class"]) {
    await host.delete(pods, { namespace, name });
    await podGone(host, namespace, name);
  }
  await eventually(async () => (await claimsIn(west)).length === 0, { what: "no claim", ...PATIENT });
});

const allocated = z.object({
  allocation: z.object({ devices: z.object({ results: z.array(z.object({ pool: z.string(), device: z.string() })) }) }),
});
const planned = z.object({
  workloads: z.array(
    z.object({
      outcome: z.string(),
      pods: z.array(z.object({ cluster: z.string().optional(), message: z.string().optional() })),
      clusters: z.array(z.object({ cluster: z.string(), whyNot: z.array(z.object({ message: z.string() })) })),
    }),
  ),
  guesses: z.array(z.unknown()),
});

test("a plan says which member would have pods with claims, and why not others", async () => {
  const { host } = clients();
  await eventuallyPasses(async () => {
    const { status } = await host.get(clusters, { name: "west" });
    expect(status?.devices).toMatchObject({ served: true, drivers: [DRIVER] });
  });
  await create(host, claims, "shared", { spec: ONE_GPU });
  const manifest = (name: string, { spec }: { readonly spec: Partial<PodSpec> }): object => ({
    ...delegatedPod(namespace, name, { spec }),
    apiVersion: "v1",
    kind: "Pod",
  });
  const template = (name: string, deviceClassName: string, more: object = {}): object => {
    const requests = [{ name: "gpu", exactly: { deviceClassName, ...more } }];
    const spec = { spec: { devices: { requests } } };
    return { apiVersion: apiVersionOf(templates), kind: templates.kind, metadata: { namespace, name }, spec };
  };
  const input = [
    template("gpu", DRIVER),
    template("fpga", IDLE_DRIVER),
    template("admin", DRIVER, { adminAccess: true }),
    manifest("by-template", using({ resourceClaimTemplateName: "gpu" })),
    manifest("by-name", using({ resourceClaimName: "shared" })),
    manifest("by-resource", requesting(GPUS)),
    manifest("idle", using({ resourceClaimTemplateName: "fpga" })),
    manifest("admin", using({ resourceClaimTemplateName: "admin" })),
    manifest("lost", using({ resourceClaimName: "lost" })),
  ].map((object) => JSON.stringify(object));
  const flags = ["-f", "-", `--kubeconfig=${hostCluster().kubeconfig}`, "-o", "json"];
  const { stdout } = await runCli(["plan", ...flags], { input: input.join("\n---\n") });
  const { workloads, guesses } = planned.parse(JSON.parse(stdout));
  const east = (message: string): object => ({ cluster: "east", whyNot: [{ message }] });
  const inWest = (message: string): object => ({
    outcome: "fits",
    pods: [{ cluster: "west" }],
    clusters: [east(message), { cluster: "west", whyNot: [] }],
  });
  const needed = "asks for by DeviceClass";
  expect(workloads).toEqual([
    inWest(`has no DeviceClass ${DRIVER}, which ResourceClaimTemplate gpu asks for`),
    inWest(`has no DeviceClass ${DRIVER}, which ResourceClaim shared asks for`),
    inWest(`no schedulable node offers ${GPUS}`),
    {
      outcome: "waits",
      pods: [{ message: expect.stringContaining(`west: has no devices of driver ${IDLE_DRIVER}`) }],
      clusters: [
        east(`has no DeviceClass ${IDLE_DRIVER}, which ResourceClaimTemplate fpga asks for`),
        {
          cluster: "west",
          whyNot: [
            {
              message: `has no devices of driver ${IDLE_DRIVER}, which ResourceClaimTemplate fpga ${needed} ${IDLE_DRIVER}`,
            },
          ],
        },
      ],
    },
    expect.objectContaining({
      outcome: "waits",
      pods: [{ message: expect.stringContaining(`ResourceClaimTemplate "admin" asks for spec.spec.devices`) }],
    }),
    expect.objectContaining({
      outcome: "waits",
      pods: [{ message: `resourceclaims.resource.k8s.io "lost" not found` }],
    }),
  ]);
  expect(guesses).toEqual([]);
});

test("pods with claims go to another member when one has no device left, each member allocating its own", async () => {
  const { host, west, east } = clients();
  const node = "east-node-1";
  onTestFinished(async () => {
    await east.delete(slices, { name: node });
    await east.delete(deviceClasses, { name: DRIVER });
  });
  await create(east, deviceClasses, DRIVER, classOf(DRIVER, GPUS));
  await publish(east, node, ["gpu-0"]);
  await create(host, templates, "gpu", { spec: { spec: ONE_GPU } });
  const names = numbered("train", 3);
  for (const name of names) {
    await host.create(pods, delegatedPod(namespace, name, using({ resourceClaimTemplateName: "gpu" })));
  }
  // The scheduler of a member without a free device has half a minute.
  for (const name of names) await podThat(host, namespace, name, inPhase("Running"), { timeoutMs: 120_000 });
  const devicesIn = async (client: ClusterClient): Promise<unknown[]> =>
    (await claimsIn(client)).map(({ status }) => allocated.parse(status).allocation.devices.results[0]);
  expect(await devicesIn(west)).toHaveLength(2);
  expect(await devicesIn(west)).toEqual(
    expect.arrayContaining([
      { pool: NODE, device: "gpu-0" },
      { pool: NODE, device: "gpu-1" },
    ]),
  );
  expect(await devicesIn(east)).toEqual([{ pool: node, device: "gpu-0" }]);
});
