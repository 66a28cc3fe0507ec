import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { clusters as clusterType } from "../src/api/resources.ts";
import { MOST_SHARDS } from "../src/api/shards.ts";
import { createClusterClient } from "../src/kube/http-client.ts";
import { loadKubeConfig } from "../src/kube/kubeconfig.ts";
import { AGENT_FAULTS, type AgentScene, hubEnvironment, hubFlags, openLink } from "../test/chaos/agents.ts";
import { LEASE_SECONDS } from "../test/chaos/faults.ts";
import { allowFollowed, GANG_FLAGS } from "../test/chaos/followed.ts";
import type { Kind } from "../test/chaos/objects/kinds.ts";
import { newLedger } from "../test/chaos/objects/ledger.ts";
import { allowTypes, makeForeignObjects } from "../test/chaos/objects/setup.ts";
import { LONG_DEEDS, LONG_FAULTS, SHARD_FAULTS } from "../test/chaos/plan.ts";
import { QUEUE_DEEDS, QUEUE_FAULTS } from "../test/chaos/queues/plan.ts";
import { startQueues } from "../test/chaos/queues/setup.ts";
import { makeForeignPods } from "../test/chaos/rules.ts";
import { type ChaosReport, runChaos } from "../test/chaos/run.ts";
import { HOST_NETWORK } from "../test/chaos/services/rules.ts";
import { MEMBERS_CLASS, MEMBERS_POOL } from "../test/chaos/workloads.ts";
import { apiRequest } from "../test/support/clusters/api-request.ts";
import { FaultProxy } from "../test/support/clusters/fault-proxy.ts";
import { freePort } from "../test/support/clusters/ports.ts";
import { startClusters } from "../test/support/clusters/start.ts";
import type { Cluster, ClusterOptions } from "../test/support/clusters/types.ts";
import { freshNamespace } from "../test/support/harness/namespace.ts";
import { legation as legationCommand } from "../test/support/legation/cli.ts";
import { deployRelay } from "../test/support/legation/relay.ts";
import { accountKubeconfig, type LegationProcess, startLegation } from "../test/support/legation/start.ts";
import { redirect } from "../test/support/write-gate/redirect.ts";
import { startWriteGate, type WriteGate } from "../test/support/write-gate/write-gate.ts";
import { readOptions, refuse, wholeNumber } from "./options.ts";

const USAGE = `Random workloads on real clusters while everything fails; then the rules are checked by the audit logs.

  npm run chaos -- [--seed N] [--minutes 5] [--runs 1] [--only services] [--agents west,east] [--queues] [--shards 3]

  --seed     the same plan again; default: any
  --minutes  length of a run, before it comes to rest
  --only     pods, objects or services: deeds with these alone; default: all
  --agents   members that are reached through agents, which fail, too; default: none
  --queues   with Kueue, queues for members, and workloads in them; default: none
  --shards   three controllers share the namespaces by so many shards; default: 1, of two controllers
  --runs     so many, each on clusters of its own, with seeds that follow each other

One line of JSON for each run, and one for all of them; exits with 1 when a rule was broken.`;
// More than the claims of a run.
const VOLUMES = 40;
const KINDS_OF_RUN: readonly Kind[] = ["ConfigMap", "Widget", "Engine"];

