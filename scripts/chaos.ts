import { parseArgs } from "node:util";
import { createClusterClient } from "../src/kube/connect.ts";
import { loadKubeConfig } from "../src/kube/kubeconfig.ts";
import { LEASE_SECONDS } from "../test/chaos/faults.ts";
import { LONG_FAULTS } from "../test/chaos/plan.ts";
import { runChaos } from "../test/chaos/run.ts";
import { freePort } from "../test/support/clusters/ports.ts";
import { startClusters } from "../test/support/clusters/start.ts";
import type { Cluster } from "../test/support/clusters/types.ts";
import { freshNamespace } from "../test/support/harness/namespace.ts";
import { type LegationProcess, startLegation } from "../test/support/legation/start.ts";
import { startWriteGate } from "../test/support/write-gate/write-gate.ts";

const { values } = parseArgs({
  options: { seed: { type: "string" }, minutes: { type: "string", default: "5" } },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const progress = (line: string): void => console.error(`chaos: ${line}`);
progress(`again with: npm run chaos -- --seed ${seed} --minutes ${values.minutes}`);

await using clusters = await startClusters({
  names: ["host", "west", "east"],
  clusters: { host: { nodes: [{ count: 2 }] } },
  onProgress: progress,
});
const host = clusters.get("host");
const west = clusters.get("west");
const east = clusters.get("east");
const connect = (cluster: Cluster): ReturnType<typeof createClusterClient> =>
  createClusterClient({
    cluster: cluster.name,
    credentials: loadKubeConfig({ kubeconfig: cluster.kubeconfig, env: {} }),
  });
const clients = { host: connect(host), west: connect(west), east: connect(east) };
const gate = await startWriteGate(host);
const lease = `--lease-duration=${LEASE_SECONDS}s`;
await using legation = await startLegation({
  host,
  members: { west, east },
  controllerServer: gate,
  onProgress: progress,
});
const another = async (identity: string): Promise<LegationProcess> => {
  const kubelet = `--kubelet-listen=127.0.0.1:${await freePort()}`;
  const made = await legation.another("controller", [`--identity=${identity}`, kubelet, lease]);
  await made.start();
  return made;
};
// Either may lead, and is not waited for until it does.
await legation.controller.stop();
const controller = await another("first");
const second = await another("second");
const labels = { "legation.dev/delegation": "annotated" };
// It goes with the clusters.
const onFinished = (): void => {};
const namespace = await freshNamespace([host, west, east], { prefix: "chaos", labels, onFinished });
progress("begins");
const report = await runChaos(
  { host, members: { west, east }, clients, legation: { ...legation, controller }, namespace, second, gate },
  {
    seed,
    faults: LONG_FAULTS,
    lengthMs: Number(values.minutes) * 60_000,
  },
);
console.log(JSON.stringify(report, null, 2));
if (report.violations.length > 0) console.error(controller.log().split("\n").slice(-40).join("\n"));
await Promise.all(Object.values(clients).map((client) => client.close()));
await second.stop();
await legation.stop();
await gate.close();
process.exitCode = report.violations.length === 0 ? 0 : 1;
