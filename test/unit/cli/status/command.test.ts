import { beforeEach, expect, test } from "vitest";
import type { KubeObject, ObjectMeta, Stored } from "../../../../src/api/kubernetes.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod, runningStatus } from "../../../support/builders/pod.ts";
import { cronJob, job, replicated, template } from "../../../support/builders/workload.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, type RecordedSession, recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";

/** Objects of the host by resource, beside its members east and west. */
type Objects = Record<string, readonly object[]>;

let objects: Objects;
/** Resources that the account may not list. */
let forbidden: readonly string[];
let session: RecordedSession;
beforeEach(() => {
  const { clusters, nodes, namespaces } = host({ east: {}, west: {} });
  forbidden = [];
  objects = { clusters, nodes, namespaces };
  const list = async <T extends KubeObject>({ plural }: Resource<T>): Promise<Stored<T>[]> => {
    if (forbidden.includes(plural))
      throw kubeError("Forbidden", "", { cluster: "host", verb: "list", resource: plural });
    return (objects[plural] ?? []) as Stored<T>[];
  };
  const client = fakeClient({
    raw: async () => ({ groups: [] }),
    list: async (resource) => ({ items: await list(resource), resourceVersion: "1", size: 0 }),
    find: async (resource, { name }) => (await list(resource)).find(({ metadata }) => metadata.name === name),
  });
  session = recordedSession({ connect: async () => connection(client, { namespace: "team" }) });
});
function stored(object: KubeObject, more: object = {}, metadata: Partial<ObjectMeta> = {}): object {
  const own = { name: "web", namespace: "team", uid: "web", resourceVersion: "1" };
  const annotations = { "legation.dev/delegate": "true" };
  return { ...object, ...more, metadata: { ...object.metadata, annotations, ...own, ...metadata } };
}

/** A workload that asks for delegation, as admission writes it into the template. */
function deployment(replicas: number, spec: object = {}): object {
  const asking = template(spec, { "legation.dev/delegate": "true" });
  return stored(replicated("Deployment", replicas, { template: asking }));
}

function run(...args: string[]): Promise<number> {
  return runProgram(["status", ...args], session, "1.2.3");
}

const heading = (): string[] => session.out.join("").match(/^\S+ team\/.*$/gm) ?? [];

test("sends one more pod to the member of its claim", async () => {
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const claim = (cluster: string): object => ({
    metadata: { name: "data", namespace: "team", uid: "data", annotations: { "legation.dev/cluster": cluster } },
  });
  for (const home of ["west", "east"]) {
    objects = { ...objects, deployments: [deployment(1, { volumes })], persistentvolumeclaims: [claim(home)] };
    expect(await run("deployment", "web")).toBe(0);
    expect(session.out.join("")).toContain(`one more pod would go to ${home}`);
  }
  expect(session.out.join("")).toContain("PersistentVolumeClaim data, which the pod needs, is in west");
});

test("plans the next pod of a StatefulSet with a claim that does not exist yet", async () => {
  const volumeClaimTemplates = [{ metadata: { name: "data" } }];
  const asking = template({}, { "legation.dev/delegate": "true" });
  objects = {
    ...objects,
    statefulsets: [stored(replicated("StatefulSet", 1, { template: asking, volumeClaimTemplates }))],
  };
  expect(await run("statefulset", "web")).toBe(0);
  expect(session.out.join("")).toContain("one more pod would go to east");
});

