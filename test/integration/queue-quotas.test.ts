import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { QUOTA_ANNOTATION, virtualNodeName } from "../../src/api/keys.ts";
import { nodes } from "../../src/kube/resources.ts";
import { installKueueDefinitions, removeKueueDefinitions } from "../support/engines/kueue-definitions.ts";
import { clusterQueue, flavor, queuesV1beta2, quotasOf } from "../support/engines/kueue-objects.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { installDefinitions, removeDefinitions } from "../support/harness/definitions.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

// What Kueue makes of quotas: on-demand/kueue-quotas.test.ts.
const host = hostCluster();
const PROVIDERS = fileURLToPath(new URL("../support/engines/kueue/capacityproviders.yaml", import.meta.url));
const PATIENT = { timeoutMs: 30_000, intervalMs: 200 };
let cores = 0;

// The controller looks for the APIs when it starts, and once a minute.
beforeAll(async () => {
  afterFile(async () => {
    await removeDefinitions(host, PROVIDERS);
    await removeKueueDefinitions(host);
  });
  await installKueueDefinitions(host);
  await installDefinitions(host, PROVIDERS);
}, 120_000);
useLegation();
const clients = useClients();
beforeAll(async () => {
  const { items } = await clients().west.list(nodes);
  cores = items.reduce((sum, { status }) => sum + Number(status?.allocatable?.cpu), 0);
  await applyAll(host, [flavor("west", { "legation.dev/cluster": "west" }), flavor("own", { disk: "own" })]);
});

test("quotas of a queue that asks are what the member has, and nothing while it takes no pods", async () => {
  const written = { west: { cpu: "1" }, own: { cpu: "7" } };
  await applyAll(host, [
    clusterQueue("asks", written, { annotations: { [QUOTA_ANNOTATION]: "follow" } }),
    clusterQueue("others", written),
  ]);
  const quotas = async (name: string): Promise<object> => quotasOf(await clients().host.get(queuesV1beta2, { name }));
  await eventuallyPasses(async () => {
    expect(await quotas("asks")).toEqual({ west: { cpu: String(cores) }, own: { cpu: "7" } });
  }, PATIENT);
  const cordon = async (unschedulable: boolean): Promise<void> => {
    const body = { spec: { unschedulable } };
    await clients().host.patch(nodes, { name: virtualNodeName("west") }, { type: "merge", body });
  };
  onTestFinished(() => cordon(false));
  await cordon(true);
  await eventuallyPasses(async () => {
    expect(await quotas("asks")).toEqual({ west: { cpu: "0" }, own: { cpu: "7" } });
  }, PATIENT);
  await cordon(false);
  await eventuallyPasses(async () => {
    expect(await quotas("asks")).toMatchObject({ west: { cpu: String(cores) } });
  }, PATIENT);
  expect(await quotas("others")).toEqual(written);
});

test("a CapacityProvider that names Legation has the same", async () => {
  const provider = { apiVersion: "kueue.x-k8s.io/v1alpha1", kind: "CapacityProvider", metadata: { name: "members" } };
  const spec = { controllerName: "legation.dev/members", orchestratedFlavors: [{ name: "west" }] };
  await applyAll(host, [{ ...provider, spec }]);
  await eventuallyPasses(async () => {
    const path = "{.status.capacity.flavors[0].resources.cpu} {.status.conditions[0].reason}";
    const shown = await kubectl(host, ["get", "capacityproviders", "members", "-o", `jsonpath=${path}`]);
    expect(shown).toBe(`${cores} Synchronized`);
  }, PATIENT);
});
