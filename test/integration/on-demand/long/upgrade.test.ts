import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLUSTERS_ANNOTATION, DELEGATE_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { isLive } from "../../../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../../../src/pods/proxy-conditions.ts";
import { freePort } from "../../../support/clusters/ports.ts";
import { KWOK_ANNOTATIONS } from "../../../support/clusters/stages.ts";
import { type Burst, expectAllRunOnce, startBurst } from "../../../support/delegated/burst.ts";
import { delegatedPod } from "../../../support/delegated/pods.ts";
import { legationWrites } from "../../../support/delegated/writes.ts";
import { afterFile, cleanUpFile } from "../../../support/harness/after-file.ts";
import { useClients } from "../../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../../support/harness/clusters.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { overlaps, podLives } from "../../../support/harness/pod-lives.ts";
import { inPhase, podGone, podOf, podsOf, podThat } from "../../../support/harness/pods-of.ts";
import { pristine, removeLegation } from "../../../support/harness/pristine.ts";
import { eventually } from "../../../support/harness/wait.ts";
import { type Balancer, startBalancer } from "../../../support/legation/balancer.ts";
import { legation as command, MAIN } from "../../../support/legation/cli.ts";
import { type Legation, type LegationProcess, startLegation } from "../../../support/legation/start.ts";
import { lastRelease } from "../../../support/releases/last-release.ts";

const clients = useClients();
const release = lastRelease();
// Duration for which a Service still sends to a terminating replica.
const FORGETTING_MS = 200;
const COMPLETIONS = 4;

interface Webhook {
  readonly port: number;
  readonly process: LegationProcess;
}

let running: Legation;
let balancer: Balancer;
let webhooks: Webhook[];
let leader: LegationProcess;
let standby: LegationProcess;
let burst: Burst;
let bursting: string;
let namespace: string;
const members = (): ReturnType<typeof memberCluster>[] => [memberCluster("west"), memberCluster("east")];
const url = (): string => `--webhook-url=https://127.0.0.1:${balancer.port}`;

async function addWebhook(main: string, more: readonly string[] = []): Promise<Webhook> {
  const port = await freePort();
  const process = await running.another("webhook", [`--listen=127.0.0.1:${port}`, ...more], main);
  await process.start();
  balancer.add(port);
  return { port, process };
}

async function addController(main: string, more: readonly string[] = []): Promise<LegationProcess> {
  const flags = [`--identity=${crypto.randomUUID()}`, `--kubelet-listen=127.0.0.1:${await freePort()}`, ...more];
  const process = await running.another("controller", flags, main);
  await process.start();
  return process;
}

/** Starts a new replica before an old one ends, as a Deployment does. */
async function replaceWebhooks(main: string, more?: readonly string[]): Promise<void> {
  for (const [index, { port, process }] of [...webhooks].entries()) {
    webhooks[index] = await addWebhook(main, more);
    const ending = process.stop();
    await sleep(FORGETTING_MS);
    balancer.remove(port);
    await ending;
  }
}

/** Replaces the standby first, then the leader; resolves when the new one has done its first work. */
async function replaceControllers(main: string, more?: readonly string[]): Promise<void> {
  await standby.stop();
  const next = await addController(main, more);
  [standby] = await Promise.all([addController(main, more), leader.stop()]);
  const starts = (process: LegationProcess): boolean => process.log().includes("controllers started");
  await eventually(() => starts(next) || starts(standby), { timeoutMs: 120_000 });
  [leader, standby] = starts(next) ? [next, standby] : [standby, next];
}

const stage = (name: string, annotations: object = {}, spec: object = {}): Promise<unknown> =>
  clients().host.create(
    pods,
    delegatedPod(namespace, name, { annotations: { [CLUSTERS_ANNOTATION]: "west", ...annotations }, spec }),
  );

/** Creates pods in every stage of life, and workloads that go on creating them. */
async function stagePods(): Promise<void> {
  const affinity = {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { nobody: "has" } }, topologyKey: "kubernetes.io/hostname" },
      ],
    },
  };
  await stage("gated", {}, { schedulingGates: [{ name: "example.com/quota" }] });
  await stage("nowhere", { [CLUSTERS_ANNOTATION]: "north" });
  await stage("unscheduled", {}, { affinity });
  await stage("starting", { [KWOK_ANNOTATIONS.outcome]: "pending" });
  await stage("running");
  await stage("stopping", { [KWOK_ANNOTATIONS.stopsAfter]: "6s" });
  const annotations = { [DELEGATE_ANNOTATION]: "true" };
  const template = (more: object): object => ({
    metadata: { labels: { app: "web" }, annotations: more },
    spec: { restartPolicy: "Always", containers: [{ name: "main", image: "work:1" }] },
  });
  const ends = { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "4s" };
  const items = [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", annotations },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template({}) },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "wishing", annotations: { [CLUSTERS_ANNOTATION]: "west" } },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template({}) },
    },
    {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "work", annotations },
      spec: {
        completions: COMPLETIONS,
        parallelism: 1,
        template: {
          ...template(ends),
          spec: { restartPolicy: "Never", containers: [{ name: "main", image: "work:1" }] },
        },
      },
    },
  ];
  await kubectl(hostCluster(), ["-n", namespace, "create", "-f", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  });
  const { host } = clients();
  await Promise.all(["running", "stopping"].map((name) => podThat(host, namespace, name, inPhase("Running"))));
  await podThat(host, namespace, "starting", ({ spec }) => spec?.nodeName === "legation-west");
  await eventually(() => podOf(clients().west, namespace, "unscheduled"));
  for (const name of ["web", "wishing"])
    await kubectl(hostCluster(), ["-n", namespace, "rollout", "status", "deployment", name]);
  await host.delete(pods, { namespace, name: "stopping" });
}