test("ignores events of an earlier CronJob run and of a suspended Job", async () => {
  const event = (name: string): object => ({
    metadata: {},
    reason: "FailedCreate",
    involvedObject: { kind: "Job", name },
    message: "exceeded quota",
    lastTimestamp: "2026-01-01T00:00:00Z",
  });
  const once = (spec: object, name: string): object => stored(job(spec, {}), {}, { name, uid: name });
  const active = (...names: string[]): object => ({ status: { active: names.map((name) => ({ name })) } });
  const show = async (kind: string, name: string, parts: Objects): Promise<string> => {
    objects = { ...objects, ...parts };
    session.out.length = 0;
    expect(await run(kind, name)).toBe(0);
    return session.out.join("");
  };
  const events = [event("web-1"), event("halted")];
  const jobs = [once({ suspend: true }, "halted"), once({}, "web-1"), once({}, "web-2")];
  const trouble = "1 more cannot be created: exceeded quota (since 2026-01-01T00:00:00Z, says Job web-1)";

  expect(await show("cronjob", "web", { events, jobs, cronjobs: [stored(cronJob({}, {}))] })).not.toContain("trouble");
  expect(heading()).toEqual(["CronJob team/web: 0 wanted, 0 there, 0 ready"]);
  expect(await show("cronjob", "web", { cronjobs: [stored(cronJob({}, {}), active("web-2"))] })).not.toContain(
    "trouble",
  );
  expect(heading()).toEqual(["CronJob team/web: 1 wanted, 0 there, 0 ready"]);
  expect(await show("cronjob", "web", { cronjobs: [stored(cronJob({}, {}), active("web-1"))] })).toContain(trouble);
  expect(await show("job", "halted", {})).not.toContain("trouble");
  expect(await show("job", "web-1", {})).toContain(trouble);
});

test("names the refusal of a CronJob's Job until a later run has begun", async () => {
  const events = [
    {
      metadata: {},
      reason: "FailedCreate",
      involvedObject: { kind: "CronJob", name: "web" },
      message: "Error creating job: exceeded quota",
      lastTimestamp: "2026-01-01T00:00:00Z",
    },
  ];
  const trouble =
    "its Job cannot be created: Error creating job: exceeded quota (since 2026-01-01T00:00:00Z, says CronJob web)";
  const began = (lastScheduleTime: string): object => stored(cronJob({}, {}), { status: { lastScheduleTime } });
  for (const [cron, troubled] of [
    [stored(cronJob({}, {})), true],
    [began("2025-12-31T23:00:00Z"), true],
    [began("2026-01-01T01:00:00Z"), false],
    // A refused request is retried: the time of a run is when it was due.
    [stored(cronJob({}, {}), { status: { lastSuccessfulTime: "2026-01-01T00:00:05Z" } }), false],
  ] as const) {
    objects = { ...objects, events, cronjobs: [cron] };
    session.out.length = 0;
    expect(await run("cronjob", "web")).toBe(0);
    expect(session.out.join("").includes(trouble)).toBe(troubled);
  }
});

test("fails with a remedy for a workload that is not on the host", async () => {
  expect(await run("deployment", "web")).toBe(1);
  expect(session.err.join("")).toContain("Deployment team/web: is not on the host");
  expect(session.err.join("")).toContain("check its name and namespace (-n)");
});

test.each([
  [["deployment/web"]],
  [["deploy", "web"]],
  [["deployments", "web", "-n", "team"]],
  [["deploy/web", "-n", "team"]],
  [["Deployment/web", "--namespace=team"]],
  [["--verbose", "--context", "job/x", "deploy/web"]],
])("takes kubectl's names of a Deployment: %j", async (args) => {
  objects = { ...objects, deployments: [deployment(2)] };
  expect(await run(...args)).toBe(0);
  expect(heading()).toEqual(["Deployment team/web: 2 wanted, 0 there, 0 ready"]);
});

test("counts annotations of a CronJob's Job template as the workload's", async () => {
  const annotations = { "legation.dev/delegate": "true" };
  const jobTemplate = { metadata: { annotations }, spec: { template: template({ restartPolicy: "Never" }) } };
  const ownerReferences = [{ apiVersion: "batch/v1", kind: "Job", name: "web-29000000", uid: "j", controller: true }];
  objects = {
    ...objects,
    cronjobs: [stored(cronJob({}, {}), { spec: { schedule: "@daily", jobTemplate } }, { annotations: {} })],
    pods: [pod({ name: "web-29000000-x", metadata: { namespace: "team", ownerReferences } })],
  };
  expect(await run("cronjob", "web")).toBe(0);
  expect(session.out.join("")).toContain("the annotations of CronJob web are not in its pod template: ");
});

