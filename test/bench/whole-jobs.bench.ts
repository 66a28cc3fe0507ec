import { PREFERENCES_ANNOTATION, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { jobs } from "../../src/kube/resources.ts";
import { ends, template } from "../support/builders/workload.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import type { Legation } from "../support/legation/start.ts";
import { clientOf, makeNamespace, removeNamespace } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { cpuMs } from "./process-usage.ts";

export interface WholeJobsBenchOptions {
  /** Writes an audit log. */
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Pick<Legation, "controller">;
  /** Pods of the Job. */
  readonly pods: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

/** `direct`: an equal part of the Job is created in each member. `whole`: the Job is created on the host, and divided. */
type Way = "direct" | "whole";

const PARALLELISM = 500;
const MOST_HOST_WRITES = 50;
const EVENLY = JSON.stringify({ clusters: { "*": { weight: 1 } } });
// A machine that becomes slower or faster in the meantime favours neither.
const ORDER: readonly Way[] = ["direct", "whole", "whole", "direct"];

/** Measures a Job that is divided over all members beside its parts created there. */
export async function benchWholeJobs(options: WholeJobsBenchOptions): Promise<void> {
  const { host, members, legation, pods, onProgress, onFigure } = options;
  const { pid = 0 } = legation.controller;
  const hostClient = clientOf(host);
  const memberClients = members.map(clientOf);
  const all = [hostClient, ...memberClients];
  const told = (name: string, value: number, unit: string, target?: Figure["target"]): void =>
    onFigure({ name: `a Job of ${pods} pods: ${name}`, value, unit, ...(target === undefined ? {} : { target }) });
  const seconds: Record<Way, number[]> = { direct: [], whole: [] };
  const controllerMs: Record<Way, number[]> = { direct: [], whole: [] };
  const writes: number[] = [];
  try {
    for (const [index, way] of ORDER.entries()) {
      onProgress(`a Job of ${pods} pods, run ${index + 1} of ${ORDER.length}: ${way}`);
      const namespace = await makeNamespaces(way, hostClient, memberClients, `jobs-${index}`);
      const [startedAt, cpuBefore] = [performance.now(), cpuMs(pid)];
      if (way === "whole") await runJob(hostClient, namespace, { completions: pods, parallelism: PARALLELISM }, way);
      else
        await Promise.all(partsOf(pods, memberClients).map(([client, part]) => runJob(client, namespace, part, way)));
      const tookSeconds = (performance.now() - startedAt) / 1000;
      seconds[way].push(tookSeconds);
      controllerMs[way].push(cpuMs(pid) - cpuBefore);
      told(`${way}, run ${index + 1}`, pods / tookSeconds, "pods/s");
      if (way === "whole") {
        const { pods: ofPods, events, others } = await legationWrites(host, namespace);
        writes.push([...ofPods.values()].flat().length + events.length + others.length);
      }
      await removeNamespace(all, namespace);
    }
    told("whole / direct", sum(seconds.direct) / sum(seconds.whole), "", { atLeast: 0.9 });
    const more = sum(controllerMs.whole) - sum(controllerMs.direct);
    told("processor time of the controller for it", more / controllerMs.whole.length / 1000, "s");
    told("Legation's writes of it on the host", Math.max(...writes), "", { atMost: MOST_HOST_WRITES });
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
}

async function makeNamespaces(
  way: Way,
  host: ClusterClient,
  members: readonly ClusterClient[],
  suffix: string,
): Promise<string> {
  const name = `bench-${suffix}`;
  if (way === "whole") return makeNamespace(host, true, name);
  await Promise.all(members.map((client) => makeNamespace(client, false, name)));
  return name;
}

/** Divides completions and parallelism evenly. */
function partsOf<T>(
  pods: number,
  members: readonly T[],
): (readonly [T, { completions: number; parallelism: number }])[] {
  const part = (total: number, index: number): number =>
    Math.floor((total * (index + 1)) / members.length) - Math.floor((total * index) / members.length);
  return members.map((member, index) => [
    member,
    { completions: part(pods, index), parallelism: part(PARALLELISM, index) },
  ]);
}

/** Runs a Job until the cluster where it was created says that it is complete. */
async function runJob(
  client: ClusterClient,
  namespace: string,
  size: { readonly completions: number; readonly parallelism: number },
  way: Way,
): Promise<void> {
  const annotations = way === "whole" ? { [WHOLE_KEY]: "true", [PREFERENCES_ANNOTATION]: EVENLY } : {};
  const { metadata } = await client.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "sum", namespace, annotations },
    spec: { ...size, template: template({ restartPolicy: "Never" }, ends(0)) as NonNullable<Job["spec"]>["template"] },
  });
  const stop = new AbortController();
  let { resourceVersion } = metadata;
  for (;;) {
    for await (const event of client.watch(jobs, { namespace, resourceVersion, signal: stop.signal })) {
      if (event.type === "BOOKMARK") continue;
      resourceVersion = event.object.metadata.resourceVersion;
      if (event.object.status?.conditions?.some(({ type }) => type === "Complete") !== true) continue;
      stop.abort();
      return;
    }
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
