import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ContainerStatus, KubeObject, PodCondition, PodStatus } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { withoutMergedKeys } from "../../src/pods/label-keys.ts";
import { containerStatus } from "../support/builders/pod.ts";
import {
  barePod,
  cronJob,
  ends,
  job,
  replicated,
  replicationController,
  stays,
  WEB_LABELS,
} from "../support/builders/workload.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { type AtRest, condition, jobRuns, phase, ready, scheduled } from "../support/harness/at-rest.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { comparable, comparableTasks, type NamespaceState, readState } from "../support/harness/final-state.ts";
import { hostNodeWrites } from "../support/harness/host-nodes.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { change, createIn } from "../support/harness/workloads.ts";

// Every manifest runs twice, unchanged: on a plain cluster, and on the host in a namespace with mode all.
// Both must look the same.

useLegation();
const clients = useClients();

/** A side of the comparison. */
interface Side {
  readonly cluster: Cluster;
  readonly client: ClusterClient;
  readonly namespace: string;
}

interface Step {
  /** An action on the workload; default: none. */
  readonly act?: (side: Side) => Promise<unknown>;
  /** Reports whether the workload is at rest. */
  readonly until: AtRest;
}

interface Row {
  readonly name: string;
  readonly manifests: readonly KubeObject[];
  readonly steps: readonly Step[];
}

const time = "2026-01-02T03:04:05Z";

function readiness(status: "True" | "False", reason?: string): PodCondition[] {
  const because = reason === undefined ? {} : { reason };
  return ["Ready", "ContainersReady"].map((type) => ({ type, status, lastTransitionTime: time, ...because }));
}

function terminated(exitCode: number, reason: string): ContainerStatus {
  return containerStatus({ state: { terminated: { exitCode, reason, startedAt: time, finishedAt: time } } });
}

function crashing(restartCount: number): ContainerStatus {
  const { state = {} } = terminated(137, "OOMKilled");
  const waiting = { reason: "CrashLoopBackOff", message: "back-off 10s restarting failed container=main" };
  return containerStatus({ restartCount, lastState: state, state: { waiting }, started: false });
}

/** Writes a status where the pod runs, as the kubelet there would. */
function asKubelet(status: Partial<PodStatus>): (side: Side) => Promise<void> {
  return async ({ client, namespace }) => {
    const [pod] = await podsOf(client, namespace);
    if (pod === undefined) throw new Error(`${namespace} has no pod`);
    const member = { "legation-west": clients().west, "legation-east": clients().east }[pod.spec?.nodeName ?? ""];
    const { name } = pod.metadata;
    const patch = { type: "strategic", body: { status } } as const;
    await (member ?? client).patch(pods, { namespace, name }, patch, { subresource: "status" });
  };
}

// The API server writes the pod's own value of the key into the selector, and a second one would contradict that.
const OTHERS = {
  labelSelector: { matchExpressions: [{ key: "tier", operator: "DoesNotExist" }] },
  matchLabelKeys: Object.keys(WEB_LABELS),
};

const sidecar = { name: "sidecar", image: "sidecar:1", restartPolicy: "Always" };
const setup = { name: "setup", image: "setup:1", command: ["setup"] };

/** Reports whether the CronJob has created a Job. */
const hasFired: AtRest = ({ workloads }) =>
  workloads.some(({ status, kind }) => kind === "CronJob" && status?.lastScheduleTime !== undefined);

/** Reports whether that Job has succeeded and the CronJob knows. */
const hasSucceeded: AtRest = (state) =>
  condition("Complete")(state) &&
  state.workloads.some(
    ({ status, kind }) => kind === "CronJob" && status?.lastSuccessfulTime !== undefined && status.active === undefined,
  );

