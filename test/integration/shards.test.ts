import { beforeEach, expect, test } from "vitest";
import { SLOT_LABEL } from "../../src/api/keys.ts";
import { leaseOf } from "../../src/api/shards.ts";
import { leases, pods } from "../../src/kube/resources.ts";
import { freePort } from "../support/clusters/ports.ts";
import { expectAllRunOnce } from "../support/delegated/burst.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import type { LegationProcess } from "../support/legation/start.ts";

const LEASE_MS = 15_000;
const SHARDS = 4;
const clients = useClients();
const running = useLegation({
  restart: false,
  env: { LEGATION_SHARDS: String(SHARDS) },
  controllerFlags: ["--identity=first", `--lease-duration=${LEASE_MS / 1000}s`],
});

/** Beside the first, which the harness starts. */
const replicas = new Map<string, LegationProcess>();

async function replica(identity: string, shards = SHARDS): Promise<LegationProcess> {
  const flags = [`--identity=${identity}`, `--lease-duration=${LEASE_MS / 1000}s`, `--shards=${shards}`];
  const made = await running().another("controller", [...flags, `--kubelet-listen=127.0.0.1:${await freePort()}`]);
  await made.start();
  replicas.set(identity, made);
  return made;
}

async function holders(count = SHARDS): Promise<readonly (string | undefined)[]> {
  const named = Array.from({ length: count }, (_, index) => ({ namespace: "legation-system", name: leaseOf(index) }));
  const found = await Promise.all(named.map((ref) => clients().host.find(leases, ref)));
  return found.map((lease) => lease?.spec?.holderIdentity);
}

/** Waits until each of these replicas leads a fair part of the shards. */
async function shared(among: readonly string[], count = SHARDS): Promise<void> {
  await eventuallyPasses(
    async () => {
      const held = await holders(count);
      const parts = among.map((identity) => held.filter((holder) => holder === identity).length);
      expect(parts.reduce((sum, part) => sum + part, 0)).toBe(count);
      expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
    },
    { timeoutMs: 60_000 },
  );
}

let namespaces: readonly string[] = [];
const created = new Map<string, string[]>();

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const clusters = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespaces = await Promise.all(
    Array.from({ length: 8 }, (_, number) => freshNamespace(clusters, { prefix: `shards-${number}`, labels })),
  );
});

/** Creates a pod in each namespace, and waits until all that ever were created run, by one delegate each. */
async function createAndRun(name: string): Promise<void> {
  await Promise.all(
    namespaces.map(async (namespace) => {
      await clients().host.create(pods, delegatedPod(namespace, name));
      created.set(namespace, [...(created.get(namespace) ?? []), name]);
    }),
  );
  const clusters = { host: hostCluster(), members: [memberCluster("west"), memberCluster("east")] };
  await Promise.all(
    namespaces.map((namespace) => expectAllRunOnce(clients().host, clusters, namespace, created.get(namespace) ?? [])),
  );
}

test("pods of all namespaces run while replicas share the shards, join, and are killed", async () => {
  await shared(["first"]);
  await createAndRun("alone");
  const labelled = await clients().host.list(pods, { labelSelector: SLOT_LABEL });
  expect(labelled.items).toHaveLength(namespaces.length);

  const second = await replica("second");
  await shared(["first", "second"]);
  await createAndRun("two");

  await second.stop("SIGKILL");
  const afterKill = createAndRun("killed");
  await shared(["first"]);
  await afterKill;
  // The first shard's holder has nothing in hand that the others have.
  await second.start();
  await replica("third");
  await shared(["first", "second", "third"]);
  await createAndRun("three");

  await running().controller.stop("SIGKILL");
  const afterFirst = createAndRun("first-killed");
  await shared(["second", "third"]);
  await afterFirst;
});

test("no pod is lost or made twice when the number of shards changes", async () => {
  for (const process of replicas.values()) await process.stop();
  for (const count of [1, 4, 2]) {
    const before = [...replicas.values()];
    const next = await replica(`of-${count}`, count);
    const created = createAndRun(`count-${count}`);
    await Promise.all(before.map((process) => process.stop()));
    await shared([`of-${count}`], count);
    await created;
    for (const process of before) expect(process).not.toBe(next);
  }
});