const { values } = readOptions(USAGE, {
  seed: { type: "string" },
  minutes: { type: "string", default: "5" },
  runs: { type: "string", default: "1" },
  only: { type: "string" },
  agents: { type: "string", default: "" },
  queues: { type: "boolean", default: false },
  shards: { type: "string", default: "1" },
});
const shards = wholeNumber(USAGE, "shards", values.shards, 1, MOST_SHARDS);
const { only } = values;
if (only !== undefined && only !== "pods" && only !== "objects" && only !== "services") {
  refuse(USAGE, `--only must be pods, objects or services, not "${only}".`);
}
const others = only === undefined ? [...new Set(Object.values(LONG_DEEDS).flat())] : LONG_DEEDS[only];
// Each is as frequent as three others, so that queues fill.
const deeds = values.queues ? [...others, ...QUEUE_DEEDS, ...QUEUE_DEEDS, ...QUEUE_DEEDS] : others;
const behindAgents = values.agents.split(",").filter((name) => name !== "");
const unknown = behindAgents.find((name) => name !== "west" && name !== "east");
if (unknown !== undefined) refuse(USAGE, `--agents must be west, east or west,east, not "${values.agents}".`);
const faults = [
  ...LONG_FAULTS,
  ...(behindAgents.length === 0 ? [] : AGENT_FAULTS),
  ...(values.queues ? QUEUE_FAULTS : []),
  ...(shards === 1 ? [] : SHARD_FAULTS),
];
const again =
  (only === undefined ? "" : ` --only ${only}`) +
  (behindAgents.length === 0 ? "" : ` --agents ${behindAgents}`) +
  (values.queues ? " --queues" : "") +
  (shards === 1 ? "" : ` --shards ${shards}`);
const first =
  values.seed === undefined ? Math.floor(Math.random() * 2 ** 30) : wholeNumber(USAGE, "seed", values.seed, 0);
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 600)) refuse(USAGE, `--minutes must be from 0 to 600, not "${values.minutes}".`);
const seeds = Array.from({ length: wholeNumber(USAGE, "runs", values.runs, 1) }, (_, run) => first + run);
const progress = (line: string): void => console.error(`chaos: ${line}`);

const reports: ChaosReport[] = [];
for (const seed of seeds) {
  progress(
    `run ${reports.length + 1} of ${seeds.length}; again with: npm run chaos -- --seed ${seed} --minutes ${minutes}${again}`,
  );
  reports.push(await run(seed));
}
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
const violations = sum(reports.map((report) => report.violations.length));
console.log(
  JSON.stringify({
    runs: reports.length,
    faults: sum(reports.flatMap(({ faults }) => Object.values(faults))),
    pods: sum(reports.map(({ pods }) => pods)),
    objects: sum(reports.map(({ objects }) => objects)),
    delegates: sum(reports.map(({ delegates }) => delegates)),
    violations,
  }),
);
process.exitCode = violations === 0 ? 0 : 1;

