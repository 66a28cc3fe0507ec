import { writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { CLUSTERS_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import { decide } from "../../src/controllers/delegation/decide.ts";
import type { Action } from "../../src/controllers/delegation/decision/decision.ts";
import type { DecisionRecord } from "../../src/controllers/delegation/decision/redact.ts";
import { pods } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import { apiRequest } from "../support/clusters/api-request.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podsOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { scheduleTimeout } from "../support/harness/schedule-timeout.ts";
import { eventually } from "../support/harness/wait.ts";

/** The files that `test/unit/controllers/delegation/replay.test.ts` replays. They are written anew with LEGATION_RECORD=1. */
const FOLDER = new URL("../unit/controllers/delegation/recorded/", import.meta.url);

interface Moment {
  readonly file: string;
  /** The pod's name, or the common beginning of several. */
  readonly pod: string;
  readonly holds: (record: DecisionRecord) => boolean;
}

const has = ({ decision }: DecisionRecord, type: Action["type"]): boolean =>
  decision.actions.some((action) => action.type === type);

const MOMENTS: readonly Moment[] = [
  { file: "pod-is-placed-in-the-member-that-it-names", pod: "web", holds: (record) => has(record, "create") },
  { file: "pod-is-bound-once-its-delegate-has-a-node", pod: "web", holds: (record) => has(record, "bind") },
  {
    file: "delegate-that-runs-is-shown-on-the-host",
    pod: "web",
    holds: (record) => record.decision.outcome === "Running" && has(record, "status"),
  },
  {
    file: "member-that-refused-rests-for-30-seconds",
    pod: "refused",
    holds: (record) => record.view.memory.attempts.west?.refusal !== undefined && has(record, "report"),
  },
  {
    file: "scheduler-without-a-node-loses-the-pod",
    pod: "unschedulable",
    holds: (record) => has(record, "noteRefusal"),
  },
  {
    file: "delegate-that-vanished-before-it-ran-is-created-again",
    pod: "vanishing",
    holds: (record) => record.view.proxy?.spec?.nodeName !== undefined && has(record, "create"),
  },
  {
    file: "uncertain-create-keeps-the-pod-from-other-members",
    pod: "doubted",
    holds: (record) => record.view.memory.uncertain !== undefined && !has(record, "bind"),
  },
  {
    file: "uncertain-pod-is-bound-to-the-lost-members-node",
    pod: "doubted",
    holds: (record) => record.view.members.some(({ reachable }) => !reachable) && has(record, "bind"),
  },
  {
    file: "pod-of-a-lost-member-is-not-ready",
    pod: "web",
    holds: (record) => record.decision.outcome === "Unreachable" && has(record, "status"),
  },
  { file: "deleted-pod-has-its-delegate-deleted", pod: "web", holds: (record) => has(record, "delete") },
  { file: "pod-is-released-after-its-end", pod: "web", holds: (record) => has(record, "removeFinalizer") },
];

const PATIENT = { timeoutMs: 90_000, intervalMs: 250 };

const legation = useLegation({ controllerFlags: ["--log-level=debug"] });
useQuickProbes();
const clients = useClients();

/** The decisions on a namespace's pods, as the controller logged them. */
function decisionsIn(namespace: string): (DecisionRecord & { readonly pod: string })[] {
  return legation()
    .controller.log()
    .split("\n")
    .filter(
      (line) => line.includes('"msg":"decided"') && line.includes(`"object":"${namespace}/`) && line.endsWith("}"),
    )
    .map((line) => JSON.parse(line))
    .map(({ object, now, view, decision }) => ({ pod: object.slice(namespace.length + 1), now, view, decision }));
}

test("replays the controller's decisions on pods' lives from its log", async () => {
  const { host, west } = clients();
  const cluster = memberCluster("west");
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([hostCluster(), cluster, memberCluster("east")], { prefix: "views", labels });
  onTestFinished(await scheduleTimeout(host, 3));
  const inWest = { [CLUSTERS_ANNOTATION]: "west" };
  const create = (name: string, annotations: Record<string, string> = {}, spec: object = {}): Promise<unknown> =>
    host.create(pods, delegatedPod(namespace, name, { annotations, spec }));

  await create("web", inWest);
  await podThat(host, namespace, "web", inPhase("Running"));
  // They open the connections on which later creates are sent without an answer.
  await Promise.all(numbered("other", 10).map((name) => create(name, inWest)));

  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "none" } } };
  await create(
    "unschedulable",
    {},
    {
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
    },
  );
  await waitingFor(host, namespace, "unschedulable", "nodes are available");

  await create("vanishing", { ...inWest, [KWOK_ANNOTATIONS.outcome]: "pending" });
  const bound = await podThat(host, namespace, "vanishing", ({ spec }) => spec?.nodeName !== undefined);
  const first = bound.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  await west.delete(pods, { namespace, name: "vanishing" }, { gracePeriodSeconds: 0 });
  await podThat(
    host,
    namespace,
    "vanishing",
    ({ metadata }) => ![undefined, first].includes(metadata?.annotations?.[DELEGATE_UID_ANNOTATION]),
  );

  const doubted = async (): Promise<readonly Pod[]> =>
    (await podsOf(host, namespace)).filter(({ metadata }) => metadata.name.startsWith("doubted-"));
  try {
    await cluster.proxy.deaf("answers");
    await Promise.all(numbered("doubted", 20).map((name) => create(name)));
    await eventually(async () => (await doubted()).some(({ spec }) => spec?.nodeName === "legation-west"), PATIENT);
    await podThat(host, namespace, "web", (pod) => conditionOf(pod, "Ready")?.status === "False");
  } finally {
    await cluster.proxy.heal();
  }
  await eventually(async () => (await doubted()).every(inPhase("Running")), PATIENT);

  const quotas = `/api/v1/namespaces/${namespace}/resourcequotas`;
  const body = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "one" }, spec: { hard: { pods: "1" } } };
  expect((await apiRequest(cluster, "POST", quotas, { body })).status).toBe(201);
  await eventually(async () => (await apiRequest(cluster, "GET", `${quotas}/one`)).text.includes('"used":{'));
  await create("refused", inWest);
  await waitingFor(host, namespace, "refused", "exceeded quota");

  await host.delete(pods, { namespace, name: "web" });
  await podGone(host, namespace, "web");

  // The log arrives a little later, from another thread.
  const missing = (): string[] =>
    MOMENTS.filter(
      ({ pod, holds }) => !decisionsIn(namespace).some((one) => one.pod.startsWith(pod) && holds(one)),
    ).map(({ file }) => file);
  await eventually(() => missing().length === 0, { timeoutMs: 30_000 }).catch(() => expect(missing()).toEqual([]));
  const decisions = decisionsIn(namespace);
  for (const { pod, now, view, decision } of decisions) {
    expect(decide(view, now), `${pod}: ${JSON.stringify(view)}`).toEqual(decision);
  }
  if (process.env.LEGATION_RECORD !== "1") return;
  for (const { file, pod, holds } of MOMENTS) {
    const { now, view, decision } = decisions.find((one) => one.pod.startsWith(pod) && holds(one)) ?? {};
    writeFileSync(new URL(`${file}.json`, FOLDER), `${JSON.stringify({ now, view, decision }, null, 2)}\n`);
  }
});
