import { describe, expect, test } from "vitest";
import { whyNotDelegated } from "../../../../src/cli/status/not-delegated.ts";
import { namespace } from "../plan/host.ts";

const annotated = namespace("team");
const all = namespace("team", { labels: { "legation.dev/delegation": "all" } });
const daemonSet = [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "log", uid: "d", controller: true }];
const replicaSet = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-abc", uid: "r", controller: true }];
const unreadable = { annotations: { "legation.dev/delegate": "yes" } };
const UNREADABLE = 'annotation legation.dev/delegate: "yes" is neither "true" nor "false"; write one of them';
const MAY_HAVE = "when the workload has it already, `legation status KIND NAME` says what carries it over";
const asks = { annotations: { "legation.dev/delegate": "true" } };

const LABEL = "kubectl label namespace team legation.dev/delegation=annotated";
const overflow = namespace("team", { labels: { "legation.dev/delegation": "overflow" } });
const WRITE =
  'write the annotation legation.dev/delegate: "true" on the workload; a bare pod or a Job has to be made anew with it';
const MADE_BEFORE =
  "made before delegation was asked for: delete them to have them made anew (a pod without a controller, create it again)";

test.each([
  [
    "its namespace has no label, whatever it asks for",
    asks,
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`, then make its pods anew`,
  ],
  [
    "its namespace has no label, and it asks for nothing",
    {},
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`, then ${WRITE}`,
  ],
  [
    "its namespace's label is no mode",
    asks,
    namespace("team", { labels: { "legation.dev/delegation": "true" } }),
    `namespace team has the label legation.dev/delegation: "true", which is no mode: write \`${LABEL} --overwrite\`, then make its pods anew`,
  ],
  [
    "its namespace serves the cluster itself",
    asks,
    namespace("kube-system", { labels: {} }),
    "namespace kube-system serves this cluster itself, and what runs there is never delegated",
  ],
  ["it asks for nothing", {}, annotated, `nothing asks for it: ${WRITE}`],
  [
    "what should be an annotation is a label",
    { labels: { "legation.dev/clusters": "west" } },
    annotated,
    "legation.dev/clusters is a label there, and says something only as an annotation: write it under metadata.annotations",
  ],
  [
    "it declines",
    { annotations: { "legation.dev/delegate": "false" } },
    all,
    'the annotation legation.dev/delegate there is "false"',
  ],
  ["a DaemonSet made it", { ownerReferences: daemonSet }, all, "pods of DaemonSets belong to nodes of this cluster"],
  [
    "it is another host's delegate",
    { labels: { "legation.dev/host": "h" } },
    all,
    "the label legation.dev/host is there, so another host delegates to this cluster: its delegates are never delegated",
  ],
  [
    "it stands for a static pod",
    { annotations: { "kubernetes.io/config.mirror": "x" } },
    all,
    "static pods, which a kubelet of this cluster runs by itself, are never delegated",
  ],
  [
    "its author gave it a node in overflow mode",
    { managedFields: [{ fieldsV1: { "f:spec": { "f:nodeName": {} } } }] },
    overflow,
    "spec.nodeName was written by the author: in overflow mode such pods are never delegated",
  ],
  [
    "it was made before the mode, and a scheduler gave it a node",
    { managedFields: [{ fieldsV1: { "f:spec": { "f:containers": {} } } }] },
    overflow,
    MADE_BEFORE,
  ],
  ["it was made before anybody asked", asks, annotated, MADE_BEFORE],
  [
    "it asks for nothing, and its workload may",
    { ownerReferences: replicaSet },
    annotated,
    `nothing asks for it: ${WRITE}; ${MAY_HAVE}`,
  ],
  [
    "its namespace has no label, and its workload may ask",
    { ownerReferences: replicaSet },
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`, then ${WRITE}; ${MAY_HAVE}`,
  ],
  [
    "its namespace has no label, and it declines",
    { annotations: { "legation.dev/delegate": "false" } },
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`, then write the annotation legation.dev/delegate: "true" in place of "false"`,
  ],
  [
    "its namespace has no label, and what should be an annotation is one",
    { labels: { "legation.dev/clusters": "west" } },
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`, then write legation.dev/clusters under metadata.annotations: it is a label there`,
  ],
  ["its annotation cannot be read", unreadable, annotated, UNREADABLE],
  ["its annotation cannot be read where all are delegated", unreadable, all, UNREADABLE],
  ["its namespace may not be read", {}, undefined, "its namespace, workload or itself did not ask for delegation"],
])("a pod is not delegated since %s", (_case, metadata, own, why) => {
  expect(whyNotDelegated(metadata, own)).toBe(why);
});

