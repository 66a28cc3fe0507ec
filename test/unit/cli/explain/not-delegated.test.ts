import { describe, expect, test } from "vitest";
import { whyNotDelegated } from "../../../../src/cli/explain/not-delegated.ts";
import { namespace } from "../simulation/host.ts";

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
  'write the annotation legation.dev/delegate: "true" on the workload; create a bare pod or a Job anew with it';
const MADE_BEFORE =
  "created before delegation was asked for: delete them, and their workload creates them anew (create a bare pod or a Job " +
  "anew yourself; a CronJob's next run is delegated; in overflow mode a pod whose author wrote spec.nodeName never is)";

test.each([
  [
    "its namespace has no label, whatever it asks for",
    asks,
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`; create its pods anew`,
  ],
  [
    "its namespace has no label, and it asks for nothing",
    {},
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`; nothing asks for it: ${WRITE}`,
  ],
  [
    "its namespace's label is no mode",
    asks,
    namespace("team", { labels: { "legation.dev/delegation": "true" } }),
    `namespace team has the label legation.dev/delegation: "true", which is no mode: write \`${LABEL} --overwrite\`; create its pods anew`,
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
  ["it was made before its namespace asked for overflow", {}, overflow, MADE_BEFORE],
  ["it was made before it could be delegated", asks, annotated, MADE_BEFORE],
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
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`; nothing asks for it: ${WRITE}; ${MAY_HAVE}`,
  ],
  [
    "its namespace has no label, and it declines",
    { annotations: { "legation.dev/delegate": "false" } },
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`; the annotation legation.dev/delegate there is "false"`,
  ],
  [
    "its namespace has no label, and what should be an annotation is one",
    { labels: { "legation.dev/clusters": "west" } },
    namespace("team", { labels: {} }),
    `namespace team has no label legation.dev/delegation: write \`${LABEL}\`; legation.dev/clusters is a label there, and says something only as an annotation: write it under metadata.annotations`,
  ],
  ["its annotation cannot be read", unreadable, annotated, UNREADABLE],
  ["its annotation cannot be read where all are delegated", unreadable, all, UNREADABLE],
  [
    "its namespace may not be read",
    {},
    undefined,
    "neither the pod nor its workload or namespace asked for delegation",
  ],
])("says why a pod is not delegated: %s", (_case, metadata, own, why) => {
  expect(whyNotDelegated(metadata, own)).toBe(why);
});

describe("a workload whose annotations are not in its pod template", () => {
  const job = { apiVersion: "apps/v1", uid: "u", controller: true };
  const says = (kind: string, more: object = {}): string =>
    whyNotDelegated({}, annotated, { kind, name: "web", metadata: { ...asks, ...more }, template: {} });

  test.each([
    ["Deployment", {}, 'write `kubectl annotate deployment web -n team touched="$(date)" --overwrite`'],
    ["Job", {}, "a Job's template cannot change, so delete the Job and create it anew"],
    ["CronJob", {}, "a CronJob's next run has them"],
    ["ReplicaSet", {}, "--overwrite`, then delete pods that stay"],
    [
      "ReplicaSet",
      { ownerReferences: [{ ...job, kind: "Deployment", name: "shop" }] },
      "write `kubectl annotate deployment shop -n team ",
    ],
    [
      "Job",
      { ownerReferences: [{ ...job, kind: "Workflow", name: "w" }] },
      "Workflow w makes that template: write them into its own pod template",
    ],
    ["Job", { ownerReferences: [{ ...job, kind: "toString", name: "w" }] }, "toString w makes that template"],
  ])("says how those of a %s get there (%#)", (kind, more, advice) => {
    const said = says(kind, more);
    expect(said).toContain(`the annotations of ${kind} web are not in its pod template: `);
    expect(said).toContain(advice);
  });

  test("says how they get there when the namespace has to be labelled first, too", () => {
    const workload = { kind: "Deployment", name: "web", metadata: asks, template: {} };
    const said = whyNotDelegated({}, namespace("team", { labels: {} }), workload);
    expect(said).toContain(
      `${LABEL}\`; the annotations of Deployment web are not in its pod template: write \`kubectl annotate deployment web -n team `,
    );
  });

  test.each([
    ["workload", { metadata: unreadable, template: {} }],
    ["template", { template: unreadable }],
  ])("names an annotation of its %s that cannot be read, and what to write", (_, parts) => {
    const workload = { kind: "Deployment", name: "web", ...parts };
    expect(whyNotDelegated({}, annotated, workload)).toBe(UNREADABLE);
    expect(whyNotDelegated({}, namespace("team", { labels: {} }), workload)).toContain(`; ${UNREADABLE}`);
  });

  test("does not count an annotation that only the pod has", () => {
    const workload = { kind: "ReplicaSet", name: "web", metadata: {}, template: {} };
    expect(whyNotDelegated(asks, annotated, workload)).toBe(`nothing asks for it: ${WRITE}`);
    expect(whyNotDelegated(asks, namespace("team", { labels: {} }), workload)).toContain(
      `; nothing asks for it: ${WRITE}`,
    );
    const declining = { annotations: { "legation.dev/delegate": "false" } };
    expect(whyNotDelegated({}, all, { ...workload, template: declining })).toBe(
      'the annotation legation.dev/delegate there is "false"',
    );
  });

  test.each([
    ["all", all, {}],
    ["annotated", annotated, asks],
  ])("names an annotation that declines on a pod alone, in mode %s", (_mode, own, template) => {
    const declining = { annotations: { "legation.dev/delegate": "false" } };
    expect(whyNotDelegated(declining, own, { kind: "ReplicaSet", name: "web", template })).toBe(
      'the annotation legation.dev/delegate there is "false"',
    );
  });

  test("says that the next run of a CronJob is delegated whose template asks", () => {
    const workload = { kind: "CronJob", name: "web", metadata: asks, template: asks };
    expect(whyNotDelegated({}, annotated, workload)).toBe(MADE_BEFORE);
    expect(whyNotDelegated({}, namespace("team", { labels: {} }), workload)).toContain("; create its pods anew");
    expect(whyNotDelegated({}, all, workload)).toBe(MADE_BEFORE);
  });

  test("says that the pod is older than a template that has them", () => {
    const workload = { kind: "ReplicaSet", name: "web", metadata: asks, template: asks };
    expect(whyNotDelegated({}, annotated, workload)).toBe(MADE_BEFORE);
    expect(whyNotDelegated(unreadable, annotated, workload)).toBe(MADE_BEFORE);
  });
});
