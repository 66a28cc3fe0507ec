import { beforeEach, expect, test } from "vitest";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { ends, job, replicated } from "../support/builders/workload.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { runCli } from "../support/legation/cli.ts";

// Manifests of other projects, converted and applied as a user does: they run where they ran before.

useLegation();
const clients = useClients();
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "convert", labels });
});

/** Converts objects, and applies the result on the host. */
async function applyConverted(...items: readonly object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  const { code, stdout, stderr } = await runCli(["convert", "--strict", "-f", "-"], { input });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: stdout });
}

async function podsIn(client: ClusterClient): Promise<readonly Stored<Pod>[]> {
  return (await client.list(pods, { namespace })).items;
}

async function counts(): Promise<readonly number[]> {
  return [(await podsIn(clients().west)).length, (await podsIn(clients().east)).length];
}

function rollout(): Promise<string> {
  return kubectl(hostCluster(), ["-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s"]);
}

test("a federated Deployment has each cluster's replicas and image", async () => {
  const { spec } = replicated("Deployment", 2) as { readonly spec?: object };
  const metadata = { name: "web", namespace };
  const image = { path: "/spec/template/spec/containers/0/image", value: "mirror:1" };
  await applyConverted({
    apiVersion: "types.kubefed.io/v1beta1",
    kind: "FederatedDeployment",
    metadata,
    spec: {
      template: { metadata: { labels: { app: "web" } }, spec },
      placement: { clusters: [{ name: "west" }, { name: "east" }] },
      overrides: [{ clusterName: "east", clusterOverrides: [{ path: "/spec/replicas", value: 1 }, image] }],
    },
  });
  await rollout();
  expect(await counts()).toEqual([2, 1]);
  const images = async (client: ClusterClient): Promise<Set<string | undefined>> =>
    new Set((await podsIn(client)).map(({ spec: podSpec }) => podSpec?.containers[0]?.image));
  expect(await images(clients().west)).toEqual(new Set(["main:1"]));
  expect(await images(clients().east)).toEqual(new Set(["mirror:1"]));
});

test("a ReplicaSchedulingPreference divides its Deployment", async () => {
  const { spec } = replicated("Deployment", 1) as { readonly spec?: object };
  const metadata = { name: "web", namespace };
  await applyConverted(
    {
      apiVersion: "types.kubefed.io/v1beta1",
      kind: "FederatedDeployment",
      metadata,
      spec: { template: { spec }, placement: { clusterSelector: {} } },
    },
    {
      apiVersion: "scheduling.kubefed.io/v1alpha1",
      kind: "ReplicaSchedulingPreference",
      metadata,
      spec: {
        targetKind: "FederatedDeployment",
        totalReplicas: 6,
        clusters: { west: { weight: 1 }, east: { weight: 2 } },
      },
    },
  );
  await rollout();
  expect(await counts()).toEqual([2, 4]);
});

test("a JobSchedulingPreference divides its Job", async () => {
  const { spec } = job({ completions: 1 }, ends(0)) as { readonly spec?: object };
  const metadata = { name: "web", namespace };
  await applyConverted(
    {
      apiVersion: "types.kubefed.io/v1beta1",
      kind: "FederatedJob",
      metadata,
      spec: { template: { spec }, placement: { clusterSelector: {} } },
    },
    {
      apiVersion: "scheduling.kubefed.io/v1alpha1",
      kind: "JobSchedulingPreference",
      metadata,
      spec: {
        totalParallelism: 6,
        totalCompletions: 6,
        clusters: { west: { weight: 2 }, east: { weight: 1 } },
      },
    },
  );
  await kubectl(hostCluster(), ["-n", namespace, "wait", "job/web", "--for=condition=Complete", "--timeout=60s"]);
  expect(await counts()).toEqual([4, 2]);
});

test("Karmada's policies place and divide a Deployment, and a Job runs whole in its cluster", async () => {
  const policy = { apiVersion: "policy.karmada.io/v1alpha1", kind: "PropagationPolicy" };
  const named = (object: object): object => ({ ...object, metadata: { name: "web", namespace } });
  await applyConverted(
    named(replicated("Deployment", 3)),
    named(job({ completions: 2 }, ends(0))),
    {
      ...policy,
      metadata: { name: "divided", namespace },
      spec: {
        resourceSelectors: [{ apiVersion: "apps/v1", kind: "Deployment" }],
        placement: {
          replicaScheduling: {
            replicaSchedulingType: "Divided",
            replicaDivisionPreference: "Weighted",
            weightPreference: {
              staticWeightList: [
                { targetCluster: { clusterNames: ["west"] }, weight: 2 },
                { targetCluster: { clusterNames: ["east"] }, weight: 1 },
              ],
            },
          },
        },
      },
    },
    {
      ...policy,
      metadata: { name: "jobs", namespace },
      spec: {
        resourceSelectors: [{ apiVersion: "batch/v1", kind: "Job" }],
        placement: { clusterAffinity: { exclude: ["west"], clusterNames: ["west", "east"] } },
      },
    },
  );
  await rollout();
  await kubectl(hostCluster(), ["-n", namespace, "wait", "job/web", "--for=condition=Complete", "--timeout=60s"]);
  const byOwner = async (client: ClusterClient, isOfJob: boolean): Promise<number> =>
    (await podsIn(client)).filter(({ metadata }) => (metadata.labels?.["job-name"] !== undefined) === isOfJob).length;
  expect([await byOwner(clients().west, false), await byOwner(clients().east, false)]).toEqual([2, 1]);
  expect([await byOwner(clients().west, true), await byOwner(clients().east, true)]).toEqual([0, 2]);
});
