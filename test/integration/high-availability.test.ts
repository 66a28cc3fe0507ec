import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
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

const LEASE_MS = 6_000;
const lease = `--lease-duration=${LEASE_MS / 1000}s`;
const running = useLegation();
const clients = useClients();

const WEBHOOKS = 3;
// Authors that create at the same time.
const LANES = 4;
// How long a Service still sends to a replica that has begun to end.
const FORGETTING_MS = 200;

interface Replica {
  readonly port: number;
  readonly process: LegationProcess;
}

let balancer: Balancer;
let first: LegationProcess;
let second: LegationProcess;
const replicas: Replica[] = [];

beforeAll(async () => {
  const legation = running();
  balancer = await startBalancer(await freePort());
  afterFile(async () => balancer[Symbol.asyncDispose]());
  for (let number = 0; number < WEBHOOKS; number += 1) {
    const port = await freePort();
    const process = await legation.another("webhook", [`--listen=127.0.0.1:${port}`]);
    replicas.push({ port, process });
    balancer.add(port);
  }
  const controller = async (identity: string): Promise<LegationProcess> =>
    legation.another("controller", [`--identity=${identity}`, `--kubelet-listen=127.0.0.1:${await freePort()}`, lease]);
  [first, second] = [await controller("first"), await controller("second")];
  await legation.controller.stop();
  await first.start();
  await eventuallyPasses(() => expect(saidAt(first, "controllers started")).toBeGreaterThan(0));
  await Promise.all([second, ...replicas.map(({ process }) => process)].map((process) => process.start()));
  const url = `--webhook-url=https://127.0.0.1:${balancer.port}`;
  await legationCommand(["install", `--kubeconfig=${hostCluster().kubeconfig}`, url]);
  // Admissions depend on these three alone.
  await legation.webhook.stop();
});

/** Authors create pods until the test ends, or sooner. */
function burst(namespace: string): Burst {
  const started = startBurst(clients().host, namespace, { lanes: LANES, pauseMs: 100 });
  onTestFinished(started.stop);
  return started;
}

async function freshlyLabelled(): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { prefix: "ha", labels });
}

const line = z.looseObject({ time: z.string(), msg: z.string() });

/** When the process last said so; epoch ms. */
function saidAt({ log }: LegationProcess, message: string): number {
  const found = log()
    .split("\n")
    .findLast((text) => text.includes(`"msg":"${message}"`));
  return found === undefined ? 0 : Date.parse(line.parse(JSON.parse(found)).time);
}

function expectAllRun(namespace: string, created: readonly string[]): Promise<void> {
  const clusters = { host: hostCluster(), members: [memberCluster("west"), memberCluster("east")] };
  return expectAllRunOnce(clients().host, clusters, namespace, created);
}

test("every process is replaced, and the leader killed, while pods are created: nothing is refused, lost or done twice", async () => {
  const namespace = await freshlyLabelled();
  const { created, failed, stop } = burst(namespace);
  await sleep(500);
  const killedAt = Date.now();
  await first.stop("SIGKILL");
  for (const { port, process } of replicas) {
    const ending = process.stop();
    await sleep(FORGETTING_MS);
    balancer.remove(port);
    await ending;
    await process.start();
    balancer.add(port);
  }
  await eventuallyPasses(() => expect(saidAt(second, "controllers started")).toBeGreaterThan(0), { timeoutMs: 60_000 });
  await stop();
  expect(failed).toEqual([]);
  expect(created.length).toBeGreaterThan(50);
  await expectAllRun(namespace, created);
  // The lease, and the time until a follower asks again.
  expect(saidAt(second, "leading") - killedAt).toBeLessThan(LEASE_MS * 1.5);
});

test("a leader that is told to end hands over within five seconds; a webhook that is killed is not missed", async () => {
  const namespace = await freshlyLabelled();
  await first.start();
  const { created, failed, stop } = burst(namespace);
  await sleep(500);
  const toldAt = Date.now();
  await second.stop();
  await eventuallyPasses(() => expect(saidAt(first, "controllers started")).toBeGreaterThan(toldAt));
  expect(saidAt(first, "leading") - toldAt).toBeLessThan(5_000);
  expect(failed).toEqual([]);
  // One that is killed takes the reviews with it that it was about to answer, and no other.
  await replicas[0]?.process.stop("SIGKILL");
  await sleep(1_000);
  await stop();
  expect(failed.length).toBeLessThanOrEqual(LANES);
  await expectAllRun(namespace, created);
});
