import { beforeAll, expect, test } from "vitest";
import { admissionChecks } from "../../src/api/resources.ts";
import { resourceOf } from "../../src/kube/optional-resource.ts";
import { installKueueDefinitions, removeKueueDefinitions } from "../support/engines/kueue-definitions.ts";
import { KueueScheduler, workloadsV1beta2 } from "../support/engines/kueue-scheduler.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

const host = hostCluster();
// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  afterFile(() => removeKueueDefinitions(host));
  await installKueueDefinitions(host);
}, 120_000);
useLegation();
const clients = useClients();
const patient = { timeoutMs: 30_000, intervalMs: 100 };
const CHECK = "room";
const checks = resourceOf(admissionChecks, {});
let kueue: KueueScheduler;

beforeAll(async () => {
  kueue = new KueueScheduler(clients().host, CHECK);
  await clients().host.create(checks, {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "AdmissionCheck",
    metadata: { name: CHECK },
    spec: { controllerName: "legation.dev/room" },
  });
});

function opted(mode = "all"): Promise<string> {
  const labels = { "legation.dev/delegation": mode };
  return freshNamespace([host, memberCluster("west"), memberCluster("east")], { prefix: "room", labels });
}

interface PodSetParts {
  readonly name?: string;
  readonly count?: number;
  readonly cpu?: string;
}

async function queued(namespace: string, name: string, podSets: readonly PodSetParts[]): Promise<void> {
  const sets = podSets.map(({ name: set = "main", count = 1, cpu = "1" }) => ({
    name: set,
    count,
    template: { spec: { containers: [{ name: "main", image: "main:1", resources: { requests: { cpu } } }] } },
  }));
  const ref = { namespace, name };
  await clients().host.create(workloadsV1beta2, {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "Workload",
    metadata: ref,
    spec: { podSets: sets },
  });
  await kueue.reserve(
    ref,
    sets.map(({ name: set, count }) => ({ name: set, count })),
  );
}

test("Legation answers for its AdmissionCheck", async () => {
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(checks, { name: CHECK });
    expect(status?.conditions).toMatchObject([{ type: "Active", status: "True", reason: "Active" }]);
  }, patient);
});

test("a workload whose pods fit in members is ready", async () => {
  const namespace = await opted();
  await queued(namespace, "small", [{ count: 3 }]);
  await eventuallyPasses(async () => {
    expect(await kueue.entry({ namespace, name: "small" })).toMatchObject({
      state: "Ready",
      message: expect.stringMatching(/^3 pods fit: \d in (east|west)/),
    });
  }, patient);
});