describe("when annotations are on the workload, but not in its pod template", () => {
  const job = { apiVersion: "apps/v1", uid: "u", controller: true };
  const says = (kind: string, more: object = {}): string =>
    whyNotDelegated({}, annotated, { kind, name: "web", metadata: { ...asks, ...more }, template: {} });

  test.each([
    ["Deployment", {}, "write `kubectl rollout restart deployment web -n team`"],
    ["StatefulSet", {}, "write `kubectl rollout restart statefulset web -n team`"],
    ["Job", {}, "a Job's template cannot change, so delete it and make it again"],
    [
      "CronJob",
      {},
      'write `kubectl annotate cronjob web -n team touched="$(date)" --overwrite`; its next run has them',
    ],
    ["ReplicaSet", {}, "--overwrite`, then delete its pods"],
    [
      "ReplicaSet",
      { ownerReferences: [{ ...job, kind: "Deployment", name: "shop" }] },
      "write `kubectl rollout restart deployment shop -n team`",
    ],
    [
      "Job",
      { ownerReferences: [{ ...job, kind: "Workflow", name: "w" }] },
      "Workflow w makes that template: write them into its own pod template",
    ],
  ])("says what brings those of a %s there (%#)", (kind, more, advice) => {
    const said = says(kind, more);
    expect(said).toContain(`the annotations of ${kind} web are not in its pod template: `);
    expect(said).toContain(advice);
  });

  test("says so, too, when the namespace has to be labelled first", () => {
    const workload = { kind: "Deployment", name: "web", metadata: asks, template: {} };
    const said = whyNotDelegated({}, namespace("team", { labels: {} }), workload);
    expect(said).toContain(`${LABEL}\`, then write \`kubectl rollout restart deployment web -n team\``);
  });

  test.each([
    ["workload", { metadata: unreadable, template: {} }],
    ["template", { template: unreadable }],
  ])("says what is wrong with an annotation of its %s that cannot be read, and what to write", (_, parts) => {
    const workload = { kind: "Deployment", name: "web", ...parts };
    expect(whyNotDelegated({}, annotated, workload)).toBe(UNREADABLE);
    expect(whyNotDelegated({}, namespace("team", { labels: {} }), workload)).toContain(
      `then put right what cannot be read: ${UNREADABLE}`,
    );
  });

  test("an annotation on the pod but not in its template does not reach the next pods", () => {
    const workload = { kind: "ReplicaSet", name: "web", metadata: {}, template: {} };
    expect(whyNotDelegated(asks, annotated, workload)).toBe(`nothing asks for it: ${WRITE}`);
    expect(whyNotDelegated(asks, namespace("team", { labels: {} }), workload)).toContain(`then ${WRITE}`);
    const declining = { annotations: { "legation.dev/delegate": "false" } };
    expect(whyNotDelegated({}, all, { ...workload, template: declining })).toBe(
      'the annotation legation.dev/delegate there is "false"',
    );
  });

  test.each([
    ["all", all, {}],
    ["annotated", annotated, asks],
  ])("what declines on a pod alone is told where its template is delegated in mode %s", (_mode, own, template) => {
    const declining = { annotations: { "legation.dev/delegate": "false" } };
    const says = (kind: string): string => whyNotDelegated(declining, own, { kind, name: "web", template });
    const alone = 'the annotation legation.dev/delegate is "false" there, and not in the pod template of';
    const unless = "unless something writes it on pods (a policy, an admission webhook), which is to leave these out";
    expect(says("ReplicaSet")).toBe(`${alone} ReplicaSet web: delete them to have them made anew, ${unless}`);
    expect(says("CronJob")).toBe(`${alone} CronJob web: its next run is delegated, ${unless}`);
  });

  test("a run of a CronJob that was made before that asked makes its pods anew as they are", () => {
    const workload = { kind: "CronJob", name: "web", metadata: asks, template: asks };
    const NEXT_RUN =
      "this run's Job was made before delegation was asked for, and makes its pods anew as they are: the next run of CronJob web is delegated";
    expect(whyNotDelegated({}, annotated, workload)).toBe(NEXT_RUN);
    expect(whyNotDelegated({}, namespace("team", { labels: {} }), workload)).toContain("then wait for its next run");
    // The Job asks as well, or need not: only the pod is older than the namespace's label.
    expect(whyNotDelegated(asks, annotated, workload)).toBe(MADE_BEFORE);
    expect(whyNotDelegated({}, all, workload)).toBe(MADE_BEFORE);
  });

  test("a template that has them by now is said to be newer than the pod", () => {
    const workload = { kind: "ReplicaSet", name: "web", metadata: asks, template: asks };
    expect(whyNotDelegated({}, annotated, workload)).toBe(MADE_BEFORE);
    expect(whyNotDelegated(unreadable, annotated, workload)).toBe(MADE_BEFORE);
  });
});
