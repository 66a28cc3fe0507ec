import { beforeEach, expect, onTestFinished, test } from "vitest";
import { QUOTA_SHARE_ANNOTATION } from "../../../../src/api/keys.ts";
import type { ClusterQueue } from "../../../../src/api/kueue.ts";
import { clusterQueues } from "../../../../src/api/resources.ts";
import type { FlavorCapacity } from "../../../../src/controllers/queues/capacity.ts";
import { followCapacities } from "../../../../src/controllers/queues/flavor-capacities.ts";
import { QUOTAS } from "../../../../src/controllers/queues/quotas.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const MINUTE_MS = 60_000;
const queues = { ...clusterQueues, version: "v1beta2" };
const WEST: FlavorCapacity = { free: { cpu: 100 }, staying: new Map(), closed: new Map() };

let clock: FakeClock;
let host: MemoryCluster;
let capacities: ReadonlyMap<string, FlavorCapacity> | undefined;
let writes: number;
let refusal: ReturnType<typeof kubeError> | undefined;
let told: string[];
let tellChange: () => void;

beforeEach(() => {
  clock = new FakeClock();
  host = new MemoryCluster("host", "host-1");
  host.serve(queues, true);
  capacities = new Map([["west", WEST]]);
  writes = 0;
  refusal = undefined;
  told = [];
});

async function start(): Promise<void> {
  const client: ClusterClient = {
    ...host.client,
    patch: async (resource, ref, patch, options) => {
      writes += 1;
      if (refusal !== undefined) throw refusal;
      return host.client.patch(resource, ref, patch, options);
    },
  };
  const controller = followCapacities(QUOTAS, {
    host: client,
    capacities: {
      current: () => capacities,
      onChange: (listener) => {
        tellChange = listener;
      },
      changed: () => tellChange(),
      start: () => {},
    },
    recorder: { record: (_, { reason, message }) => told.push(`${reason}: ${message}`) },
    clock,
    log: createLogger({ level: "silent" }),
  });
  controller.start();
  onTestFinished(() => controller.stop());
  await settle();
}

async function settle(): Promise<void> {
  await clock.advanceInSteps(10, 200);
}

function put(name: string, cpu: string, annotations: Readonly<Record<string, string>> = {}): void {
  const flavors = ["west", "own"].map((flavor) => ({ name: flavor, resources: [{ name: "cpu", nominalQuota: cpu }] }));
  const queue: ClusterQueue & { readonly metadata: { readonly name: string } } = {
    metadata: { name, annotations: { "legation.dev/quota": "follow", ...annotations } },
    spec: { resourceGroups: [{ flavors }] },
  };
  host.put(queues, queue);
}

function quotas(name: string): unknown[] {
  const groups = host.peek(queues, { name })?.spec?.resourceGroups ?? [];
  return groups.flatMap(({ flavors = [] }) =>
    flavors.map((flavor) => flavor.resources?.map(({ nominalQuota }) => nominalQuota)[0]),
  );
}

test("writes once for flavors that select members, and again when capacity changes", async () => {
  put("team", "1");
  await start();
  expect(quotas("team")).toEqual(["100", "1"]);
  capacities = new Map([["west", { ...WEST, free: { cpu: 40 } }]]);
  tellChange();
  await settle();
  expect(quotas("team")).toEqual(["40", "1"]);
  await clock.advance(10 * MINUTE_MS);
  expect(writes).toBe(2);
});

test("sees a change of which nothing tells within ten seconds", async () => {
  put("team", "1");
  await start();
  capacities = new Map([["west", { ...WEST, free: { cpu: 40 } }]]);
  await clock.advance(10_000);
  await settle();
  expect(quotas("team")).toEqual(["40", "1"]);
});

test("writes nothing before members were read", async () => {
  capacities = undefined;
  put("team", "7");
  await start();
  expect(writes).toBe(0);
});

test("queues without a share have equal parts of what written shares leave", async () => {
  put("large", "1", { [QUOTA_SHARE_ANNOTATION]: "60%" });
  put("one", "1");
  put("other", "1");
  await start();
  expect(["large", "one", "other"].map((name) => quotas(name)[0])).toEqual(["60", "20", "20"]);
});

test("a refused write is told once, and not repeated at once", async () => {
  put("team", "1");
  refusal = kubeError("Unprocessable", "spec: no", { cluster: "host", resource: "clusterqueues" });
  await start();
  await clock.advance(MINUTE_MS);
  expect(writes).toBe(1);
  expect(told).toEqual(["QuotaRefused: quotas that follow members cannot be written: spec: no"]);
});

test("a manager that puts quotas back is left alone after a while, and the operator is told", async () => {
  put("team", "1");
  await start();
  for (let times = 0; times < 10; times += 1) {
    put("team", "1");
    await settle();
  }
  expect(writes).toBeLessThan(7);
  expect(told).toContainEqual(expect.stringMatching(/^QuotaContested: .* have it leave spec.resourceGroups alone$/));
});
