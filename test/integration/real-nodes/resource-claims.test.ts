import { afterAll, beforeAll, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { kindName, pods, type Resource } from "../../../src/kube/resources.ts";
import { IMAGE } from "../../support/engines/clusters.ts";
import {
  type DeviceDriver,
  parameters,
  removeDeviceDriver,
  startDeviceDriver,
} from "../../support/engines/device-driver.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../../support/legation/allow-types.ts";

// A driver's kubelet plugin on a member's real node prepares the devices of delegated pods.

const DRIVER = "gpu.example.com";
const API = "resource.k8s.io/v1";
const claims: Resource<AnyObject> = {
  group: "resource.k8s.io",
  version: "v1",
  plural: "resourceclaims",
  kind: "ResourceClaim",
  namespaced: true,
};
const templates: Resource<AnyObject> = { ...claims, plural: "resourceclaimtemplates", kind: "ResourceClaimTemplate" };
const TYPES = [claims, templates].map(kindName);
const patient = { timeoutMs: 120_000 };

const devices = {
  requests: [{ name: "one", exactly: { deviceClassName: DRIVER } }],
  config: [parameters(DRIVER, "a")],
};
// The test driver's variables, in the order of their names.
const SHOWS_DEVICES = "env | grep -E '^(admin|claim|user)_' | sort; trap 'exit 0' TERM; sleep 600 & wait";

function using(claim: object): Partial<Pod> {
  const container = { name: "main", image: IMAGE, command: ["sh", "-c", SHOWS_DEVICES] };
  const resources = { claims: [{ name: "gpu" }] };
  return {
    spec: {
      containers: [{ ...container, resources }],
      resourceClaims: [{ name: "gpu", ...claim }],
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
    },
  };
}

onRealNodes((realNodes) => {
  let driver: DeviceDriver;

  beforeAll(async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west, { prefix: "driver", onFinished: afterFile });
    const node = (await kubectl(west, ["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"])).trim();
    driver = { cluster: west, namespace, driver: DRIVER, node };
    await startDeviceDriver(driver);
    await allowTypes(TYPES, { host: hostCluster(), members: { west } });
  }, 600_000);
  afterAll(async () => {
    await removeDeviceDriver(driver);
    await forbidTypes(TYPES, { host: hostCluster(), members: { west: memberCluster("west") } });
  });

  async function create(place: Place, name: string, body: Partial<Pod>): Promise<Stored<Pod>> {
    const { client, namespace } = place;
    await client.create(pods, { apiVersion: "v1", kind: "Pod", metadata: { namespace, name }, ...body });
    return podThat(client, namespace, name, inPhase("Running"), patient);
  }

  test("a container has the device of its pod's claim template, and of a named claim, whose allocation the host shows", async () => {
    const { delegating } = await realNodes().places();
    const { client, cluster, namespace } = delegating;
    const there = realNodes().inMember(delegating);
    const object = (kind: string, name: string, spec: object): object => ({
      apiVersion: API,
      kind,
      metadata: { namespace, name },
      spec,
    });
    await applyAll(cluster, [
      object("ResourceClaimTemplate", "gpu", { spec: { devices } }),
      object("ResourceClaim", "shared", { devices }),
    ]);
    const logs = (name: string): Promise<string> => kubectl(cluster, ["logs", "-n", namespace, name]);

    const own = await create(delegating, "own", using({ resourceClaimTemplateName: "gpu" }));
    expect((await logs("own")).split("\n")).toEqual([
      "admin_x=y",
      expect.stringMatching(/^claim_.*=true$/),
      "user_a=y",
      "",
    ]);
    const [status] = own.status?.resourceClaimStatuses ?? [];
    expect(status).toMatchObject({ name: "gpu", resourceClaimName: expect.stringMatching(/^own-gpu-/) });
    const made = await client.get(claims, { namespace, name: status?.resourceClaimName ?? "" });
    expect(made.metadata.ownerReferences).toMatchObject([{ kind: "Pod", uid: own.metadata.uid }]);

    const sharing = await create(delegating, "sharing", using({ resourceClaimName: "shared" }));
    expect((await logs("sharing")).split("\n")).toEqual([
      "admin_x=y",
      expect.stringMatching(/^claim_.*=true$/),
      "user_a=y",
      "",
    ]);
    await eventuallyPasses(async () => {
      const { status: shown } = await client.get(claims, { namespace, name: "shared" });
      const { uid } = sharing.metadata;
      expect(shown).toMatchObject({
        allocation: { devices: { results: [{ driver: DRIVER, pool: driver.node, request: "one" }] } },
        reservedFor: [{ resource: "pods", name: "sharing", uid }],
      });
    });

    for (const name of ["own", "sharing"]) {
      await client.delete(pods, { namespace, name });
      await podGone(client, namespace, name, undefined, patient);
    }
    await eventuallyPasses(async () => {
      const { status: shown } = await client.get(claims, { namespace, name: "shared" });
      expect(shown).toEqual({});
    }, patient);
    await eventually(async () => (await there.client.list(claims, { namespace })).items.length === 0, {
      what: "no claim in the member",
      ...patient,
    });
  });
});
