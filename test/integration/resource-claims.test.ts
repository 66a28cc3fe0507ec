import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import type { PodSpec, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { apiVersionOf, kindName, pods, type Resource } from "../../src/kube/resources.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../support/legation/allow-types.ts";

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
// Copies stay for ten seconds after their last user.
const PATIENT = { timeoutMs: 60_000 };

useLegation();
const clients = useClients();
let namespace: string;

beforeAll(async () => {
  await allowTypes(TYPES, {
    host: hostCluster(),
    members: { west: memberCluster("west"), east: memberCluster("east") },
  });
  const { west } = clients();
  const selectors = [{ cel: { expression: `device.driver == "${DRIVER}"` } }];
  await create(west, deviceClasses, DRIVER, { spec: { selectors } });
  const pool = { name: NODE, generation: 1, resourceSliceCount: 1 };
  const devices = ["gpu-0", "gpu-1"].map((name) => ({ name }));
  await create(west, slices, NODE, { spec: { driver: DRIVER, nodeName: NODE, pool, devices } });
});
afterAll(async () => {
  const { west } = clients();
  await west.delete(slices, { name: NODE });
  await west.delete(deviceClasses, { name: DRIVER });
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

const ONE_GPU = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: DRIVER } }] } };

/** A pod's spec whose container has what the claim gives. */
function using(claim: { readonly resourceClaimName: string } | { readonly resourceClaimTemplateName: string }): {
  readonly spec: Partial<PodSpec>;
} {
  const resources = { claims: [{ name: "gpu" }] };
  const containers = [{ name: "main", image: "work:1", resources }];
  return { spec: { containers, resourceClaims: [{ name: "gpu", ...claim }] } };
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