const rows: readonly Row[] = [
  {
    // First, since it waits for a minute to begin: the others go on meanwhile.
    name: "a CronJob that is due",
    manifests: [cronJob({ completions: 2 }, ends(0), "* * * * *")],
    steps: [
      { until: hasFired },
      {
        // A single Job is enough, however long it takes.
        act: ({ client, namespace }) => change(client, namespace, ["CronJob", "web"], { spec: { suspend: true } }),
        until: hasSucceeded,
      },
    ],
  },
  {
    name: "a parallel Job",
    manifests: [job({ completions: 6, parallelism: 3 }, ends(0))],
    steps: [{ until: condition("Complete") }],
  },
  {
    name: "an Indexed Job",
    manifests: [job({ completions: 4, parallelism: 2, completionMode: "Indexed" }, ends(0))],
    steps: [{ until: condition("Complete") }],
  },
  {
    name: "a Job that fails until its backoffLimit",
    manifests: [job({ backoffLimit: 1 }, ends(3))],
    steps: [{ until: condition("Failed") }],
  },
  {
    name: "a Job that a podFailurePolicy fails by exit code",
    manifests: [
      job(
        {
          completions: 3,
          parallelism: 1,
          backoffLimit: 6,
          podFailurePolicy: {
            rules: [{ action: "FailJob", onExitCodes: { containerName: "main", operator: "In", values: [42] } }],
          },
        },
        ends(42),
      ),
    ],
    steps: [{ until: condition("Failed") }],
  },
  {
    name: "an Indexed Job whose indexes fail by backoffLimitPerIndex",
    manifests: [job({ completions: 3, parallelism: 3, completionMode: "Indexed", backoffLimitPerIndex: 0 }, ends(1))],
    steps: [{ until: condition("Failed") }],
  },
  {
    name: "a Job that runs longer than its activeDeadlineSeconds",
    manifests: [job({ activeDeadlineSeconds: 3, parallelism: 2 }, stays("running"))],
    steps: [{ until: condition("Failed") }],
  },
  {
    name: "a Job that is suspended while it runs, and resumed",
    manifests: [job({ parallelism: 2, completions: 2 }, stays("running"))],
    steps: [
      { until: jobRuns(2) },
      {
        act: ({ client, namespace }) => change(client, namespace, ["Job", "web"], { spec: { suspend: true } }),
        until: (state) => condition("Suspended")(state) && state.pods.length === 0,
      },
      {
        act: ({ client, namespace }) => change(client, namespace, ["Job", "web"], { spec: { suspend: false } }),
        until: jobRuns(2),
      },
    ],
  },
  {
    name: "a CronJob's Job",
    manifests: [cronJob({ completions: 2 }, ends(0))],
    steps: [
      {
        act: ({ cluster, namespace }) =>
          kubectl(cluster, ["-n", namespace, "create", "job", "now", "--from=cronjob/web"]),
        until: condition("Complete"),
      },
    ],
  },
  {
    name: "a StatefulSet of 3",
    manifests: [replicated("StatefulSet", 3, { serviceName: "web" })],
    steps: [{ until: ready(3) }],
  },
  {
    name: "a StatefulSet that is scaled down",
    manifests: [replicated("StatefulSet", 3, { serviceName: "web" })],
    steps: [
      { until: ready(3) },
      {
        act: ({ client, namespace }) => change(client, namespace, ["StatefulSet", "web"], { spec: { replicas: 1 } }),
        until: ready(1),
      },
    ],
  },
  {
    name: "a Deployment",
    manifests: [replicated("Deployment", 4)],
    steps: [{ until: ready(4) }],
  },
  {
    name: "a Deployment that is updated",
    manifests: [replicated("Deployment", 3)],
    steps: [
      { until: ready(3) },
      {
        act: ({ client, namespace }) =>
          change(client, namespace, ["Deployment", "web"], {
            spec: { template: { spec: { containers: [{ name: "main", image: "main:2" }] } } },
          }),
        until: ready(3, "main:2"),
      },
    ],
  },
  {
    name: "a ReplicationController",
    manifests: [replicationController(2)],
    steps: [{ until: ready(2) }],
  },
  {
    name: "a bare pod that succeeds",
    manifests: [barePod({ restartPolicy: "Never" }, ends(0))],
    steps: [{ until: phase("Succeeded") }],
  },
  {
    name: "a bare pod that fails",
    manifests: [barePod({ restartPolicy: "Never" }, ends(3))],
    steps: [{ until: phase("Failed") }],
  },
  {
    name: "a bare pod that never starts",
    manifests: [barePod({}, stays("pending"))],
    steps: [{ until: scheduled }],
  },
  {
    name: "a pod with an init container, a sidecar and a readiness gate",
    manifests: [
      barePod({ initContainers: [setup, sidecar], readinessGates: [{ conditionType: "example.com/ready" }] }),
    ],
    steps: [{ until: phase("Running") }],
  },
  {
    name: "a pod whose container crashes again and again",
    manifests: [barePod({}, stays("pending"))],
    steps: [
      { until: scheduled },
      {
        act: asKubelet({ phase: "Running", conditions: readiness("True"), containerStatuses: [crashing(1)] }),
        until: phase("Running"),
      },
      {
        act: asKubelet({ conditions: readiness("False", "ContainersNotReady"), containerStatuses: [crashing(4)] }),
        until: ({ pods }) => pods.every(({ status }) => status?.containerStatuses?.[0]?.restartCount === 4),
      },
    ],
  },
  {
    name: "a pod that kubelet ends after its activeDeadlineSeconds",
    manifests: [barePod({ activeDeadlineSeconds: 60 })],
    steps: [
      { until: phase("Running") },
      {
        act: asKubelet({
          phase: "Failed",
          reason: "DeadlineExceeded",
          message: "Pod was active on the node longer than the specified deadline",
          conditions: readiness("False", "PodFailed"),
          containerStatuses: [terminated(137, "Error")],
        }),
        until: phase("Failed"),
      },
    ],
  },
  {
    name: "a Job whose podFailurePolicy does not count an eviction",
    manifests: [
      job(
        {
          backoffLimit: 0,
          podFailurePolicy: {
            rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }],
          },
        },
        stays("running"),
      ),
    ],
    steps: [
      { until: phase("Running") },
      {
        act: asKubelet({
          phase: "Failed",
          reason: "Evicted",
          message: "The node was low on resource: memory.",
          conditions: [
            { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" },
            ...readiness("False", "PodFailed"),
          ],
          containerStatuses: [terminated(137, "OOMKilled")],
        }),
        until: (state) => state.pods.length === 2 && jobRuns(1)(state),
      },
    ],
  },
  {
    name: "a pod with a priority class, a host name, volumes, tolerations and spreading of its own",
    manifests: [
      barePod({
        priorityClassName: "system-cluster-critical",
        automountServiceAccountToken: false,
        activeDeadlineSeconds: 3600,
        hostname: "web-host",
        subdomain: "web",
        volumes: [{ name: "scratch", emptyDir: {} }],
        tolerations: [{ key: "example.com/maintenance", operator: "Exists" }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: "kubernetes.io/hostname",
            whenUnsatisfiable: "ScheduleAnyway",
            labelSelector: { matchLabels: WEB_LABELS },
          },
        ],
      }),
    ],
    steps: [{ until: phase("Running") }],
  },
  {
    name: "a pod that is kept apart from others of its revision by label keys",
    manifests: [
      barePod({
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ ...OTHERS, topologyKey: "kubernetes.io/hostname" }],
          },
        },
        topologySpreadConstraints: [
          { ...OTHERS, maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "DoNotSchedule" },
        ],
      }),
    ],
    steps: [{ until: phase("Running") }],
  },
  {
    name: "a pod that waits behind a scheduling gate",
    manifests: [barePod({ schedulingGates: [{ name: "example.com/quota" }] })],
    steps: [{ until: phase("Pending") }],
  },
];

