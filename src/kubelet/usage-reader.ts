import { z } from "zod";
import { DELEGATE_UID_ANNOTATION, HOST_LABEL, VIRTUAL_NODE_LABEL, virtualNodeName } from "../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import { parseAmounts } from "../api/quantity.ts";
import { isInShard } from "../api/shards.ts";
import type { Member } from "../clusters/member.ts";
import { ignoring, isKubeError } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { AnswerCache } from "../serving/answer-cache.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { PodSource } from "./pod-lookup.ts";
import { type ContainerUsage, CpuCounters, type Measured, type NodeUsage, runningSince } from "./usage.ts";

const usage = z
  .record(z.string(), z.union([z.string(), z.number()]))
  .transform((list) => ({ cpu: 0, memory: 0, ...parseAmounts(list) }));
const timestamp = z.string().transform(Date.parse).pipe(z.number());
const podMetrics = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string(), name: z.string() }),
      timestamp,
      containers: z.array(z.object({ name: z.string(), usage })),
    }),
  ),
});
const nodeMetrics = z.object({ items: z.array(z.object({ timestamp, usage })) });

type PodMetrics = z.output<typeof podMetrics>["items"][number];

const PATH = "/apis/metrics.k8s.io/v1beta1";
// Below metrics-server's timeout of 10 s for a kubelet.
const TIMEOUT_MS = 8_000;
// Several readers of one node, or one that asks for both formats, share one request to the member.
const USAGE_FRESH_MS = 5_000;

const NODE = "";

interface UsageReaderOptions {
  readonly cluster: string;
  readonly source: PodSource;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Reads the usage of a virtual node and its proxies from the member's metrics API. */
export class UsageReader {
  readonly #options: UsageReaderOptions;
  readonly #answers: AnswerCache<NodeUsage>;
  readonly #counters = new CpuCounters();
  #complaint: string | undefined;

  constructor(options: UsageReaderOptions) {
    this.#options = options;
    this.#answers = new AnswerCache({ lifetimeMs: () => USAGE_FRESH_MS, most: 1, clock: options.clock });
  }

  /** Returns the current usage. Empty for a member without a metrics API; marked failed when the member does not answer. */
  read(): Promise<NodeUsage> {
    return this.#answers.of(NODE, () => this.#read());
  }

  async #read(): Promise<NodeUsage> {
    const { cluster, source, log } = this.#options;
    const member = source.registry.member(cluster);
    if (member === undefined || member.probed.message !== undefined) return { failed: true, pods: [] };
    try {
      const [pods, nodes] = await Promise.all([
        ask(member, `${PATH}/pods?labelSelector=${encodeURIComponent(HOST_LABEL)}`, podMetrics),
        // A member that is itself a host has virtual nodes, which do not count.
        ask(member, `${PATH}/nodes?labelSelector=${encodeURIComponent(`!${VIRTUAL_NODE_LABEL}`)}`, nodeMetrics),
      ]);
      this.#complaint = undefined;
      this.#counters.begin();
      const node = this.#counters.count(NODE, measuredNode(nodes?.items ?? []));
      return { failed: false, ...(node === undefined ? {} : { node }), pods: this.#podsOf(member, pods?.items ?? []) };
    } catch (error) {
      const complaint = isKubeError(error) ? error.detail : "its metrics cannot be read";
      if (complaint !== this.#complaint) log.warn({ err: error, member: cluster }, "usage is not known");
      this.#complaint = complaint;
      return { failed: true, pods: [] };
    }
  }

  #podsOf(member: Member, items: readonly PodMetrics[]): NodeUsage["pods"] {
    const metrics = new Map<ObjectKey, PodMetrics>(items.map((item) => [objectKey(item.metadata), item]));
    const { cluster, source } = this.#options;
    return source.proxiesOn(virtualNodeName(cluster)).flatMap((pod) => {
      const key = objectKey(pod.metadata);
      const { namespace, annotations } = pod.metadata;
      // Delegates of other shards are not watched: their proxies show what runs, some moments later.
      const delegate = isInShard(source.shard, namespace) ? member.delegates.get(key) : pod;
      const isRecorded = delegate === pod || delegate?.metadata.uid === annotations?.[DELEGATE_UID_ANNOTATION];
      if (delegate === undefined || !isRecorded) return [];
      const containers = this.#containersOf(pod, delegate, metrics.get(key));
      return containers.length === 0 ? [] : [{ pod, containers }];
    });
  }

  #containersOf(proxy: Pod, delegate: Stored<Pod>, metrics: PodMetrics | undefined): ContainerUsage[] {
    return [...runningSince(proxy, delegate)].flatMap(([name, startedAt]) => {
      const found = metrics?.containers.find((container) => container.name === name);
      // A measurement from before the start belongs to the previous container, or to an earlier pod of the name.
      const measured =
        metrics === undefined || found === undefined || !(metrics.timestamp >= startedAt)
          ? undefined
          : { at: metrics.timestamp, cores: found.usage.cpu, memoryBytes: found.usage.memory };
      const counted = this.#counters.count(`${delegate.metadata.uid}/${name}/${startedAt}`, measured, startedAt);
      return counted === undefined ? [] : [{ name, startedAt, usage: counted }];
    });
  }
}

async function ask<T>({ client }: Member, path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  // The member may have no metrics API.
  const answer = await ignoring(client.raw({ method: "GET", path, timeoutMs: TIMEOUT_MS }), "NotFound");
  return answer === undefined ? undefined : schema.parse(answer);
}

/** Sums all nodes. The newest measurement's time becomes the sum's. */
function measuredNode(items: z.output<typeof nodeMetrics>["items"]): Measured | undefined {
  if (items.length === 0) return undefined;
  const sum = { at: 0, cores: 0, memoryBytes: 0 };
  for (const { timestamp: at, usage: used } of items) {
    sum.at = Math.max(sum.at, at);
    sum.cores += used.cpu;
    sum.memoryBytes += used.memory;
  }
  return sum;
}
