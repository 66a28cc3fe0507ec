import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { pods } from "../../src/kube/resources.ts";
import { freePort } from "../support/clusters/ports.ts";
import { countPhases, delegatedPod } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { overlaps, podLives } from "../support/harness/pod-lives.ts";
import { podsOf } from "../support/harness/pods-of.ts";
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

/** Creates one pod after the other until it is told to stop; keeps what was created, and why what was not was not. */
function burst(namespace: string): { readonly created: string[]; readonly failed: string[]; stop(): Promise<void> } {
  const created: string[] = [];
  const failed: string[] = [];
  let stopped = false;
  const lane = async (lane: number): Promise<void> => {
    for (let number = 0; !stopped; number += 1) {
      const name = `pod-${lane}-${number}`;
      await clients()
        .host.create(pods, delegatedPod(namespace, name))
        .then(
          () => created.push(name),
          (error: unknown) => failed.push(`${name}: ${error}`),
        );
      await sleep(100);
    }
  };
  const lanes = Array.from({ length: LANES }, (_, number) => lane(number));
  const stop = async (): Promise<void> => {
    stopped = true;
    await Promise.all(lanes);
  };
  onTestFinished(stop);
  return { created, failed, stop };
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

/** Every pod runs, by one delegate, which was the only one it ever had. */
async function expectAllRunOnce(namespace: string, created: readonly string[]): Promise<void> {
  await eventuallyPasses(
    async () => expect(countPhases(await podsOf(clients().host, namespace))).toEqual({ Running: created.length }),
    { timeoutMs: 60_000, intervalMs: 500 },
  );
  const members = [memberCluster("west"), memberCluster("east")];
  const lives = (await Promise.all(members.map((member) => podLives(member, namespace)))).flat();
  expect(lives.map(({ name }) => name).sort()).toEqual([...created].sort());
  expect(overlaps(lives)).toEqual([]);
  const { pods: writes } = await legationWrites(hostCluster(), namespace);
  for (const name of created) {
    const bound = (writes.get(name) ?? []).filter((write) => write === "create pods/binding");
    expect({ name, bound: bound.length }).toEqual({ name, bound: 1 });
  }
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
  await expectAllRunOnce(namespace, created);
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
  await expectAllRunOnce(namespace, created);
});