test("says why a pod is not delegated, by its namespace as it is now", async () => {
  objects = { ...objects, pods: [pod({ name: "web", metadata: { namespace: "team" } })] };
  expect(await run("pod", "web")).toBe(0);
  expect(session.out.join("")).toContain("created; it is not delegated\n");
  expect(session.out.join("")).toContain("nothing asks for it: write the annotation legation.dev/delegate");
});

test.each([
  [
    "Deployment",
    "write `kubectl annotate deployment web -n team touched=",
    { deployments: [stored(replicated("Deployment", 1))] },
  ],
  ["ReplicaSet", "the annotations of ReplicaSet web-abc are not in its pod template: ", {}],
  [
    "Deployment whose template has them by now",
    "created before delegation was asked for",
    { deployments: [deployment(1)] },
  ],
])("says why a pod is not delegated, by the annotations of its %s", async (_kind, said, found) => {
  const ref = { apiVersion: "apps/v1", controller: true };
  const replicaSet = stored(
    replicated("ReplicaSet", 1),
    {},
    {
      name: "web-abc",
      uid: "rs",
      ownerReferences: [{ ...ref, kind: "Deployment", name: "web", uid: "web" }],
    },
  );
  const ownerReferences = [{ ...ref, kind: "ReplicaSet", name: "web-abc", uid: "rs" }];
  const own = pod({ name: "web-abc-1", metadata: { namespace: "team", ownerReferences } });
  objects = { ...objects, ...found, replicasets: [replicaSet], pods: [own] };
  expect(await run("pod", "web-abc-1")).toBe(0);
  expect(session.out.join("")).toContain(said);
  expect(session.out.join("")).not.toContain("when the workload has it already");
});

test("says where to look for a pod whose workload was replaced or may not be read", async () => {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "gone", controller: true };
  const own = pod({ name: "web-1", metadata: { namespace: "team", ownerReferences: [owner] } });
  const forbidden = kubeError("Forbidden", "", { cluster: "host", verb: "get", resource: "replicasets" });
  const unreadable: Objects = {
    get replicasets(): never {
      throw forbidden;
    },
  };
  for (const found of [{ replicasets: [stored(replicated("ReplicaSet", 1))] }, unreadable]) {
    objects = Object.defineProperties(found, Object.getOwnPropertyDescriptors({ ...objects, pods: [own] }));
    session.out.length = 0;
    expect(await run("pod", "web-1")).toBe(0);
    expect(session.out.join("")).toContain("when the workload has it already, `legation status KIND NAME` says");
  }
});

test("shows a workload's pods, and one line on what is hidden, to an account with rights in its namespace alone", async () => {
  forbidden = ["clusters", "nodes"];
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "rs", controller: true };
  const metadata = {
    namespace: "team",
    annotations: { "legation.dev/cluster": "west" },
    labels: { "pod-template-hash": "1", "legation.dev/proxy": "true" },
    ownerReferences: [owner],
  };
  const running = { ...runningStatus(), conditions: [{ type: "Ready", status: "True" }] };
  objects = {
    ...objects,
    deployments: [deployment(1)],
    pods: [pod({ name: "web-1-a", metadata, spec: { nodeName: "legation-west" }, status: running })],
  };
  expect(await run("deployment", "web")).toBe(0);
  const text = session.out.join("");
  expect(text).toContain("Deployment team/web: 1 wanted, 1 there, 1 ready");
  expect(text).toMatch(/^west +1 +1 +1 Running$/m);
  expect(text.trimEnd().split("\n").at(-1)).toBe(
    "not shown: the members, their share and their state, which the ClusterRole legation-viewer lets you read",
  );
});

test.each([[[]], [["-A"]], [["west"]]])("%j names the role for an account without any right", async (args) => {
  forbidden = ["clusters", "nodes", "pods"];
  expect(await run(...args)).toBe(1);
  expect(session.err.join("")).toContain("have your account bound to the ClusterRole legation-viewer");
});