const limitWest = (cpu: string): Promise<unknown> =>
  clients().host.patch(
    clusters,
    { name: "west" },
    { type: "merge", body: { spec: { limits: { total: { "requests.cpu": cpu } } } } },
  );

beforeAll(async () => {
  const host = hostCluster();
  const [west, east] = [memberCluster("west"), memberCluster("east")];
  await pristine(host, west, east);
  balancer = await startBalancer(await freePort());
  afterFile(async () => balancer[Symbol.asyncDispose]());
  running = await startLegation({
    host,
    members: { west, east },
    // The last release has no agents.
    agents: new Map(),
    main: release.main,
    webhookUrl: `https://127.0.0.1:${balancer.port}`,
  });
  // This version refuses the name: no pod requests it.
  await limitWest("1");
  leader = running.controller;
  webhooks = [{ port: running.webhookPort, process: running.webhook }];
  balancer.add(running.webhookPort);
  standby = await addController(release.main);
  webhooks.push(await addWebhook(release.main));
  const labels = { "legation.dev/delegation": "annotated" };
  bursting = await freshNamespace([host, west, east], { prefix: "burst", labels, onFinished: afterFile });
  namespace = await freshNamespace(host, { prefix: "upgrade", labels, onFinished: afterFile });
  await stagePods();
  burst = startBurst(clients().host, bursting, { lanes: 1, pauseMs: 200 });
});

afterAll(async () => {
  await burst?.stop();
  await cleanUpFile();
  await running?.stop();
  await removeLegation(hostCluster());
});

const uidsOf = (list: readonly Stored<Pod>[]): string[] =>
  list.map(({ metadata }) => `${metadata.name} ${metadata.uid}`);

/** Returns the proxies that stay, and their delegates. */
async function staying(): Promise<string[]> {
  const { host, west, east } = clients();
  const lists = await Promise.all([host, west, east].map((client) => podsOf(client, namespace)));
  return uidsOf(lists.flat().filter(({ metadata }) => !/^(stopping|work-)/.test(metadata.name)));
}

/** Returns Legation's writes on a pod in the member. */
async function writtenInWest(name: string): Promise<readonly string[]> {
  const all = (await legationWrites(memberCluster("west"), namespace)).pods.get(name) ?? [];
  // The member's namespace did not exist yet.
  return all.filter((write) => write !== "create pods: 404");
}

/** Expects that a change on the host reaches the delegate, whichever version created it. */
async function expectFollows(name: string, value: string): Promise<void> {
  const { host, west } = clients();
  await host.patch(pods, { namespace, name }, { type: "merge", body: { metadata: { labels: { later: value } } } });
  await podThat(west, namespace, name, ({ metadata }) => metadata?.labels?.later === value);
}

test("refuses, loses and repeats nothing, and touches no pod, during an upgrade from the last release", async () => {
  const before = await staying();
  expect(before.map((line) => line.split(" ")[0])).toEqual(
    expect.arrayContaining(["gated", "nowhere", "unscheduled", "starting", "running"]),
  );

  await Promise.all(
    members().map(({ name, kubeconfig }) =>
      command(["join", name, `--kubeconfig=${hostCluster().kubeconfig}`, `--member-kubeconfig=${kubeconfig}`]),
    ),
  );
  await command(["install", `--kubeconfig=${hostCluster().kubeconfig}`, url()]);
  await replaceWebhooks(MAIN);
  // Webhooks of this version, and controllers of the last.
  const admitted = burst.created.length;
  await eventually(() => burst.created.length >= admitted + 5);
  await replaceControllers(MAIN);

  expect(await staying()).toEqual(before);
  expect(await writtenInWest("running")).toEqual(["create pods"]);
  expect(await writtenInWest("unscheduled")).toEqual(["create pods"]);
  expect(await writtenInWest("starting")).toEqual(["create pods"]);
  expect(burst.failed).toEqual([]);

  const { host, west } = clients();
  // The condition of the last release is replaced by that of this one.
  for (const name of ["nowhere", "unscheduled"]) {
    const { status } = await podThat(host, namespace, name, (pod) => whyNotPlaced(pod) !== undefined);
    expect(status?.conditions).toMatchObject([{ type: "PodScheduled", status: "False", reason: "NotPlaced" }]);
  }
  await expectFollows("running", "upgraded");
  const gate = { type: "json", body: [{ op: "remove", path: "/spec/schedulingGates/0" }] } as const;
  await host.patch(pods, { namespace, name: "gated" }, gate);
  await podThat(host, namespace, "gated", inPhase("Running"));
  await host.delete(pods, { namespace, name: "starting" });
  await Promise.all([podGone(host, namespace, "starting"), podGone(west, namespace, "starting")]);

  // An object that the last release admitted stays valid for other changes.
  const body = { spec: { scheduleTimeoutSeconds: 31 } };
  const { spec } = await host.patch(clusters, { name: "west" }, { type: "merge", body });
  expect(spec.limits).toEqual({ total: { "requests.cpu": "1" } });
  await expect(limitWest("2")).rejects.toThrow(/name resources as pods request them/);
});

