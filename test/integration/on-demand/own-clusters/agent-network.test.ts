import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../../../src/api/keys.ts";
import { type Pod, secretData, secretText } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { issueAuthority } from "../../../../src/certificates/issue.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { nodes, pods, secrets } from "../../../../src/kube/resources.ts";
import { isNodeReady } from "../../../../src/placement/node-fit.ts";
import { apiRequest } from "../../../support/clusters/api-request.ts";
import {
  createNetworkNamespace,
  type Dropped,
  type NetworkNamespace,
} from "../../../support/clusters/network-namespace.ts";
import { freePort } from "../../../support/clusters/ports.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../support/clusters/types.ts";
import { clientOf } from "../../../support/harness/clients.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { agentOf, type RunningAgent } from "../../../support/legation/agent.ts";
import { legationOn } from "../../../support/legation/process.ts";
import { type Legation, type LegationProcess, startLegation } from "../../../support/legation/start.ts";
import { connectProxy } from "../../../support/tunnel/connect-proxy.ts";

// The member's processes run in a network namespace that nothing outside can connect to. The agent connects to this machine.
const HUB = "hub.example.org";
const NODE = { name: "legation-west" };
const LEASE = ["--lease-duration=15s"];
// Three probes that are not answered, or the silence after which hub and agent give each other up; and some for a busy machine.
const LOST_MS = 60_000;
// An agent's longest pause, and a connection on a busy machine.
const BACK_MS = 40_000;

let network: NetworkNamespace;
let hosts: Clusters;
let members: Clusters;
let host: Cluster;
let west: Cluster;
let client: ClusterClient;
let legation: Legation;
let controllers: LegationProcess[];
let agent: RunningAgent;
let agentSecret: string;
let namespace: string;

const inMember = (args: readonly string[], input?: string): Promise<string> =>
  kubectl(west, args, { within: network.within, ...(input === undefined ? {} : { input }) });

async function newAgent(env: Readonly<Record<string, string>> = {}): Promise<RunningAgent> {
  const token = await inMember(["-n", SYSTEM_NAMESPACE, "create", "token", agentSecret, "--duration=24h"]);
  const made = await agentOf(west, agentSecret, { within: network.within, token: token.trim(), env });
  await made.start();
  return made;
}

/** Resolves to the seconds until the member is Ready, or is not. */
async function becomesReady(ready: boolean, timeoutMs: number): Promise<number> {
  const began = performance.now();
  await eventually(async () => isNodeReady(await client.get(nodes, NODE)) === ready, {
    timeoutMs,
    what: `a ${ready ? "Ready" : "not ready"} member; its agent's log: ${agent.log().slice(-2_000)}`,
  });
  const { status } = await client.get(clusters, { name: "west" });
  const condition = status?.conditions?.find(({ type }) => type === "Ready");
  const seconds = (performance.now() - began) / 1000;
  console.log(`Ready ${condition?.status} after ${seconds.toFixed(1)} s: ${condition?.message}`);
  return seconds;
}

/** Returns when the member became Ready: unchanged if it stayed so. */
async function readySince(): Promise<unknown> {
  const { status } = await client.get(nodes, NODE);
  const condition = status?.conditions?.find(({ type }) => type === "Ready");
  return [condition?.status, condition?.lastTransitionTime];
}

async function runs(name: string): Promise<void> {
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, annotations: { "legation.dev/clusters": "west" } },
    spec: { containers: [{ name: "main", image: "main:1" }], automountServiceAccountToken: false },
  };
  await client.create(pods, pod);
  await podThat(client, namespace, name, inPhase("Running"));
}

/** Returns uid and name of each delegate. */
async function delegates(): Promise<string[]> {
  const columns = "-o=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{'\\n'}{end}";
  return (await inMember(["-n", namespace, "get", "pods", columns])).trim().split("\n");
}

async function oneDelegateEach(): Promise<void> {
  const proxies = await client.list(pods, { namespace });
  const names = (await delegates()).map((line) => line.split(" ")[0] ?? "");
  expect(names.sort()).toEqual(proxies.items.map(({ metadata }) => metadata.name).sort());
}

async function startController(identity: string): Promise<LegationProcess> {
  const flags = [`--identity=${identity}`, `--hub-listen=0.0.0.0:${hubPort}`, ...LEASE];
  const made = await legation.another("controller", [...flags, `--kubelet-listen=127.0.0.1:${await freePort()}`]);
  await made.start();
  return made;
}

let hubPort: number;

beforeAll(async () => {
  network = createNetworkNamespace();
  network.resolve({ [HUB]: network.addresses[0] });
  [hosts, members] = await Promise.all([
    startClusters({ names: ["host"], clusters: { host: { nodes: [{ count: 1 }] } } }),
    startClusters({ names: ["west"], networkNamespace: network.name }),
  ]);
  host = hosts.get("host");
  west = members.get("west");
  client = clientOf(host);
  hubPort = await freePort();
  legation = await startLegation({ host, members: {} });
  // Replaced by three, any of which may lead.
  await legation.controller.stop();
  controllers = [];
  for (const identity of ["first", "second", "third"]) controllers.push(await startController(identity));
  const joined = await legationOn(host, "join", "west", "--agent", "--hub-address", `${HUB}:${hubPort}`);
  expect(joined.code, joined.stderr).toBe(0);
  const objects = joined.stdout.split(/^---$/m).filter((object) => !object.includes("kind: Deployment"));
  await inMember(["apply", "-f", "-"], objects.join("---\n"));
  [, agentSecret = ""] = /^ {2}name: (legation-agent-\w+)$/m.exec(joined.stdout) ?? [];
  agent = await newAgent();
  await eventually(async () => (await client.find(nodes, NODE)) !== undefined, { timeoutMs: 60_000 });
  await becomesReady(true, 60_000);
  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace(host, { prefix: "network", labels, onFinished: () => {} });
  await runs("first");
}, 300_000);

