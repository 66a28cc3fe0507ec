import { randomBytes } from "node:crypto";
import { CoreV1Api, KubeConfig, Watch } from "@kubernetes/client-node";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../src/kube/kubeconfig.ts";
import { namespaces, pods } from "../../src/kube/resources.ts";

/** The measurement, and its API server. */
export interface ClientBenchOptions {
  readonly kubeconfig: string;
  /** Requests per round and client. */
  readonly requests?: number;
  /** Events per round and client. */
  readonly events?: number;
  readonly concurrency?: number;
  /** Each client is measured this often, in turns; the best round counts, since others disturb this machine. */
  readonly rounds?: number;
}

/** A rate, and its cost to this process. */
export interface Rate {
  readonly perSecond: number;
  readonly cpuMsPerThousand: number;
}

/** A comparison of this project's client with @kubernetes/client-node's, measured in turns in one process. */
export interface ClientBenchResult {
  readonly requests: Comparison;
  readonly watchEvents: Comparison;
}

/** Ratios above 1 speak for this project's client. */
export interface Comparison {
  readonly legation: Rate;
  readonly clientNode: Rate;
  readonly ratio: number;
  /** Processor time of client-node, divided by that of this project's client. */
  readonly cpuRatio: number;
}

/** Measures GETs of one pod, and the events of a watch over many pods, through both clients. */
export async function benchClient(options: ClientBenchOptions): Promise<ClientBenchResult> {
  const { kubeconfig, requests = 1_000, events = 2_000, concurrency = 32, rounds = 4 } = options;
  const limits = { perSecond: 1e6, burst: 1e6 };
  const client = createClusterClient({
    cluster: "bench",
    credentials: loadKubeConfig({ kubeconfig, env: {} }),
    limits,
  });
  const peer = new KubeConfig();
  peer.loadFromFile(kubeconfig);
  const core = peer.makeApiClient(CoreV1Api);
  const namespace = `bench-${randomBytes(4).toString("hex")}`;
  await client.create(namespaces, { metadata: { name: namespace } });
  try {
    const { resourceVersion } = await client.list(pods, { namespace });
    await inParallel(events, 64, (index) => client.create(pods, podOf(namespace, `p${index}`)));
    const read = {
      legation: () => inParallel(requests, concurrency, () => client.get(pods, { namespace, name: "p0" })),
      clientNode: () => inParallel(requests, concurrency, () => core.readNamespacedPod({ namespace, name: "p0" })),
    };
    const watched = {
      legation: () => watchAll(client, namespace, resourceVersion, events),
      clientNode: () => watchAllWithClientNode(peer, namespace, resourceVersion, events),
    };
    return {
      requests: await compare(read, requests, rounds),
      watchEvents: await compare(watched, events, rounds),
    };
  } finally {
    await client.delete(namespaces, { name: namespace });
    await client.close();
  }
}

/** A pod as a workload makes it; no scheduler knows its name, so nothing changes while it is measured. */
function podOf(namespace: string, name: string): Pod {
  const env = Array.from({ length: 10 }, (_, index) => ({ name: `VARIABLE_${index}`, value: `value ${index}` }));
  const resources = { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } };
  return {
    metadata: { namespace, name, labels: { app: "bench", "pod-template-hash": "abc" } },
    spec: {
      schedulerName: "nobody",
      automountServiceAccountToken: false,
      containers: [{ name: "main", image: "registry.example/never-pulled:1", env, resources }],
    },
  };
}

async function inParallel(count: number, concurrency: number, run: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await run(index);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

async function watchAll(
  client: ClusterClient,
  namespace: string,
  resourceVersion: string,
  count: number,
): Promise<void> {
  const { signal } = new AbortController();
  let seen = 0;
  // Same options as the reflector's watch.
  for await (const event of client.watch(pods, { namespace, resourceVersion, signal, dropManagedFields: true })) {
    if (event.type === "ADDED") seen += 1;
    if (seen === count) return;
  }
  throw new Error(`the watch ended after ${seen} of ${count} events`);
}

function watchAllWithClientNode(
  config: KubeConfig,
  namespace: string,
  resourceVersion: string,
  count: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = 0;
    let abort: AbortController | undefined;
    const onEvent = (type: string): void => {
      if (type === "ADDED") seen += 1;
      if (seen !== count) return;
      resolve();
      abort?.abort();
    };
    new Watch(config)
      .watch(`/api/v1/namespaces/${namespace}/pods`, { resourceVersion }, onEvent, (error) => {
        if (seen < count) reject(new Error(`the watch ended after ${seen} of ${count} events`, { cause: error }));
      })
      .then((controller) => {
        abort = controller;
      }, reject);
  });
}

async function compare(
  run: { readonly legation: () => Promise<void>; readonly clientNode: () => Promise<void> },
  count: number,
  rounds: number,
): Promise<Comparison> {
  const [ours, theirs]: [Rate[], Rate[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await measure(run.legation, count));
    theirs.push(await measure(run.clientNode, count));
  }
  const [legation, clientNode] = [best(ours), best(theirs)];
  return {
    legation,
    clientNode,
    ratio: round1(legation.perSecond / clientNode.perSecond),
    cpuRatio: round1(clientNode.cpuMsPerThousand / legation.cpuMsPerThousand),
  };
}

async function measure(run: () => Promise<void>, count: number): Promise<Rate> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  await run();
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: Math.round(count / seconds), cpuMsPerThousand: round1((user + system) / count) };
}

function best(rates: readonly Rate[]): Rate {
  return {
    perSecond: Math.max(...rates.map(({ perSecond }) => perSecond)),
    cpuMsPerThousand: Math.min(...rates.map(({ cpuMsPerThousand }) => cpuMsPerThousand)),
  };
}

function round1(value: number): number {
  return Math.round(value * 10) / 10;
}
