import { WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { jobs } from "../../src/kube/resources.ts";
import { ends, template } from "../support/builders/workload.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { clientOf, makeNamespace, removeNamespace } from "./bursts.ts";
import type { Figure } from "./figures.ts";

export interface WholeJobsBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  /** Pods of the Job. */
  readonly pods: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

const PARALLELISM = 500;
const MOST_HOST_WRITES = 50;

/** Measures a Job that runs whole in a member beside the same Job created there. */
export async function benchWholeJobs({
  host,
  members,
  pods,
  onProgress,
  onFigure,
}: WholeJobsBenchOptions): Promise<void> {
  const [hostClient, ...memberClients] = [host, ...members].map(clientOf);
  const [direct] = memberClients;
  if (hostClient === undefined || direct === undefined) throw new Error("a comparison needs a host and a member");
  const all = [hostClient, ...memberClients];
  try {
    onProgress(`a Job of ${pods} pods: created in ${direct.cluster}`);
    const inMember = await run(all, direct, pods, "direct");
    onProgress(`a Job of ${pods} pods: whole`);
    const whole = await run(all, hostClient, pods, "whole");
    onFigure({ name: `a Job of ${pods} pods: created in a member`, value: inMember.perSecond, unit: "pods/s" });
    onFigure({ name: `a Job of ${pods} pods: whole`, value: whole.perSecond, unit: "pods/s" });
    const ratio = whole.perSecond / inMember.perSecond;
    onFigure({ name: `a Job of ${pods} pods: whole / in a member`, value: ratio, unit: "", target: { atLeast: 0.9 } });
    const writes = { name: `a Job of ${pods} pods: writes of it on the host`, value: whole.writes, unit: "" };
    onFigure({ ...writes, target: { atMost: MOST_HOST_WRITES } });
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
}

/** Runs a Job until the cluster where it was created says that it is complete. `writes` counts how often it changed there. */
async function run(
  all: readonly ClusterClient[],
  client: ClusterClient,
  pods: number,
  way: "direct" | "whole",
): Promise<{ readonly perSecond: number; readonly writes: number }> {
  const namespace = await makeNamespace(client, way === "whole", `jobs-${way}`);
  const startedAt = performance.now();
  const { metadata } = await client.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "sum", namespace, annotations: way === "whole" ? { [WHOLE_KEY]: "true" } : {} },
    spec: {
      completions: pods,
      parallelism: PARALLELISM,
      template: template({ restartPolicy: "Never" }, ends(0)) as NonNullable<Job["spec"]>["template"],
    },
  });
  const writes = await writesUntilComplete(client, namespace, metadata.resourceVersion);
  const perSecond = pods / ((performance.now() - startedAt) / 1000);
  await removeNamespace(all, namespace);
  return { perSecond, writes };
}

async function writesUntilComplete(client: ClusterClient, namespace: string, from: string): Promise<number> {
  const stop = new AbortController();
  let resourceVersion = from;
  for (let writes = 0; ; ) {
    for await (const event of client.watch(jobs, { namespace, resourceVersion, signal: stop.signal })) {
      if (event.type === "BOOKMARK") continue;
      writes += 1;
      resourceVersion = event.object.metadata.resourceVersion;
      if (event.object.status?.conditions?.some(({ type }) => type === "Complete") !== true) continue;
      stop.abort();
      return writes;
    }
  }
}