test("replaces no template of a workload whose wishes the last release copied there, when they change", async () => {
  const { host } = clients();
  const run = (...args: string[]): Promise<string> => kubectl(hostCluster(), ["-n", namespace, ...args]);
  const wishing = async (): Promise<Stored<Pod>[]> =>
    (await podsOf(host, namespace)).filter((pod) => pod.metadata.name.startsWith("wishing-") && isLive(pod));
  const template = "jsonpath={.spec.template}";
  const before = await run("get", "deployment", "wishing", `-o=${template}`);
  expect(before).toContain(CLUSTERS_ANNOTATION);

  await run("annotate", "deployment", "wishing", "note=new");
  await run("annotate", "deployment", "wishing", `${CLUSTERS_ANNOTATION}=east`, "--overwrite");
  expect(await run("get", "deployment", "wishing", `-o=${template}`)).toBe(before);
  await eventually(
    async () => {
      const all = await wishing();
      return all.length === 2 && all.every(({ spec }) => spec?.nodeName === "legation-east");
    },
    { timeoutMs: 120_000 },
  );
  await run("rollout", "status", "deployment", "wishing");
  const sets = await run("get", "replicasets", "-o=jsonpath={.items[*].metadata.name}");
  expect(sets.split(" ").filter((name) => name.startsWith("wishing-"))).toHaveLength(1);
});

test("does the same with two shards, and with one again, as the way back begins", async () => {
  const before = await staying();
  for (const shards of [2, 1]) {
    await replaceWebhooks(MAIN, [`--shards=${shards}`]);
    await replaceControllers(MAIN, [`--shards=${shards}`]);
    const admitted = burst.created.length;
    await eventually(() => burst.created.length >= admitted + 5);
    await expectFollows("running", `shards-${shards}`);
  }
  expect(await staying()).toEqual(before);
  expect(burst.failed).toEqual([]);
});

test("does the same on the way back, with webhooks of the last release before its controllers", async () => {
  const before = await staying();
  await command(["install", `--kubeconfig=${hostCluster().kubeconfig}`, url()], { main: release.main });
  await replaceWebhooks(release.main);
  const admitted = burst.created.length;
  await eventually(() => burst.created.length >= admitted + 5);
  await replaceControllers(release.main);
  await burst.stop();

  expect(await staying()).toEqual(before);
  expect(await writtenInWest("unscheduled")).toEqual(["create pods"]);
  expect(burst.failed).toEqual([]);
  // Orphans of the release that leads again, and of the version that went.
  await expectFollows("running", "back");
  await expectFollows("gated", "back");
  const { host, west } = clients();
  await host.delete(pods, { namespace, name: "gated" });
  await Promise.all([podGone(host, namespace, "gated"), podGone(west, namespace, "gated")]);
});

test("has run every pod created meanwhile once, and ended each once", async () => {
  const { host, west } = clients();
  await podGone(host, namespace, "stopping");
  await podGone(west, namespace, "stopping");
  expect(await writtenInWest("stopping")).toEqual(["create pods", "delete pods"]);
  await kubectl(hostCluster(), ["-n", namespace, "wait", "job/work", "--for=condition=Complete", "--timeout=60s"]);
  const lives = (await Promise.all(members().map((member) => podLives(member, namespace)))).flat();
  expect(lives.filter(({ name }) => name.startsWith("work-"))).toHaveLength(COMPLETIONS);
  expect(new Set(lives.map(({ name }) => name)).size).toBe(lives.length);
  expect(overlaps(lives)).toEqual([]);
  expect(burst.created.length).toBeGreaterThan(20);
  await expectAllRunOnce(host, { host: hostCluster(), members: members() }, bursting, burst.created);
});
