import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HOST_LABEL } from "../../src/api/keys.ts";
import type { KubeObject, Pod } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { isKubeError, KubeError } from "../../src/kube/errors.ts";
import { configMaps, events, pods, type Resource, secrets, services } from "../../src/kube/resources.ts";
import { ends } from "../support/builders/workload.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import type { Cluster } from "../support/clusters/types.ts";
import type { Legation } from "../support/legation/start.ts";
import { clientOf, countOf, makeNamespace, podOf, removeNamespace, WRITERS } from "./bursts.ts";
import { type Figure, quantile } from "./figures.ts";
import { connectToHeap } from "./heap.ts";
import { PodWatch } from "./pod-watch.ts";
import { differenceOf, rssMb, usageOf } from "./process-usage.ts";

export interface DayBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  /** The installation, whose controller has an inspector. */
  readonly legation: Legation;
  /** Time in which pods are created. */
  readonly minutes: number;
  /** Called with a line a minute. */
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

const PER_HOUR = 230_000;
// A machine that is too slow for this rate gets fewer pods, and no backlog that grows.
const MOST_UNDER_WAY = 400;
const RUNS_FOR = "5s";
/** Every so many pods one fails. */
const FAILS_EVERY = 10;
// Code is compiled and caches are filled by then.
const WARM = 0.25;
const AGAIN_MS = 1_000;
const DRAIN_MS = 300_000;

/** Pods of a workflow engine: created at a steady rate, they run, end by themselves, and are deleted by their creator. */
export async function benchDay({ host, members, legation, minutes, ...told }: DayBenchOptions): Promise<void> {
  const { pid } = legation.controller;
  const inspector = /Debugger listening on ws:\/\/127\.0\.0\.1:(\d+)\//.exec(legation.controller.log())?.[1];
  if (pid === undefined || inspector === undefined) throw new Error("the controller has no inspector");
  const figure = (name: string, value: number, unit: string, target?: Figure["target"]): void =>
    told.onFigure({
      name: `a day in ${minutes} min: ${name}`,
      value,
      unit,
      ...(target === undefined ? {} : { target }),
    });
  const liveMb = async (): Promise<number> => {
    const heap = await connectToHeap(Number(inspector));
    const live = await heap.liveMb();
    heap.close();
    return live;
  };
  const clients = [host, ...members].map(clientOf);
  const [hostClient, ...memberClients] = clients;
  if (hostClient === undefined) throw new Error("a day needs a host");
  const namespace = await makeNamespace(hostClient, true);
  const day = new Day(hostClient, memberClients, namespace);
  await day.start();
  const usage = usageOf({ host, members, legation });
  const usedBefore = usage();
  const begun = performance.now();
  let mostMb = 0;
  const minute = setInterval(() => {
    mostMb = Math.max(mostMb, rssMb(pid));
    const databases = [host, ...members].map((cluster) => databaseMb(cluster).toFixed(0)).join(", ");
    const time = ((performance.now() - begun) / 60_000).toFixed(0);
    told.onProgress(`minute ${time}: ${day.minute()}; controller ${rssMb(pid).toFixed(0)} MB; etcd ${databases} MB`);
  }, 60_000);
  try {
    await day.run(minutes * 60_000 * WARM);
    await day.drain();
    const warmMb = await liveMb();
    await day.run(minutes * 60_000 * (1 - WARM));
    const database = [host, ...members].map(databaseMb);
    await day.drain();
    const used = differenceOf(usage(), usedBefore);
    figure("pods/h", (day.created / day.createdMs) * 3_600_000, "", { atLeast: PER_HOUR });
    figure("pods", day.created, "");
    for (const [name, values] of [
      ["creation to Running on the host", day.toRunning],
      ["the delegate's end to the proxy's", day.toEnd],
    ] as const) {
      for (const at of [0.5, 0.99]) figure(`${name}, P${100 * at}`, quantile(values, at), "ms");
    }
    const none = { atMost: 0 };
    figure("pods lost, or not ended once on the host", day.lost, "", none);
    figure("pods whose end came before the host showed them Running", day.notShown, "");
    figure("delegates beyond one for each pod", day.delegates - day.created, "", none);
    figure("delegates and copies left in members", await leftOf(memberClients, namespace), "", none);
    figure("requests of the load that were repeated", day.repeated, "");
    figure("controller: live heap after a quarter", warmMb, "MB");
    figure("controller: live heap at the end / that", (await liveMb()) / warmMb, "", { atMost: 1.1 });
    figure("controller: most memory", mostMb, "MB");
    for (const [at, cluster] of [host, ...members].entries()) {
      figure(`${cluster.name}: etcd`, database[at] ?? Number.NaN, "MB");
      const client = clients[at];
      if (client !== undefined) figure(`${cluster.name}: events kept`, await countOf(client, events, namespace), "");
    }
    for (const [name, ms] of Object.entries(used)) figure(`processor for each pod, ${name}`, ms / day.created, "ms");
  } finally {
    clearInterval(minute);
    await day.stop();
  }
  await removeNamespace(clients, namespace);
  await Promise.all(clients.map((client) => client.close()));
}

/** The load, and what becomes of its pods. */
class Day {
  created = 0;
  /** Time in which pods were created. */
  createdMs = 0;
  /** Requests that were refused or not answered, and sent again. */
  repeated = 0;
  /** Pods that ended before the host showed that they ran. */
  notShown = 0;
  readonly toRunning: number[] = [];
  readonly toEnd: number[] = [];
  readonly #host: ClusterClient;
  readonly #namespace: string;
  readonly #proxies: PodWatch;
  readonly #delegates: readonly PodWatch[];
  /** Pods under way, by the time of the request that creates them. */
  readonly #begun = new Map<string, number>();
  #wrong = 0;
  #told = { created: 0, running: 0, ended: 0, at: performance.now() };

