import { describe, expect, test } from "vitest";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { jobs } from "../../src/kube/resources.ts";
import type { JobStatus } from "../../src/whole/jobs/kind.ts";
import { ends, stays, template } from "../support/builders/workload.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

// Each Job runs twice: whole, created on the host, and by a member's Job controller alone. Both must look the same.

useLegation();
const clients = useClients();

interface Row {
  readonly spec: object;
  /** How the pods end; default: they run on. */
  readonly pod?: Record<string, string>;
  /** The rest that each change of the spec leads to, from the creation on. */
  readonly steps: readonly { readonly change?: object; readonly until: JobStatus }[];
  /** Changes that the API server refuses after all that. */
  readonly refused?: readonly object[];
}

const INDEXED = { completionMode: "Indexed", completions: 2, parallelism: 2 };
const failed = (reason: string): JobStatus => ({
  conditions: expect.arrayContaining([expect.objectContaining({ type: "Failed", status: "True", reason })]),
});
const complete = (reason: string): JobStatus => ({
  conditions: expect.arrayContaining([expect.objectContaining({ type: "Complete", status: "True", reason })]),
});
const suspended = (status: "True" | "False"): NonNullable<JobStatus["conditions"]> =>
  expect.arrayContaining([expect.objectContaining({ type: "Suspended", status })]);
const policy = (action: string): object => ({
  podFailurePolicy: { rules: [{ action, onExitCodes: { operator: "In", values: [3] } }] },
});

const ROWS: readonly (readonly [string, Row])[] = [
  [
    "whose parallelism goes up, down and to none",
    {
      spec: { completions: 6, parallelism: 1 },
      steps: [
        { until: { active: 1, ready: 1 } },
        { change: { parallelism: 4 }, until: { active: 4, ready: 4 } },
        { change: { parallelism: 2 }, until: { active: 2, ready: 2, terminating: 0 } },
        { change: { parallelism: 0 }, until: { ready: 0, terminating: 0 } },
      ],
      refused: [{ completions: 7 }, { completionMode: "Indexed" }, { selector: { matchLabels: { a: "b" } } }],
    },
  ],
  [
    "that is Indexed and elastic",
    {
      spec: INDEXED,
      steps: [
        { until: { active: 2, ready: 2 } },
        { change: { completions: 4, parallelism: 4 }, until: { active: 4, ready: 4 } },
        { change: { completions: 1, parallelism: 1 }, until: { active: 1, ready: 1, terminating: 0 } },
      ],
      refused: [{ completions: 3, parallelism: 2 }, { backoffLimitPerIndex: 1 }],
    },
  ],
  [
    "that is suspended, resumed and suspended again",
    {
      spec: { completions: 2, parallelism: 2, suspend: true },
      steps: [
        { until: { conditions: suspended("True") } },
        { change: { suspend: false }, until: { active: 2, ready: 2, conditions: suspended("False") } },
        { change: { suspend: true }, until: { ready: 0, terminating: 0, conditions: suspended("True") } },
        { change: { suspend: false, parallelism: 1 }, until: { active: 1, ready: 1 } },
      ],
      refused: [{ template: { spec: { nodeSelector: { zone: "a" } } } }],
    },
  ],
  [
    "that gets a deadline while it runs",
    {
      spec: { completions: 2, parallelism: 2 },
      steps: [
        { until: { active: 2, ready: 2 } },
        { change: { activeDeadlineSeconds: 1 }, until: failed("DeadlineExceeded") },
      ],
      refused: [{ completionMode: "Indexed" }],
    },
  ],
  [
    "whose pod failure policy counts a failure",
    { spec: { backoffLimit: 0, ...policy("Count") }, pod: ends(3), steps: [{ until: failed("BackoffLimitExceeded") }] },
  ],
  [
    "whose pod failure policy fails the Job",
    { spec: { backoffLimit: 6, ...policy("FailJob") }, pod: ends(3), steps: [{ until: failed("PodFailurePolicy") }] },
  ],
  [
    "whose pod failure policy fails indexes",
    {
      spec: { ...INDEXED, backoffLimitPerIndex: 1, ...policy("FailIndex") },
      pod: ends(3),
      steps: [{ until: { failedIndexes: "0,1", ...failed("FailedIndexes") } }],
    },
  ],
  [
    "with a success policy",
    {
      spec: { ...INDEXED, completions: 3, parallelism: 1, successPolicy: { rules: [{ succeededCount: 1 }] } },
      pod: ends(0),
      steps: [{ until: { completedIndexes: "0", ...complete("SuccessPolicy") } }],
    },
  ],
  [
    "without completions",
    { spec: { parallelism: 1 }, pod: ends(0), steps: [{ until: { succeeded: 1, ...complete("CompletionsReached") } }] },
  ],
];

/** Returns what both must have alike: times by whether they are there, in their order. */
function comparable({ spec, status = {} }: Job): object {
  const { selector: _, managedBy: __, template: ___, ...fields } = spec ?? { template: {} };
  const { startTime, completionTime, conditions = [], ...counters } = status;
  const shown = conditions.map(
    ({ lastProbeTime: _probe, lastTransitionTime: _transition, message = "", ...condition }) => ({
      ...condition,
      message: message.replaceAll(/\bsum(-\d)?-[a-z0-9]{5}\b/g, "<pod>"),
    }),
  );
  return {
    fields,
    counters,
    conditions: shown.sort((a, b) => (a.type < b.type ? -1 : 1)),
    hasStarted: startTime !== undefined,
    ends: completionTime !== undefined && startTime !== undefined && startTime <= completionTime,
  };
}

describe.concurrent("a whole Job shows what a Job of the member's own does", () => {
  test.each(ROWS)("%s", async (_, { spec, pod = stays("running"), steps, refused = [] }) => {
    const labels = { [DELEGATION_LABEL]: "annotated" };
    const clusters = [hostCluster(), memberCluster("west"), memberCluster("east")];
    const namespace = await freshNamespace(clusters, { labels, onFinished: afterFile });
    const { host, east } = clients();
    const ref = { namespace, name: "sum" };
    const body = {
      apiVersion: "batch/v1",
      kind: "Job",
      spec: { ...spec, template: template({ restartPolicy: "Never", terminationGracePeriodSeconds: 1 }, pod) },
    } as Job;
    const annotations = { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" };
    await host.create(jobs, { ...body, metadata: { ...ref, annotations } });
    await east.create(jobs, { ...body, metadata: ref });
    const patch = (client: ClusterClient, change: object): Promise<unknown> =>
      client.patch(jobs, ref, { type: "merge", body: { spec: change } });
    const find = async (client: ClusterClient): Promise<Job> => (await client.find(jobs, ref)) ?? {};
    for (const { change, until } of steps) {
      if (change !== undefined) await Promise.all([patch(host, change), patch(east, change)]);
      await eventuallyPasses(async () => {
        const [whole, direct] = [await find(host), await find(east)];
        expect(direct.status).toMatchObject(until);
        expect(comparable(whole)).toEqual(comparable(direct));
      });
    }
    for (const change of refused) {
      const answers = [host, east].map((client) => patch(client, change).then(() => "taken", refusalOf));
      const [whole, direct] = await Promise.all(answers);
      expect(direct).not.toBe("taken");
      expect(whole).toEqual(direct);
    }
  });
});

function refusalOf(error: unknown): object {
  if (!isKubeError(error)) throw error;
  return { status: error.status, fields: error.details?.causes.map(({ field }) => field) };
}
