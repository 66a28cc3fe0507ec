import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import type { Legation } from "../support/legation/start.ts";
import { burst, clear, clientOf, countOf, createPods, makeNamespace, removeNamespace, timed } from "./bursts.ts";
import { type Figure, quantile } from "./figures.ts";
import { forcedEnds } from "./forced-ends.ts";
import { PodWatch } from "./pod-watch.ts";
import { cpuMs, rssMb } from "./process-usage.ts";
import { podWrites, SameWrites } from "./same-writes.ts";

export interface DelegationBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Legation;
  /** Comparisons by number of pods. */
  readonly pods: readonly number[];
  readonly onProgress: (line: string) => void;
  /** Called with each figure as soon as it is known. */
  readonly onFigure: (figure: Figure) => void;
}

const TOKEN_PODS = 500;
/** Pods a second, and for how long. Two cores have room left at the lower rate: what it shows is no pod's wait for a processor. */
const STEADY = [
  { rate: 20, seconds: 30 },
  { rate: 50, seconds: 20 },
];
/** Pods that are created a second while others are deleted by force. */
const BESIDE = [0, 20];
/** The target's own rate. */
const TARGET_RATE = 50;
const IDLE_MS = 30_000;

/** Delegated pods beside the same pods created in one member, in one run. */
export async function benchDelegation(options: DelegationBenchOptions): Promise<void> {
  const { host, members, legation, onProgress, onFigure } = options;
  const direct = members[0];
  if (direct === undefined) throw new Error("a comparison needs a member");
  const controllerPid = legation.controller.pid;
  if (controllerPid === undefined) throw new Error("the controller does not run");
  const clients = [host, ...members].map(clientOf);
  const [hostClient, ...memberClients] = clients;
  const directClient = memberClients[0];
  if (hostClient === undefined || directClient === undefined) throw new Error("a comparison needs a host and a member");
  try {
    for (const count of options.pods) {
      const best = { direct: 0, delegated: 0, written: 0, sameWrites: 0 };
      // The better of two rounds counts: other work on the machine only slows a round down.
      for (let round = 1; round <= 2; round++) {
        onProgress(`${count} pods, round ${round}: created in ${direct.name}`);
        best.direct = Math.max(best.direct, await burst(directClient, [], count, "direct"));
        onProgress(`${count} pods, round ${round}: delegated`);
        const cpuBefore = cpuMs(controllerPid);
        const measured = await burst(hostClient, memberClients, count, "delegated", async (namespace, startedAt) => {
          onFigure({
            name: `controller: memory with ${count} proxies, round ${round}`,
            value: rssMb(controllerPid),
            unit: "MB",
            target: { atMost: 250 },
          });
          onFigure({
            name: `controller: processor time for ${count} pods until Running, round ${round}`,
            value: (cpuMs(controllerPid) - cpuBefore) / count,
            unit: "ms/pod",
          });
          best.written = Math.max(best.written, await rateWritten(hostClient, namespace, { count, startedAt }));
        });
        best.delegated = Math.max(best.delegated, measured);
        onProgress(`${count} pods, round ${round}: the same writes without Legation`);
        best.sameWrites = Math.max(best.sameWrites, await sameWrites(hostClient, memberClients, count));
      }
      onFigure({ name: `${count} pods: created directly`, value: best.direct, unit: "pods/s" });
      onFigure({ name: `${count} pods: delegated`, value: best.delegated, unit: "pods/s" });
      onFigure({ name: `${count} pods: delegated, with all events`, value: best.written, unit: "pods/s" });
      onFigure({ name: `${count} pods: the same writes without Legation`, value: best.sameWrites, unit: "pods/s" });
      const ratio = best.delegated / best.direct;
      onFigure({ name: `${count} pods: delegated / direct`, value: ratio, unit: "" });
      const bound = best.sameWrites / best.direct;
      onFigure({ name: `${count} pods: the same writes / direct`, value: bound, unit: "" });
      const efficiency = best.written / best.sameWrites;
      const name = `${count} pods: delegated / the same writes`;
      onFigure({ name, value: efficiency, unit: "", target: { atLeast: 0.9 } });
    }
    onProgress(`${TOKEN_PODS} pods with a token for the host's API: delegated, without one and with it`);
    const without = await burst(hostClient, memberClients, TOKEN_PODS, "delegated");
    const withTokens = await burst(hostClient, memberClients, TOKEN_PODS, "delegated with tokens");
    onFigure({ name: `${TOKEN_PODS} pods: delegated with a token each`, value: withTokens, unit: "pods/s" });
    onFigure({ name: `${TOKEN_PODS} pods: with a token / without`, value: withTokens / without, unit: "" });
    for (const { rate, seconds } of STEADY) {
      onProgress(`latency at ${rate} pods/s`);
      for (const figure of await latencies(hostClient, memberClients, rate, seconds)) onFigure(figure);
    }
    for (const beside of BESIDE) {
      onProgress(`forced deletions beside ${beside} pods/s`);
      const ms = await forcedEnds(hostClient, memberClients, beside);
      for (const at of [0.5, 0.99]) {
        const name = `forced deletion to gone beside ${beside} pods/s, P${100 * at}`;
        onFigure({ name, value: quantile(ms, at), unit: "ms" });
      }
    }
    onProgress("idle");
    await sleep(5_000);
    const before = cpuMs(controllerPid);
    await sleep(IDLE_MS);
    const share = (100 * (cpuMs(controllerPid) - before)) / IDLE_MS;
    onFigure({ name: "controller: idle", value: share, unit: "% of a core", target: { atMost: 1 } });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Measures the cost of scheduling preferences: pods of one owner with and without weights. */
export async function benchDivision(options: Omit<DelegationBenchOptions, "legation">): Promise<void> {
  const { host, members, onProgress, onFigure } = options;
  const [hostClient, ...memberClients] = [clientOf(host), ...members.map(clientOf)];
  try {
    for (const count of options.pods) {
      const best = { owned: 0, divided: 0 };
      for (let round = 1; round <= 3; round++) {
        for (const way of ["owned", "divided"] as const) {
          onProgress(`${count} pods, round ${round}: ${way}`);
          best[way] = Math.max(best[way], await burst(hostClient, memberClients, count, way));
        }
      }
      onFigure({ name: `${count} pods of one owner: delegated`, value: best.owned, unit: "pods/s" });
      onFigure({ name: `${count} pods of one owner: divided by weights`, value: best.divided, unit: "pods/s" });
      const ratio = best.divided / best.owned;
      onFigure({
        name: `${count} pods of one owner: divided / delegated`,
        value: ratio,
        unit: "",
        target: { atLeast: 0.95 },
      });
    }
  } finally {
    await Promise.all([hostClient, ...memberClients].map((client) => client.close()));
  }
}

/** Measures as `rateWritten` does, but a loop in this process makes the writes that delegation needs. */
async function sameWrites(host: ClusterClient, members: readonly ClusterClient[], count: number): Promise<number> {
  const namespace = await makeNamespace(host, false);
  await Promise.all(members.map((member) => makeNamespace(member, false, namespace)));
  const writes = new SameWrites(host, members, namespace, podWrites(host, namespace));
  await writes.start();
  let rate = 0;
  await timed(host, namespace, count, "same writes", async (_namespace, startedAt) => {
    rate = await rateWritten(host, namespace, { count, startedAt });
  });
  await writes.stop();
  await removeNamespace([host, ...members], namespace);
  return rate;
}

/** Pods a second until the host has an event of each, too: events come behind all other writes. */
async function rateWritten(
  host: ClusterClient,
  namespace: string,
  { count, startedAt }: { readonly count: number; readonly startedAt: number },
): Promise<number> {
  while ((await countOf(host, events, namespace)) < count) await sleep(20);
  return (count / (performance.now() - startedAt)) * 1000;
}

async function latencies(
  host: ClusterClient,
  members: readonly ClusterClient[],
  rate: number,
  seconds: number,
): Promise<Figure[]> {
  const namespace = await makeNamespace(host, true);
  const proxies = new PodWatch(host, namespace);
  const delegates = members.map((member) => new PodWatch(member, namespace));
  await Promise.all([proxies, ...delegates].map((watch) => watch.start()));
  await createPods(host, namespace, rate * seconds, "delegated", rate);
  await proxies.untilRunning(rate * seconds);
  const toDelegate: number[] = [];
  const toProxy: number[] = [];
  for (const [name, at] of proxies.seen) {
    const delegate = delegates.find(({ seen }) => seen.has(name));
    toDelegate.push((delegate?.seen.get(name) ?? Number.NaN) - at);
    toProxy.push((proxies.running.get(name) ?? Number.NaN) - (delegate?.running.get(name) ?? Number.NaN));
  }
  await clear(host, namespace, proxies);
  await Promise.all(delegates.map((watch) => watch.stop()));
  await removeNamespace([host, ...members], namespace);
  const figure = (name: string, values: readonly number[], at: number, target?: number): Figure => ({
    name: `at ${rate} pods/s: ${name}, P${100 * at}`,
    value: quantile(values, at),
    unit: "ms",
    ...(target === undefined || rate !== TARGET_RATE ? {} : { target: { atMost: target } }),
  });
  return [
    figure("create to delegate", toDelegate, 0.5),
    figure("create to delegate", toDelegate, 0.99, 50),
    figure("delegate Running to proxy Running", toProxy, 0.5),
    figure("delegate Running to proxy Running", toProxy, 0.99, 50),
  ];
}