  constructor(host: ClusterClient, members: readonly ClusterClient[], namespace: string) {
    this.#host = host;
    this.#namespace = namespace;
    this.#proxies = new PodWatch(host, namespace);
    this.#delegates = members.map((member) => new PodWatch(member, namespace));
    this.#proxies.onEnded = (name) => {
      void this.#untilAnswered(() => host.delete(pods, { namespace, name }, { timeoutMs: 60_000 }), "NotFound");
    };
  }

  get delegates(): number {
    return this.#delegates.reduce((sum, { came }) => sum + came, 0);
  }

  /** Pods that are not gone after they have ended once, as their only delegate did. */
  get lost(): number {
    return this.#begun.size + this.#wrong + this.#proxies.revived;
  }

  async start(): Promise<void> {
    await Promise.all([this.#proxies, ...this.#delegates].map((watch) => watch.start()));
  }

  async stop(): Promise<void> {
    await Promise.all([this.#proxies, ...this.#delegates].map((watch) => watch.stop()));
  }

  /** Creates pods at the day's rate, while fewer than the most are under way. */
  async run(ms: number): Promise<void> {
    const startedAt = performance.now();
    const isOver = (): boolean => performance.now() - startedAt >= ms;
    let next = 0;
    const writer = async (): Promise<void> => {
      while (!isOver()) {
        await sleep(Math.max(0, startedAt + (next++ * 3_600_000) / PER_HOUR - performance.now()));
        while (this.#begun.size >= MOST_UNDER_WAY && !isOver()) {
          await sleep(20);
          this.#settle();
        }
        if (!isOver()) await this.#create();
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, writer));
    this.createdMs += performance.now() - startedAt;
  }

  /** Waits until no pod is left, or for five minutes. */
  async drain(): Promise<void> {
    const startedAt = performance.now();
    for (this.#settle(); this.#begun.size > 0 && performance.now() - startedAt < DRAIN_MS; this.#settle()) {
      await sleep(100);
    }
  }

  /** Returns what has happened since the last call. */
  minute(): string {
    this.#settle();
    const now = performance.now();
    const rate = ((this.created - this.#told.created) * 1000) / (now - this.#told.at);
    const shown = (values: readonly number[], from: number): string => {
      const since = values.slice(from);
      return [0.5, 0.99].map((at) => quantile(since, at).toFixed(0)).join(" and ");
    };
    const line = `${rate.toFixed(1)} pods/s, ${this.created} created, ${this.#begun.size} under way, ${this.#wrong} wrong; creation to Running ${shown(this.toRunning, this.#told.running)} ms, end to end ${shown(this.toEnd, this.#told.ended)} ms (P50 and P99)`;
    this.#told = { created: this.created, running: this.toRunning.length, ended: this.toEnd.length, at: now };
    return line;
  }

  async #create(): Promise<void> {
    const number = this.created++;
    const { metadata, spec, ...pod } = podOf(this.#namespace, number, "delegated");
    const annotations = {
      ...metadata?.annotations,
      ...ends(number % FAILS_EVERY === 0 ? 1 : 0),
      [KWOK_ANNOTATIONS.endsAfter]: RUNS_FOR,
    };
    const made: Pod = {
      ...pod,
      metadata: { ...metadata, annotations },
      spec: { containers: [], ...spec, restartPolicy: "Never" },
    };
    this.#begun.set(`pod-${number}`, performance.now());
    await this.#untilAnswered(() => this.#host.create(pods, made, { timeoutMs: 60_000 }), "AlreadyExists");
  }

  /** Sends a request again until the API server has done it, now or before: one that is overloaded refuses some. */
  async #untilAnswered(send: () => Promise<unknown>, done: "AlreadyExists" | "NotFound"): Promise<void> {
    for (;;) {
      try {
        await send();
        return;
      } catch (error) {
        if (isKubeError(error, done)) return;
        if (!(error instanceof KubeError)) throw error;
        this.repeated += 1;
        await sleep(AGAIN_MS);
      }
    }
  }

  /** Counts and forgets pods that are gone in all clusters. */
  #settle(): void {
    for (const name of this.#proxies.gone.keys()) {
      const having = this.#delegates.filter(({ seen }) => seen.has(name));
      const [delegate] = having;
      // A watch of a member may be later than that of the host.
      if (delegate === undefined || !having.every(({ gone }) => gone.has(name))) continue;
      const begun = this.#begun.get(name) ?? Number.NaN;
      const running = this.#proxies.running.get(name);
      const [ended, delegateEnded] = [this.#proxies, delegate].map((watch) => watch.ended.get(name));
      if (running === undefined) this.notShown += 1;
      else this.toRunning.push(running - begun);
      if (having.length === 1 && ended !== undefined && delegateEnded !== undefined)
        this.toEnd.push(ended - delegateEnded);
      else this.#wrong += 1;
      this.#begun.delete(name);
      for (const watch of [this.#proxies, ...having]) watch.forget(name);
    }
  }
}

/** Counts what Legation made in members for the namespace's pods. */
async function leftOf(members: readonly ClusterClient[], namespace: string): Promise<number> {
  const kinds: readonly Resource<KubeObject>[] = [pods, configMaps, secrets, services];
  const lists = members.flatMap((member) =>
    kinds.map((kind) => member.list(kind, { namespace, labelSelector: HOST_LABEL })),
  );
  return (await Promise.all(lists)).reduce((sum, { items }) => sum + items.length, 0);
}

/** Size of a cluster's database, in megabytes (10^6 bytes). Compaction frees pages in it, for what is written next. */
function databaseMb({ directory }: Cluster): number {
  return statSync(join(directory, "etcd", "member", "snap", "db")).size / 1e6;
}
