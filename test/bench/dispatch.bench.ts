import { WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { jobs } from "../../src/kube/resources.ts";
import { template } from "../support/builders/workload.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { eventually } from "../support/harness/wait.ts";
import type { Legation } from "../support/legation/start.ts";
import { clientOf, makeNamespace, removeNamespace } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { cpuMs } from "./process-usage.ts";

export interface DispatchBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Pick<Legation, "controller">;
  /** Number of Jobs. */
  readonly count: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

/** `direct`: the Jobs are created in the members, in turns. `whole`: they are created on the host. */
type Way = "direct" | "whole";

const AT_ONCE = 10;
// A machine that becomes slower or faster in the meantime favours neither.
const ORDER: readonly Way[] = ["direct", "whole", "whole", "direct"];

/** Measures how many whole Jobs a second get to members. They are suspended, so that no pod takes processor time. */
export async function benchDispatch(options: DispatchBenchOptions): Promise<void> {
  const { host, members, legation, count, onProgress, onFigure } = options;
  const { pid = 0 } = legation.controller;
  const hostClient = clientOf(host);
  const memberClients = members.map(clientOf);
  const all = [hostClient, ...memberClients];
  const rates: Record<Way, number[]> = { direct: [], whole: [] };
  const controllerMs: number[] = [];
  const told = (name: string, value: number, unit: string): void =>
    onFigure({ name: `${count} whole Jobs: ${name}`, value, unit });
  try {
    for (const [index, way] of ORDER.entries()) {
      onProgress(`${count} whole Jobs, run ${index + 1} of ${ORDER.length}: ${way}`);
      const namespace = `bench-dispatch-${index}`;
      await makeNamespace(hostClient, true, namespace);
      await Promise.all(memberClients.map((client) => makeNamespace(client, false, namespace)));
      const [startedAt, cpuBefore] = [performance.now(), cpuMs(pid)];
      const targets = way === "whole" ? [hostClient] : memberClients;
      await createAll(targets, namespace, count, way);
      await arrived(memberClients, namespace, count);
      rates[way].push(count / ((performance.now() - startedAt) / 1000));
      if (way === "whole") controllerMs.push((cpuMs(pid) - cpuBefore) / count);
      told(`${way}, run ${index + 1}`, rates[way].at(-1) ?? 0, "Jobs/s");
      await removeNamespace(all, namespace);
    }
    told("whole / direct", mean(rates.whole) / mean(rates.direct), "");
    told("processor time of the controller", mean(controllerMs), "ms/Job");
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
}

async function createAll(targets: readonly ClusterClient[], namespace: string, count: number, way: Way): Promise<void> {
  let next = 0;
  const annotations = way === "whole" ? { [WHOLE_KEY]: "true" } : {};
  const spec = {
    suspend: true,
    template: template({ restartPolicy: "Never" }) as NonNullable<Job["spec"]>["template"],
  };
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const metadata = { name: `job-${index}`, namespace, annotations };
      await targets[index % targets.length]?.create(jobs, { apiVersion: "batch/v1", kind: "Job", metadata, spec });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Resolves once the members have that many Jobs together. */
async function arrived(members: readonly ClusterClient[], namespace: string, count: number): Promise<void> {
  const found = async (): Promise<boolean> => {
    const lists = await Promise.all(members.map((client) => client.list(jobs, { namespace, metadataOnly: true })));
    return lists.reduce((sum, { items }) => sum + items.length, 0) >= count;
  };
  await eventually(found, { timeoutMs: 300_000, intervalMs: 100, what: `${count} Jobs in members` });
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
