import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { freePort } from "../support/clusters/ports.ts";
import { type Burst, expectAllRunOnce, startBurst } from "../support/delegated/burst.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { type Balancer, startBalancer } from "../support/legation/balancer.ts";
import { legation as legationCommand } from "../support/legation/cli.ts";
import type { LegationProcess } from "../support/legation/start.ts";

const LEASE_MS = 15_000;
const running = useLegation();
const clients = useClients();

const WEBHOOKS = 3;
// Authors that create at the same time.
const LANES = 2;
// Duration for which a Service still sends to a terminating replica.
const FORGETTING_MS = 200;

interface Replica {
  readonly port: number;
  readonly process: LegationProcess;
}

/** All processes, started once for all attempts. */
interface Scene {
  readonly balancer: Balancer;
  readonly controllers: readonly [LegationProcess, LegationProcess];
  readonly replicas: readonly Replica[];
}

let scene: Scene | undefined;
let installed = false;

async function makeScene(): Promise<Scene> {
  const legation = running();
  const balancer = await startBalancer(await freePort());
  afterFile(async () => balancer[Symbol.asyncDispose]());
  const replicas: Replica[] = [];
  for (let number = 0; number < WEBHOOKS; number += 1) {
    const port = await freePort();
    replicas.push({ port, process: await legation.another("webhook", [`--listen=127.0.0.1:${port}`]) });
  }
  const controller = async (identity: string): Promise<LegationProcess> =>
    legation.another("controller", [`--identity=${identity}`, `--kubelet-listen=127.0.0.1:${await freePort()}`]);
  return { balancer, replicas, controllers: [await controller("first"), await controller("second")] };
}

// Before each attempt: restarts what an earlier one has killed.
beforeEach(async () => {
  scene ??= await makeScene();
  const { balancer, controllers, replicas } = scene;
  await running().controller.stop();
  await Promise.all([...controllers, ...replicas.map(({ process }) => process)].map((process) => process.start()));
  for (const { port } of replicas) balancer.add(port);
  if (!installed) {
    const url = `--webhook-url=https://127.0.0.1:${balancer.port}`;
    await legationCommand(["install", `--kubeconfig=${hostCluster().kubeconfig}`, url]);
    installed = true;
  }
  // Admissions depend on the three replicas alone.
  await running().webhook.stop();
  await eventuallyPasses(() => expect(ledSince(leader())).toBeGreaterThan(0), { timeoutMs: 60_000 });
});

function parts(): Scene {
  if (scene === undefined) throw new Error("everything runs from the first beforeEach on");
  return scene;
}

/** Returns when the process began to lead with its controllers started; 0 if it does not lead. */
function ledSince(process: LegationProcess): number {
  const led = saidAt(process, "leading");
  return saidAt(process, "controllers started") >= led ? led : 0;
}

/** Returns the controller that began to lead last, and the other. */
function leader(): LegationProcess {
  const [first, second] = parts().controllers;
  return saidAt(second, "leading") > saidAt(first, "leading") ? second : first;
}

function follower(): LegationProcess {
  const [first, second] = parts().controllers;
  return leader() === first ? second : first;
}

/** Authors that create pods until the test ends. */
function burst(namespace: string): Burst {
  const started = startBurst(clients().host, namespace, { lanes: LANES, pauseMs: 300 });
  onTestFinished(started.stop);
  return started;
}

async function freshlyLabelled(): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { prefix: "ha", labels });
}

const line = z.looseObject({ time: z.string(), msg: z.string() });

/** Returns when the process logged the message, each time; epoch ms. */
function saidAll({ log }: LegationProcess, message: string): number[] {
  const found = log()
    .split("\n")
    .filter((text) => text.includes(`"msg":"${message}"`));
  return found.map((text) => Date.parse(line.parse(JSON.parse(text)).time));
}

/** Returns when it last logged the message; 0 if never. */
function saidAt(process: LegationProcess, message: string): number {
  return saidAll(process, message).at(-1) ?? 0;
}

/** Returns the delay from the moment until it first led. A starved process may lose the lease and lead again later. */
function ledAfter(process: LegationProcess, moment: number): number {
  const first = saidAll(process, "leading").find((time) => time > moment);
  return (first ?? Number.POSITIVE_INFINITY) - moment;
}

function expectAllRun(namespace: string, created: readonly string[]): Promise<void> {
  const clusters = { host: hostCluster(), members: [memberCluster("west"), memberCluster("east")] };
  return expectAllRunOnce(clients().host, clusters, namespace, created);
}

test("refuses, loses and repeats nothing while every process is replaced and the leader killed under a burst of pods", async () => {
  const { balancer, replicas } = parts();
  const [killed, next] = [leader(), follower()];
  const namespace = await freshlyLabelled();
  const { created, failed, stop } = burst(namespace);
  await sleep(500);
  const killedAt = Date.now();
  await killed.stop("SIGKILL");
  for (const { port, process } of replicas) {
    const ending = process.stop();
    await sleep(FORGETTING_MS);
    balancer.remove(port);
    await ending;
    await process.start();
    balancer.add(port);
  }
  await eventuallyPasses(() => expect(ledSince(next)).toBeGreaterThan(killedAt), { timeoutMs: 60_000 });
  await stop();
  expect(failed).toEqual([]);
  expect(created.length).toBeGreaterThan(50);
  await expectAllRun(namespace, created);
  // The lease, and the time until a follower asks again.
  expect(ledAfter(next, killedAt)).toBeLessThan(LEASE_MS * 2);
});

test("hands over before the lease expires when the leader is terminated, and admits pods when webhooks are killed", async () => {
  const { replicas } = parts();
  const [ending, next] = [leader(), follower()];
  const namespace = await freshlyLabelled();
  const { created, failed, stop } = burst(namespace);
  await sleep(500);
  const toldAt = Date.now();
  await ending.stop();
  await eventuallyPasses(() => expect(ledSince(next)).toBeGreaterThan(toldAt), { timeoutMs: 60_000 });
  // Without the release of the lease the successor would wait for its whole duration.
  expect(ledAfter(next, toldAt)).toBeLessThan(LEASE_MS * 0.8);
  expect(failed).toEqual([]);
  // Each loses the reviews that it was about to answer. The API server repeats none; the client asks once more.
  for (const { process } of replicas) {
    await process.stop("SIGKILL");
    await sleep(300);
    await process.start();
  }
  await stop();
  expect(failed).toEqual([]);
  await expectAllRun(namespace, created);
});