/** Runs once on new clusters. */
async function run(seed: number): Promise<ChaosReport> {
  // Pods of joined clusters have addresses of their own.
  const podsIn = (range: string): ClusterOptions => ({ ...GANG_FLAGS, kwokFlags: [`--cidr=${range}`] });
  const nodes = [{ labels: { [MEMBERS_POOL]: "true" } }];
  await using clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: {
      host: { ...podsIn("10.1.0.1/16"), nodes: [{ count: 2 }] },
      west: { ...podsIn("10.2.0.1/16"), nodes },
      east: { ...podsIn("10.3.0.1/16"), nodes },
    },
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
  const gate = await startWriteGate({ server: host.proxiedServer, caData: host.caData });
  const memberGates: Record<string, WriteGate> = {};
  for (const { name, proxiedServer: server, caData } of [west, east]) {
    if (!behindAgents.includes(name)) memberGates[name] = await startWriteGate({ server, caData });
  }
  const clockFile = join(mkdtempSync(join(tmpdir(), "legation-chaos-")), "clock");
  // Inherited by all processes started from here on.
  process.env.LEGATION_TEST_CLOCK = clockFile;
  const lease = `--lease-duration=${LEASE_SECONDS}s`;
  const links = new Map<string, FaultProxy>();
  for (const name of behindAgents) links.set(name, await openLink(host));
  const hub = async (): Promise<string[]> => (links.size === 0 ? [] : await hubFlags());
  await using legation = await startLegation({
    host,
    members: { west, east },
    agents: new Map([...links].map(([name, { port }]) => [name, port])),
    controllerFlags: await hub(),
    env: { LEGATION_SHARDS: String(shards), ...(links.size === 0 ? {} : hubEnvironment) },
    controllerServer: gate,
    nodeFlags: [`--import=${join(import.meta.dirname, "..", "test", "support", "clock", "set-clock.ts")}`],
    onProgress: progress,
  });
  const another = async (identity: string, ...flags: string[]): Promise<LegationProcess> => {
    const kubelet = `--kubelet-listen=127.0.0.1:${await freePort()}`;
    const all = [`--identity=${identity}`, kubelet, lease, ...(await hub()), ...flags];
    const made = await legation.another("controller", all);
    await made.start();
    return made;
  };
  // Either controller may lead.
  await legation.controller.stop();
  await legationCommand(["install", `--network=${HOST_NETWORK}`, `--kubeconfig=${host.kubeconfig}`]);
  await deployRelay(host);
  const controller = await another("first");
  const others = [await another("second")];
  const link = shards === 1 ? undefined : new FaultProxy(await freePort(), Number(new URL(gate.server).port));
  if (link !== undefined) {
    await link.listen();
    const controllerServer = { server: `https://127.0.0.1:${link.port}`, caData: gate.caData };
    const file = join(dirname(clockFile), "third.yaml");
    others.push(
      await another(
        "third",
        `--kubeconfig=${await accountKubeconfig(host, "legation-controller", file, { controllerServer })}`,
      ),
    );
  }
  const labels = { "legation.dev/delegation": "annotated" };
  // The folder is removed with the clusters.
  const onFinished = (): void => {};
  const namespace = await freshNamespace([host, west, east], { prefix: "chaos", labels, onFinished });
  await makeForeignPods({ clients, namespace });
  await allowTypes(clients, KINDS_OF_RUN);
  for (const member of [west, east]) {
    for (let number = 0; number < VOLUMES; number += 1) {
      await post(member, "/api/v1/persistentvolumes", {
        apiVersion: "v1",
        kind: "PersistentVolume",
        metadata: { name: `volume-${number}` },
        spec: {
          capacity: { storage: "1Gi" },
          accessModes: ["ReadWriteOnce"],
          storageClassName: MEMBERS_CLASS,
          hostPath: { path: "/nowhere" },
        },
      });
    }
  }
  const agentScene = (name: string): AgentScene | undefined => {
    const link = links.get(name);
    return link && { link, agent: () => legation.agents.get(name) };
  };
  const [westAgent, eastAgent] = [agentScene("west"), agentScene("east")];
  const kueue = values.queues ? await startQueues({ host, namespace }) : undefined;
  const scene = {
    host,
    members: { west, east },
    clients,
    legation: { ...legation, controller },
    namespace,
    passing: [],
    forced: new Set<string>(),
    kinds: KINDS_OF_RUN,
    ledger: newLedger(),
    setClock: (ms: number) => writeFileSync(clockFile, String(ms)),
    others,
    shards,
    ...(link && { link }),
    agents: { ...(westAgent && { west: westAgent }), ...(eastAgent && { east: eastAgent }) },
    gate,
    memberGates,
    hasFollowed: true as const,
    ...(kueue && { kueue }),
  };
  await allowFollowed(scene);
  for (const name of ["west", "east"]) {
    await clients.host.patch(clusterType, { name }, { type: "merge", body: { spec: { network: HOST_NETWORK } } });
  }
  await makeForeignObjects(scene);
  for (const [name, memberGate] of Object.entries(memberGates)) await redirect(clients.host, name, memberGate);
  progress("begins");
  const report = await runChaos(scene, {
    seed,
    repertoire: { faults, deeds },
    lengthMs: minutes * 60_000,
  });
  // Whatever becomes of the clusters now.
  console.log(JSON.stringify(report));
  if (report.violations.length > 0) console.error(controller.log().split("\n").slice(-40).join("\n"));
  await kueue?.stop();
  await Promise.all(Object.values(clients).map((client) => client.close()));
  await Promise.all(others.map((other) => other.stop()));
  await legation.stop();
  await Promise.all([gate, ...Object.values(memberGates)].map((each) => each.close()));
  for (const each of [...links.values(), link]) await each?.close();
  return report;
}

/** Creates an object that Legation does not manage. */
async function post(cluster: Cluster, path: string, body: object): Promise<void> {
  const answer = await apiRequest(cluster, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`${cluster.name}: ${path}: ${answer.text}`);
}