afterAll(async () => {
  await agent?.stop("SIGKILL");
  await legation?.stop();
  await client?.close();
  await Promise.all([hosts?.stop(), members?.stop()]);
  network?.[Symbol.dispose]();
});

afterEach(async () => {
  network.heal();
  network.resolve({ [HUB]: network.addresses[0] });
  await becomesReady(true, 2 * LOST_MS);
  await oneDelegateEach();
});

describe("a member whose API server nothing outside can connect to", () => {
  test("is reached through its agent alone", async () => {
    await expect(apiRequest(west, "GET", "/readyz")).rejects.toThrow("ECONNREFUSED");
    expect(await inMember(["get", "--raw", "/readyz"])).toBe("ok");
    await runs("second");
  });

  test.each<{ readonly what: string; readonly dropped: Dropped }>([
    { what: "all packets between agent and hub are", dropped: { direction: "both" } },
    { what: "packets to the hub are", dropped: { direction: "out" } },
    { what: "packets to the agent are", dropped: { direction: "in" } },
  ])("is not Ready while $what dropped without a sign, and is back with its pods", async ({ dropped }) => {
    const before = await delegates();
    network.drop(dropped);
    await becomesReady(false, LOST_MS);
    network.heal();
    await becomesReady(true, BACK_MS);
    expect(await delegates()).toEqual(before);
  });

  test("is back when the hub has another address, and nothing comes from the earlier one any more", async () => {
    network.drop({ direction: "both", address: network.addresses[0] });
    network.resolve({ [HUB]: network.addresses[1] });
    // The agent hears nothing for 30 s, and then resolves the name.
    await sleep(25_000);
    await becomesReady(true, BACK_MS);
    await runs("moved");
  });

  test("stays Ready, and gets pods, behind a proxy that cuts silent connections after 15 s", async () => {
    const proxy = await connectProxy({ host: network.addresses[0], silentMs: 15_000 });
    try {
      await agent.stop();
      agent = await newAgent({ HTTPS_PROXY: proxy.url });
      await eventually(() => proxy.requests.length > 0);
      await becomesReady(true, BACK_MS);
      const since = await readySince();
      const connections = agent.log().split('"connected to the hub"').length;
      await sleep(50_000);
      expect(await readySince()).toEqual(since);
      expect(agent.log().split('"connected to the hub"')).toHaveLength(connections);
      await runs("proxied");
    } finally {
      await agent.stop();
      proxy.close();
      agent = await newAgent();
    }
  });

  test("stays Ready while each of three controllers is killed in turn", async () => {
    const since = await readySince();
    for (const [index, controller] of controllers.entries()) {
      await controller.stop("SIGKILL");
      // Longer than the lease: another one leads, and has probed the member.
      await sleep(35_000);
      expect(await readySince(), `after controller ${index}`).toEqual(since);
      await runs(`after-controller-${index}`);
      await controller.start();
    }
  });

  test("is back through an agent elsewhere, although the earlier one hangs, and comes back after it", async () => {
    await agent.freeze();
    const elsewhere = await newAgent();
    try {
      await eventually(() => elsewhere.log().includes('"connected to the hub"'));
      await becomesReady(true, BACK_MS);
      await runs("elsewhere");
      agent.thaw();
      await runs("with-both");
    } finally {
      await agent.stop("SIGKILL");
      agent = elsewhere;
    }
    await runs("without-the-earlier-one");
  });

  test("is back when agent and leader were killed at once, in a network that was silent", async () => {
    network.drop({ direction: "both" });
    await agent.stop("SIGKILL");
    await Promise.all(controllers.map((controller) => controller.stop("SIGKILL")));
    await agent.start();
    await Promise.all(controllers.map((controller) => controller.start()));
    await becomesReady(false, LOST_MS);
    network.heal();
    await becomesReady(true, BACK_MS);
    await runs("restarted");
  });

  test("is back when its agent started before its API server", async () => {
    await west.apiServer.stop("SIGKILL");
    await agent.stop("SIGKILL");
    await agent.start();
    await eventually(() => agent.log().includes("the member's API server does not answer"));
    await becomesReady(false, LOST_MS);
    await west.apiServer.start();
    await becomesReady(true, BACK_MS);
    await runs("late-api-server");
  });

  test("is back when the hub's authority changed while the network was silent", async () => {
    const ref = { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET };
    const write = async (data: Readonly<Record<string, string>>): Promise<void> => {
      await client.patch(secrets, ref, { type: "merge", body: { data: secretData(data) } });
    };
    const next = await issueAuthority("legation-hub-ca", { now: Date.now(), lifetimeMs: 86_400_000 });
    const current = secretText(await client.get(secrets, ref), "ca.crt") ?? "";
    await write({ "ca-next.crt": next.cert, "ca-next.key": next.key });
    await eventuallyPasses(async () => {
      const stored = await inMember(["-n", SYSTEM_NAMESPACE, "get", "secret", agentSecret, "-o", "json"]);
      const { data } = JSON.parse(stored) as { data: Record<string, string> };
      const texts = Object.values(data).map((text) => Buffer.from(text, "base64").toString("utf8"));
      expect(texts.some((text) => text.includes(next.cert.trim()))).toBe(true);
    });
    network.drop({ direction: "both" });
    await write({
      "ca.crt": next.cert,
      "ca.key": next.key,
      "ca-next.crt": "",
      "ca-next.key": "",
      "ca-earlier.crt": current,
    });
    await becomesReady(false, LOST_MS);
    network.heal();
    await becomesReady(true, BACK_MS);
    await runs("renewed");
  });
});