const opted: string[] = [];
let cleanUps: (() => Promise<void>)[] = [];
beforeAll(() => {
  cleanUps = [];
});
afterAll(async () => {
  await Promise.all(cleanUps.map((cleanUp) => cleanUp()));
});

async function sides(): Promise<{ plain: Side; delegating: Side }> {
  const onFinished = (cleanUp: () => Promise<void>): void => {
    cleanUps.push(cleanUp);
  };
  const plain = memberCluster("east");
  const host = hostCluster();
  const [direct, delegated] = await Promise.all([
    freshNamespace(plain, { prefix: "plain", onFinished }),
    freshNamespace(host, {
      prefix: "parity",
      labels: { "legation.dev/delegation": "all" },
      // Pods call with the identity of the cluster where they run, as on the plain cluster.
      annotations: { "legation.dev/api": "member" },
      onFinished,
    }),
  ]);
  opted.push(delegated);
  return {
    plain: { cluster: plain, client: clients().east, namespace: direct },
    delegating: { cluster: host, client: clients().host, namespace: delegated },
  };
}

async function play({ manifests, steps }: Row, side: Side): Promise<void> {
  const { client, namespace, cluster } = side;
  await createIn(client, namespace, manifests);
  for (const [index, { act, until }] of steps.entries()) {
    await act?.(side);
    let state: NamespaceState | undefined;
    await eventually(
      async () => {
        state = await readState(client, namespace);
        return until(state);
      },
      { timeoutMs: 90_000, intervalMs: 200, what: `step ${index + 1} on ${cluster.name}` },
    ).catch((error: unknown) => {
      throw new Error(
        `${error instanceof Error ? error.message : error}: ${JSON.stringify(state && comparable(state))}`,
      );
    });
  }
}

describe("the final state of a workload", () => {
  test.concurrent.each(rows)("is the same on the host as on a plain cluster: $name", async (row) => {
    const { plain, delegating } = await sides();
    await Promise.all([play(row, plain), play(row, delegating)]);
    let direct: NamespaceState | undefined;
    // Counters follow their pods, on both sides.
    await eventuallyPasses(async () => {
      direct = await readState(plain.client, plain.namespace);
      const delegated = await readState(delegating.client, delegating.namespace);
      expect(comparable(delegated)).toEqual(comparable(direct));
    });
    // The delegates themselves must equal the pods of the plain cluster, and not only their proxies.
    const ungated = (direct?.pods ?? []).filter(({ spec }) => spec?.schedulingGates === undefined);
    const { namespace } = delegating;
    const delegates = await Promise.all([clients().west, clients().east].map((client) => podsOf(client, namespace)));
    // Only selectors contain the label keys that an API server has written there.
    const wanted = withoutMergedKeys(ungated);
    expect(comparableTasks({ namespace, workloads: [], pods: delegates.flat() })).toEqual(
      comparableTasks({ namespace: plain.namespace, workloads: [], pods: wanted }),
    );
  });
});

describe("the host's own nodes", () => {
  test("never had any of these pods", async () => {
    expect(await hostNodeWrites(hostCluster(), new Set(opted))).toEqual([]);
  });
});
