import { expect, onTestFinished, test } from "vitest";
import { newLedger } from "../chaos/objects/ledger.ts";
import { allowTypes, forbidTypes, makeForeignObjects } from "../chaos/objects/setup.ts";
import { makeForeignPods } from "../chaos/rules.ts";
import { runChaos } from "../chaos/run.ts";
import { FOREIGN_NAME } from "../chaos/workloads.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podOf } from "../support/harness/pods-of.ts";

const legation = useLegation();
const clients = useClients();

test("keeps every rule and comes to rest after half a minute of random faults", {
  timeout: 280_000,
}, async () => {
  const host = hostCluster();
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([host, ...Object.values(members)], { prefix: "chaos", labels });
  const kinds = ["ConfigMap"] as const;
  const ledger = newLedger();
  const places = { host, members, clients: clients(), namespace, passing: [] };
  const scene = { ...places, legation: legation(), forced: new Set<string>(), kinds, ledger };
  await makeForeignPods(scene);
  await allowTypes(scene.clients, kinds);
  onTestFinished(() => forbidTypes(clients(), kinds));
  await makeForeignObjects(scene);
  const report = await runChaos(scene, { seed: 7, lengthMs: 30_000 });
  expect(report.violations).toEqual([]);
  // Reference objects that Legation must not change.
  for (const name of ["west", "east"] as const) {
    expect(await podOf(clients()[name], namespace, FOREIGN_NAME)).toMatchObject({ status: { phase: "Running" } });
  }
  expect(report.pods).toBeGreaterThan(10);
  expect(Object.keys(report.faults).length).toBeGreaterThan(2);
});
