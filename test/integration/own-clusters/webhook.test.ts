import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { credentialsFromKubeconfigText } from "../../../src/kube/kubeconfig.ts";
import { secrets } from "../../../src/kube/resources.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { WEBHOOK_CERTIFICATE_SECRET } from "../../../webhook/certificate.ts";
import { type RunningWebhook, startWebhook } from "../../../webhook/main.ts";
import { createWebhookServer } from "../../../webhook/server.ts";
import { kubeconfigText } from "../../support/clusters/kubeconfig.ts";
import { PlaneProcess } from "../../support/clusters/plane-process.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { startClusters } from "../../support/clusters/start.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { kubectl, saidNo } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventually } from "../../support/harness/wait.ts";
import { legation, MAIN } from "../../support/legation/cli.ts";
import { type Submitted, submit } from "../../support/webhook/submit.ts";

const DAY_MS = 24 * 3_600_000;
const CLUSTERS = "legation.dev/clusters";
const DELEGATE = "legation.dev/delegate";
const PROXY_MARKS = {
  metadata: { labels: { "legation.dev/proxy": "true" }, finalizers: ["legation.dev/delegate"] },
  spec: { schedulerName: "legation" },
};

let host: Cluster;
let port: number;
let webhook: RunningWebhook;
/** The API server's reviews: path and verdict of each. */
const reviews: string[] = [];

/** Returns a kubeconfig with the webhook's own service account. */
async function webhookKubeconfig(): Promise<string> {
  const token = (await kubectl(host, ["create", "token", "legation-webhook", "-n", "legation-system"])).trim();
  return kubeconfigText({ name: "host", server: host.server, caData: host.caData, user: "webhook", token });
}

async function startReplica(at: number, clock?: Clock): Promise<RunningWebhook> {
  const text = await webhookKubeconfig();
  const credentials = credentialsFromKubeconfigText(text, { allowExec: false, env: {}, source: "test" });
  const client = createClusterClient({ cluster: "host", credentials });
  const running = await startWebhook({
    host: "127.0.0.1",
    port: at,
    tls: { kind: "own", hosts: [] },
    client,
    log: createLogger({ level: "silent" }),
    onReview: (path, verdict) => void reviews.push(`${path} ${verdict}`),
    ...(clock === undefined ? {} : { clock }),
  });
  return {
    port: running.port,
    close: async () => {
      await running.close();
      await client.close();
    },
  };
}

function install(...args: string[]): Promise<string> {
  return legation(["install", `--kubeconfig=${host.kubeconfig}`, `--webhook-url=https://127.0.0.1:${port}`, ...args]);
}

let plain: string;
let annotated: string;
let all: string;
let overflow: string;

beforeAll(async () => {
  // A cluster of its own: admission concerns all namespaces, and fails in some tests.
  const clusters = await startClusters({ names: ["admission"], clusters: { admission: { nodes: [{ count: 1 }] } } });
  afterFile(() => clusters.stop());
  host = clusters.get("admission");
  port = await freePort();
  await install();
  const namespace = (mode?: string): Promise<string> =>
    freshNamespace(host, {
      labels: mode === undefined ? {} : { "legation.dev/delegation": mode },
      onFinished: afterFile,
    });
  [plain, annotated, all, overflow] = await Promise.all([
    namespace(),
    namespace("annotated"),
    namespace("all"),
    namespace("overflow"),
  ]);
  webhook = await startReplica(port);
  await eventually(async () => (await createPod(all, {}, true)).status === 201, { what: "the webhook to be asked" });
});

afterAll(async () => {
  await webhook?.close();
});

interface PodParts {
  readonly metadata?: object;
  readonly spec?: object;
}

const main = { name: "main", image: "registry.example/never-pulled:1" };
let made = 0;

function podBody({ metadata = {}, spec = {} }: PodParts): object {
  made += 1;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `pod-${made}`, ...metadata },
    spec: { containers: [main], ...spec },
  };
}

function createPod(namespace: string, parts: PodParts, dryRun = false): Promise<Submitted> {
  const query = dryRun ? "?dryRun=All" : "";
  return submit(host, "POST", `/api/v1/namespaces/${namespace}/pods${query}`, podBody(parts));
}

const annotations = (written: Readonly<Record<string, string>>): PodParts => ({ metadata: { annotations: written } });
const asks = annotations({ [DELEGATE]: "true" });

describe("a pod", () => {
  test.each<[string, () => string, PodParts]>([
    ["that asks, in mode annotated", () => annotated, asks],
    ["that names clusters, in mode annotated", () => annotated, annotations({ [CLUSTERS]: "west" })],
    ["that asks for nothing, in mode all", () => all, {}],
    ["with generateName", () => all, { metadata: { name: undefined, generateName: "made-" } }],
  ])("becomes a proxy: %s", async (_, namespace, parts) => {
    const { status, body, warnings } = await createPod(namespace(), parts);
    expect(status).toBe(201);
    expect(body).toMatchObject(PROXY_MARKS);
    expect(warnings).toEqual([]);
  });

  test("keeps everything else as written when it becomes a proxy", async () => {
    const written: PodParts = {
      metadata: { name: "same", labels: { app: "same" }, annotations: { [DELEGATE]: "true" }, finalizers: ["x.io/y"] },
      spec: { schedulerName: "volcano", terminationGracePeriodSeconds: 7, nodeSelector: { gpu: "a100" } },
    };
    const [there, here] = await Promise.all([createPod(annotated, written), createPod(plain, written)]);
    const withoutToken = (text: unknown): unknown =>
      JSON.parse(JSON.stringify(text).replaceAll(/kube-api-access-\w+/g, "token"));
    expect(withoutToken(there.body.spec)).toEqual(withoutToken({ ...here.body.spec, schedulerName: "legation" }));
    expect(there.body.metadata).toMatchObject({
      labels: { app: "same", "legation.dev/proxy": "true" },
      annotations: { [DELEGATE]: "true", "legation.dev/scheduler-name": "volcano" },
      finalizers: ["x.io/y", "legation.dev/delegate"],
    });
    expect(Object.keys(there.body.metadata ?? {}).sort()).toEqual(Object.keys(here.body.metadata ?? {}).sort());
  });

  test.each<[string, () => string, PodParts]>([
    ["without annotations, in mode annotated", () => annotated, {}],
    ["that declines, in mode annotated", () => annotated, annotations({ [DELEGATE]: "false" })],
    ["that declines, in mode all", () => all, annotations({ [DELEGATE]: "false" })],
    ["in a namespace that is not opted in", () => plain, asks],
    ["of another host", () => all, { metadata: { ...asks.metadata, labels: { "legation.dev/host": "other" } } }],
    [
      "of a DaemonSet",
      () => all,
      {
        metadata: {
          ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "u", controller: true }],
        },
      },
    ],
  ])("stays on the host without a call of the webhook: %s", async (_, namespace, parts) => {
    reviews.length = 0;
    const { status, body } = await createPod(namespace(), parts);
    expect(status).toBe(201);
    expect(body.spec?.schedulerName).toBe("default-scheduler");
    expect(body.metadata?.labels ?? {}).not.toHaveProperty("legation.dev/proxy");
    expect(reviews).toEqual([]);
  });

  test("causes no call of the webhook when it is updated or deleted", async () => {
    const { body } = await createPod(annotated, asks);
    const path = `/api/v1/namespaces/${annotated}/pods/${body.metadata?.name}`;
    reviews.length = 0;
    const changed = await submit(host, "PATCH", path, { metadata: { labels: { new: "label" } } });
    expect(changed.status).toBe(200);
    expect(reviews).toEqual([]);
  });

  test.each<[string, () => string, PodParts, string[]]>([
    [
      "malformed values",
      () => annotated,
      annotations({
        [DELEGATE]: "yes",
        [CLUSTERS]: "We$t",
        "legation.dev/clustres": "x",
        "legation.dev/overrides": '[{"patch": [{"op": "remove", "path": "/metadata/name"}]}]',
      }),
      [
        `${DELEGATE}: "yes" is neither "true" nor "false"`,
        `${CLUSTERS}: "We$t" is not a DNS label`,
        `did you mean ${CLUSTERS}?`,
        'legation.dev/overrides: [0].patch[0].path: "/metadata/name" is not inside /spec/',
      ],
    ],
    ["a node name", () => annotated, { ...asks, spec: { nodeName: "node-1" } }, ['"node-1" is a node of this cluster']],
  ])("is refused with every problem named, for %s", async (_, namespace, parts, messages) => {
    const { status, body } = await createPod(namespace(), parts);
    expect(status).toBe(422);
    for (const message of messages) expect(body.message).toContain(message);
  });

  test.each<[string, () => string, PodParts, string]>([
    ["hostNetwork", () => all, { spec: { hostNetwork: true } }, "spec.hostNetwork: uses the member node's network"],
    [
      "hostPath",
      () => all,
      { spec: { volumes: [{ name: "logs", hostPath: { path: "/var/log" } }] } },
      "spec.volumes: logs: hostPath uses the member node's file system",
    ],
    [
      "hostPort",
      () => all,
      { spec: { containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 80 }] }] } },
      "hostPort: uses the member node's ports",
    ],
    [
      "an empty selector",
      () => annotated,
      annotations({ "legation.dev/cluster-selector": "" }),
      "legation.dev/cluster-selector is empty: it selects every cluster",
    ],
    [
      "contradictory annotations",
      () => all,
      annotations({ [DELEGATE]: "false", [CLUSTERS]: "west" }),
      `${DELEGATE}: "false": the pod stays in this cluster, whatever clusters are named`,
    ],
  ])("is admitted with a warning, for %s", async (_, namespace, parts, warning) => {
    const { status, warnings } = await createPod(namespace(), parts, true);
    expect(status).toBe(201);
    expect(warnings).toContain(warning);
  });

  const PLACED: PodParts = {
    metadata: {
      ...PROXY_MARKS.metadata,
      labels: { ...PROXY_MARKS.metadata.labels, seen: "by-other" },
      annotations: {
        [DELEGATE]: "true",
        "legation.dev/cluster": "west",
        "legation.dev/delegate-uid": "u",
        "legation.dev/member-node": "n",
      },
    },
    spec: { ...PROXY_MARKS.spec, nodeName: "legation-west" },
  };
  const DROPPED = "dropped, as left over from another object";

  test.each<[string, () => string, readonly string[]]>([
    ["annotated", () => annotated, ["/mutate/leftovers patched", "/mutate/annotated patched"]],
    ["all", () => all, ["/mutate/leftovers patched", "/mutate/all patched"]],
    ["overflow", () => overflow, ["/mutate/leftovers patched", "/mutate/overflow patched"]],
    ["none", () => plain, ["/mutate/leftovers/elsewhere patched"]],
  ])("loses the marks of the pod that it was made of, with a warning, in mode %s", async (mode, namespace, called) => {
    reviews.length = 0;
    const { status, body, warnings } = await createPod(namespace(), PLACED, true);
    expect(status).toBe(201);
    expect(reviews).toEqual(called);
    expect(body.metadata?.annotations).toEqual({ [DELEGATE]: "true" });
    expect(body.spec?.nodeName).toBeUndefined();
    if (mode === "all" || mode === "annotated") expect(body).toMatchObject(PROXY_MARKS);
    else expect(body.spec?.schedulerName).toBe("default-scheduler");
    expect(body.metadata?.labels?.["legation.dev/proxy"]).toBe(
      { annotated: "true", all: "true", overflow: "overflow" }[mode],
    );
    expect(warnings).toEqual([
      expect.stringMatching(/^annotation legation.dev\/cluster, annotation .*delegate-uid, annotation .*member-node, /),
      expect.stringContaining("spec.schedulerName legation, label legation.dev/proxy"),
    ]);
    expect(warnings.join()).toContain("spec.nodeName");
    for (const warning of warnings) expect(warning).toContain(DROPPED);
  });

  test("keeps the marks of its own admission when another webhook has all of them called again", async () => {
    await startOther("zz-other", [{ op: "replace", path: "/spec/schedulerName", value: "volcano" }]);
    const body = await eventually(async () => {
      const answer = await createPod(all, PLACED, true);
      return answer.body.metadata?.annotations?.["legation.dev/scheduler-name"] === undefined ? undefined : answer.body;
    });
    expect(body).toMatchObject(PROXY_MARKS);
    expect(body.metadata?.annotations).toEqual({ [DELEGATE]: "true", "legation.dev/scheduler-name": "volcano" });
  });

  test("is shown as a proxy by a dry run, which leaves nothing behind", async () => {
    const before = await kubectl(host, ["get", "pods,secrets", "-A", "-o", "name"]);
    const { body } = await createPod(annotated, asks, true);
    expect(body).toMatchObject(PROXY_MARKS);
    expect(await kubectl(host, ["get", "pods,secrets", "-A", "-o", "name"])).toBe(before);
  });

  test("becomes a proxy, and keeps its scheduler, after another webhook gave it one", async () => {
    await startOther("zz-other", [{ op: "replace", path: "/spec/schedulerName", value: "volcano" }]);
    const body = await eventually(async () => {
      const answer = await createPod(all, ofOther, true);
      return answer.body.metadata?.annotations?.["legation.dev/scheduler-name"] === undefined ? undefined : answer.body;
    });
    expect(body).toMatchObject({
      ...PROXY_MARKS,
      metadata: { annotations: { "legation.dev/scheduler-name": "volcano" } },
    });
    expect(body.metadata?.finalizers).toEqual(["legation.dev/delegate"]);
  });

  const ANNOTATES = [{ op: "add", path: "/metadata/annotations", value: { [DELEGATE]: "true" } }];

  test.each([
    { name: "aa-other", order: "before" },
    { name: "other", order: "between" },
  ])("becomes a proxy by one call after a webhook that sorts $order Legation's has annotated it", async ({ name }) => {
    await startOther(name, ANNOTATES);
    const { status, body } = await eventually(async () => {
      reviews.length = 0;
      const answer = await createPod(annotated, ofOther, true);
      return answer.body.metadata?.annotations === undefined ? undefined : answer;
    });
    expect(status).toBe(201);
    expect(body).toMatchObject(PROXY_MARKS);
    expect(reviews).toEqual(["/mutate/annotated patched"]);
  });

  test("is refused, with the required order, if a webhook that sorts after Legation's annotates it", async () => {
    await startOther("zzz-other", ANNOTATES);
    const { body } = await eventually(async () => {
      const answer = await createPod(annotated, ofOther, true);
      return answer.status === 201 ? undefined : answer;
    });
    expect(body.message).toContain(
      "a webhook that annotates pods must be in a configuration whose name sorts before zz-legation",
    );
  });
});

// The label of pods that the API server sends to the other webhook.
const ofOther: PodParts = { metadata: { labels: { seen: "by-other" } } };

/** Starts another webhook that applies this patch to each pod; the API server calls webhooks in the order of their names. */
async function startOther(name: string, patch: readonly object[]): Promise<void> {
  const now = Date.now();
  const authority = await issueAuthority("other", { now, lifetimeMs: DAY_MS });
  const certificate = await issueServing(authority, ["127.0.0.1"], { now, lifetimeMs: DAY_MS });
  const other = createServer(certificate, (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { uid } = JSON.parse(Buffer.concat(chunks).toString()).request;
      const response = {
        uid,
        allowed: true,
        patchType: "JSONPatch",
        patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
      };
      outgoing.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }));
    });
  });
  const otherPort = await freePort();
  await new Promise<void>((resolve) => other.listen(otherPort, "127.0.0.1", resolve));
  const configuration = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name },
    webhooks: [
      {
        name: "other.example.com",
        clientConfig: {
          url: `https://127.0.0.1:${otherPort}/`,
          caBundle: Buffer.from(authority.cert).toString("base64"),
        },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
        objectSelector: { matchLabels: { seen: "by-other" } },
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
      },
    ],
  };
  await kubectl(host, ["create", "-f", "-"], { input: JSON.stringify(configuration) });
  onTestFinished(async () => {
    await kubectl(host, ["delete", "mutatingwebhookconfiguration", name]);
    other.close();
    other.closeAllConnections();
  });
}

const template = (written?: Readonly<Record<string, string>>, spec: object = {}): object => ({
  metadata: { labels: { app: "web" }, ...(written === undefined ? {} : { annotations: written }) },
  spec: { containers: [main], ...spec },
});
const selector = { matchLabels: { app: "web" } };

interface Workload {
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

const WORKLOADS: readonly Workload[] = [
  { path: "/apis/apps/v1", apiVersion: "apps/v1", kind: "Deployment", spec: { selector, template: template() } },
  { path: "/apis/apps/v1", apiVersion: "apps/v1", kind: "ReplicaSet", spec: { selector, template: template() } },
  {
    path: "/apis/apps/v1",
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    spec: { selector, serviceName: "web", template: template() },
  },
  {
    path: "/api/v1",
    apiVersion: "v1",
    kind: "ReplicationController",
    spec: { selector: { app: "web" }, template: template() },
  },
  {
    path: "/apis/batch/v1",
    apiVersion: "batch/v1",
    kind: "Job",
    spec: { template: template(undefined, { restartPolicy: "Never" }) },
  },
  {
    path: "/apis/batch/v1",
    apiVersion: "batch/v1",
    kind: "CronJob",
    spec: {
      schedule: "0 0 1 1 *",
      jobTemplate: { spec: { template: template(undefined, { restartPolicy: "Never" }) } },
    },
  },
];

function workload(kind: string): Workload {
  const found = WORKLOADS.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`no ${kind}`);
  return found;
}

function createWorkload(
  namespace: string,
  { path, apiVersion, kind, spec }: Workload,
  metadata: object,
  dryRun = true,
): Promise<Submitted> {
  const url = `${path}/namespaces/${namespace}/${kind.toLowerCase()}s${dryRun ? "?dryRun=All" : ""}`;
  return submit(host, "POST", url, { apiVersion, kind, metadata: { name: "web", ...metadata }, spec });
}

describe("a workload", () => {
  test.each(WORKLOADS)("passes its annotations on to its pods: $kind", async (workload) => {
    const { status, body } = await createWorkload(annotated, workload, {
      annotations: { [CLUSTERS]: "west", note: "stays" },
    });
    expect(status).toBe(201);
    // Other workloads keep their wishes, and their templates name them.
    const isCopied = ["Job", "CronJob"].includes(workload.kind);
    const annotations = isCopied
      ? { [CLUSTERS]: "west" }
      : { "legation.dev/wishes-of": `${workload.kind}/${body.metadata?.name}` };
    const wanted = { template: { metadata: { annotations, labels: { app: "web" } } } };
    expect(body.spec).toMatchObject(workload.kind === "CronJob" ? { jobTemplate: { spec: wanted } } : wanted);
    expect(JSON.stringify(body.spec)).not.toContain("stays");
  });

  test.each(WORKLOADS)("causes no call without annotations or in other namespaces: $kind", async (workload) => {
    reviews.length = 0;
    expect((await createWorkload(annotated, workload, {})).status).toBe(201);
    expect((await createWorkload(plain, workload, { annotations: { [CLUSTERS]: "west" } })).status).toBe(201);
    expect(reviews).toEqual([]);
  });

  test("keeps its ReplicaSet when its wishes change, and gets one for pods that stay on the host", async () => {
    const deployment = workload("Deployment");
    const spec = { ...deployment.spec, replicas: 2 };
    const created = await createWorkload(
      annotated,
      { ...deployment, spec },
      { annotations: { [CLUSTERS]: "west" } },
      false,
    );
    expect(created.status).toBe(201);
    const count = async (what: string, label: string): Promise<number> =>
      (await kubectl(host, ["get", what, "-n", annotated, "-l", label, "-o", "name"])).split("\n").length - 1;
    await eventually(async () => (await count("pods", "app=web,legation.dev/proxy=true")) === 2);
    expect(await count("replicasets", "app=web")).toBe(1);

    await kubectl(host, ["annotate", "deployment/web", "-n", annotated, `${CLUSTERS}=east`, "--overwrite"]);
    await kubectl(host, ["annotate", "deployment/web", "-n", annotated, `${CLUSTERS}-`]);
    // Without the last wish the pods are no longer delegated, so they are replaced: once, and not for the change before.
    await eventually(async () => (await count("replicasets", "app=web")) === 2);
    const settled = await kubectl(host, ["get", "deployment/web", "-n", annotated, "-o", "json"]);
    expect(JSON.parse(settled).metadata.annotations).toMatchObject({ "deployment.kubernetes.io/revision": "2" });
    expect(JSON.parse(settled).spec.template.metadata.annotations ?? {}).toEqual({});
    await kubectl(host, ["delete", "deployment/web", "-n", annotated, "--wait=false"]);
  });

  test.each([
    { what: "passes on changed annotations while it is suspended", suspend: true, clusters: "east", warnings: 0 },
    {
      what: "keeps its pods' annotations when its own change later, and warns",
      suspend: false,
      clusters: "west",
      warnings: 1,
    },
  ])("$what: Job", async ({ suspend, clusters, warnings }) => {
    const job = workload("Job");
    const spec = { ...job.spec, suspend, parallelism: 0 };
    const name = `job-${suspend ? "waiting" : "started"}`;
    await createWorkload(annotated, { ...job, spec }, { name, annotations: { [CLUSTERS]: "west" } }, false);
    const changed = await submit(host, "PATCH", `/apis/batch/v1/namespaces/${annotated}/jobs/${name}`, {
      metadata: { annotations: { [CLUSTERS]: "east" } },
    });
    expect(changed.status).toBe(200);
    expect(changed.body.spec).toMatchObject({ template: { metadata: { annotations: { [CLUSTERS]: clusters } } } });
    expect(changed.warnings).toEqual(
      Array.from({ length: warnings }, () => expect.stringContaining("the pod template of a Job cannot change unless")),
    );
  });

  test("keeps the template's annotations where they differ from its own, and warns", async () => {
    const deployment = workload("Deployment");
    const spec = { ...deployment.spec, template: template({ [CLUSTERS]: "east" }) };
    const { body, warnings } = await createWorkload(
      annotated,
      { ...deployment, spec },
      { annotations: { [CLUSTERS]: "west" } },
    );
    expect(body.spec).toHaveProperty("template.metadata.annotations", { [CLUSTERS]: "east" });
    expect(warnings).toContain(`${CLUSTERS}: the pod template says "east", and that counts for its pods`);
  });

  test.each([
    { how: "server-side apply", flags: ["--server-side"] },
    { how: "kubectl apply", flags: [] },
  ])(
    "may move an annotation into its template by $how, which is a change of the template as anywhere",
    async ({ how, flags }) => {
      const name = `moves-${flags.length}`;
      const manifest = (outer: object, inner: Readonly<Record<string, string>>): string => {
        const { path: _, ...deployment } = workload("Deployment");
        const spec = { ...deployment.spec, replicas: 0, template: template(inner) };
        return JSON.stringify({ ...deployment, metadata: { name, namespace: annotated, annotations: outer }, spec });
      };
      const apply = (input: string): Promise<string> => kubectl(host, ["apply", ...flags, "-f", "-"], { input });
      await apply(manifest({ [CLUSTERS]: "west" }, {}));
      const before = await kubectl(host, ["get", "deployment", name, "-n", annotated, "-o", "json"]);
      const mark = { "legation.dev/wishes-of": `Deployment/${name}` };
      expect(JSON.parse(before).spec.template.metadata.annotations, how).toEqual(mark);
      await apply(manifest({}, { [CLUSTERS]: "west" }));
      const moved = await kubectl(host, ["get", "deployment", name, "-n", annotated, "-o", "json"]);
      expect(JSON.parse(moved).metadata.annotations).not.toHaveProperty(CLUSTERS);
      expect(JSON.parse(moved).spec.template.metadata.annotations).toEqual({ ...mark, [CLUSTERS]: "west" });
      // An annotation that is then removed from the template is gone.
      await apply(manifest({}, {}));
      const gone = await kubectl(host, ["get", "deployment", name, "-n", annotated, "-o", "json"]);
      expect(JSON.parse(gone).spec.template.metadata.annotations ?? {}).toEqual({});
    },
  );

  test("is admitted with a warning if it asks for nothing in mode annotated, and without one in mode all", async () => {
    const deployment = workload("Deployment");
    const written = { annotations: { "legation.dev/group": "flow-7" } };
    const { status, warnings } = await createWorkload(annotated, deployment, written);
    expect(status).toBe(201);
    expect(warnings).toEqual([
      `legation.dev/group: does not ask for delegation by itself, so it has no effect here; write ${DELEGATE}: "true", too`,
    ]);
    expect((await createWorkload(all, deployment, written)).warnings).toEqual([]);
  });

  test("is refused in an overflow namespace if all its pods would be refused there, and admitted elsewhere", async () => {
    const deployment = workload("Deployment");
    const written = { annotations: { "legation.dev/failover": "never" } };
    const { status, body } = await createWorkload(overflow, deployment, written);
    expect(status).toBe(422);
    expect(body.message).toContain("annotation legation.dev/failover: is written into tolerations");
    expect((await createWorkload(overflow, deployment, { annotations: { [CLUSTERS]: "west" } })).status).toBe(201);
    expect((await createWorkload(all, deployment, written)).status).toBe(201);
  });

  test("is refused with the field's path for malformed values, on itself or in its template", async () => {
    const deployment = workload("Deployment");
    const spec = { ...deployment.spec, template: template({ [CLUSTERS]: "" }) };
    const { status, body } = await createWorkload(
      annotated,
      { ...deployment, spec },
      { annotations: { [DELEGATE]: "1" } },
    );
    expect(status).toBe(422);
    expect(body.message).toContain(`metadata: annotation ${DELEGATE}: "1" is neither`);
    expect(body.message).toContain(`spec.template.metadata: annotation ${CLUSTERS}: names no cluster`);
  });

  test("is refused with the reason if it is a DaemonSet that asks, and admitted if it does not ask", async () => {
    const daemonSet: Workload = {
      path: "/apis/apps/v1",
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      spec: { selector, template: template() },
    };
    expect((await createWorkload(annotated, daemonSet, {})).status).toBe(201);
    const onIt = await createWorkload(all, daemonSet, { annotations: { [DELEGATE]: "true" } });
    const spec = { ...daemonSet.spec, template: template({ [CLUSTERS]: "west" }) };
    const inTemplate = await createWorkload(annotated, { ...daemonSet, spec }, {});
    for (const { status, body } of [onIt, inTemplate]) {
      expect(status).toBe(422);
      expect(body.message).toContain("a DaemonSet runs on every node of this cluster and is never delegated");
    }
  });
});

describe("a namespace", () => {
  const create = (written: Readonly<Record<string, string>>): Promise<Submitted> =>
    submit(host, "POST", "/api/v1/namespaces?dryRun=All", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "new", annotations: written },
    });

  test.each([
    [{ [CLUSTERS]: "west", "legation.dev/cluster-selector": "gpu" }, undefined],
    [{ [CLUSTERS]: "west east" }, '"west east" is not a DNS label'],
    [{ "legation.dev/cluster-selector": "a in b" }, "expected ( at character 6"],
    [{ [DELEGATE]: "true" }, "a namespace says by its label which pods are delegated"],
  ])("gets its defaults checked: %j", async (written, refused) => {
    const { status, body } = await create(written);
    expect(status).toBe(refused === undefined ? 201 : 422);
    if (refused !== undefined) expect(body.message).toContain(refused);
  });

  test("causes no call while its annotations stay", async () => {
    const path = `/api/v1/namespaces/${annotated}`;
    expect((await submit(host, "PATCH", path, { metadata: { annotations: { [CLUSTERS]: "west" } } })).status).toBe(200);
    reviews.length = 0;
    expect((await submit(host, "PATCH", path, { metadata: { labels: { team: "a" } } })).status).toBe(200);
    expect((await submit(host, "PATCH", path, { metadata: { annotations: { [CLUSTERS]: null } } })).status).toBe(200);
    expect(reviews).toEqual([]);
  });
});

const CONFIGURATIONS = [
  "mutatingwebhookconfiguration/legation",
  "mutatingwebhookconfiguration/zz-legation",
  "validatingwebhookconfiguration/legation",
];

/** Returns the caBundle of each webhook entry. */
async function bundles(): Promise<string[]> {
  const { items } = JSON.parse(await kubectl(host, ["get", ...CONFIGURATIONS, "--ignore-not-found", "-o", "json"]));
  return items.flatMap(({ webhooks }: { webhooks: { clientConfig: { caBundle?: string } }[] }) =>
    webhooks.map(({ clientConfig }) => atob(clientConfig.caBundle ?? "").trim()),
  );
}

function storedCertificate(): Promise<string> {
  const jsonpath = "jsonpath={.data.tls\\.crt}";
  return kubectl(host, ["get", "secret", WEBHOOK_CERTIFICATE_SECRET.name, "-n", "legation-system", "-o", jsonpath]);
}

/** Replaces the certificate in `now` atomically with one of a new authority, as the kubelet does in a volume. Returns the authority. */
async function issueFiles(folder: string, name: string): Promise<string> {
  const times = { now: Date.now(), lifetimeMs: DAY_MS };
  const authority = await issueAuthority(name, times);
  const { cert, key } = await issueServing(authority, ["127.0.0.1"], times);
  await mkdir(join(folder, name));
  const contents = { "tls.crt": cert, "tls.key": key, "ca.crt": authority.cert };
  await Promise.all(Object.entries(contents).map(([file, text]) => writeFile(join(folder, name, file), text)));
  await symlink(name, join(folder, "next"));
  await rename(join(folder, "next"), join(folder, "now"));
  return authority.cert;
}

/** Reports whether a client that trusts these authorities can send the webhook a review. */
function servedTo(ca: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, ca });
    const end = (trusted: boolean) => (): void => {
      socket.destroy();
      resolve(trusted);
    };
    socket.once("secureConnect", end(true)).once("error", end(false));
  });
}

async function dryRunIsAnswered(): Promise<boolean> {
  return (await createPod(all, {}, true)).status === 201;
}

/** A call of the webhook. */
interface Asked {
  readonly path: string;
  readonly connection: object;
}

/** Starts a webhook that answers reviews normally, but closes the connection of those that `dies` selects. */
async function startMortal(
  dies: (earlier: number) => boolean,
): Promise<{ readonly asked: Asked[]; readonly connections: Set<object> }> {
  await webhook.close();
  const found = await kubectl(host, [
    "get",
    "secret",
    WEBHOOK_CERTIFICATE_SECRET.name,
    "-n",
    "legation-system",
    "-o",
    "json",
  ]);
  const { data } = JSON.parse(found);
  const [cert, key] = ["tls.crt", "tls.key"].map((name) => Buffer.from(data[name], "base64").toString());
  const asked: Asked[] = [];
  const connections = new Set<object>();
  const server = createWebhookServer({
    certificate: { cert: cert ?? "", key: key ?? "" },
    notReady: () => undefined,
    log: createLogger({ level: "silent" }),
  });
  server.addHook("onRequest", async ({ raw }, reply) => {
    asked.push({ path: new URL(raw.url ?? "", "https://webhook").pathname, connection: raw.socket });
    if (!dies(asked.length - 1)) return;
    reply.hijack();
    raw.socket.destroy();
  });
  await server.listen({ host: "127.0.0.1", port });
  server.server.on("secureConnection", (socket) => connections.add(socket));
  onTestFinished(async () => {
    const closed = server.close();
    server.server.closeAllConnections();
    await closed;
    webhook = await startReplica(port);
  });
  return { asked, connections };
}

// The API server repeats none of these calls.
describe("a webhook replica that ends before it has answered", () => {
  test.each([
    { deaths: 0, what: "nothing", pods: 1 },
    // The first is asked about what the second has changed, as about any other webhook's change.
    { deaths: 1, what: "one review", pods: 3 },
  ])("costs no pod when it takes $what with it", async ({ deaths, pods }) => {
    const { asked } = await startMortal((earlier) => earlier < deaths);
    const pod = await createPod(all, {});
    expect(pod.status).toBe(201);
    expect(pod.body).toMatchObject(PROXY_MARKS);
    expect(asked.map(({ path }) => path)).toEqual(Array.from({ length: pods }, () => "/mutate/all"));
    const template = { metadata: { labels: { app: "web" } }, spec: { containers: [main] } };
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: `web-${deaths}`, annotations: { [CLUSTERS]: "west" } },
      spec: { replicas: 0, selector: { matchLabels: { app: "web" } }, template },
    };
    const before = asked.length;
    const made = await submit(host, "POST", `/apis/apps/v1/namespaces/${annotated}/deployments`, deployment);
    expect(made.status).toBe(201);
    const marks = { "legation.dev/wishes-of": `Deployment/web-${deaths}` };
    expect(made.body.spec).toHaveProperty("template.metadata.annotations", marks);
    expect(asked.slice(before).map(({ path }) => path)).toEqual(["/mutate/workload/annotated", "/mutate/workload"]);
  });

  test("gets no second call over a kept connection, which may end with it", async () => {
    let dying = false;
    let calls = 0;
    const { asked, connections } = await startMortal(() => dying && calls++ % 3 === 0);
    const several = await Promise.all(Array.from({ length: 8 }, () => createPod(all, {})));
    expect(several.map(({ status }) => status)).toEqual(several.map(() => 201));
    dying = true;
    for (let pod = 0; pod < 3; pod += 1) {
      const kept = new Set(connections);
      const before = asked.length;
      expect((await createPod(all, {})).status).toBe(201);
      // The first died, the second answered, and the third is about what the second has changed.
      const [, second, ...more] = asked.slice(before).map(({ connection }) => kept.has(connection));
      expect({ second, more: more.length }).toEqual({ second: false, more: 1 });
    }
  });

  test("costs the pod when it happens twice, with an error that names the second call", async () => {
    const { asked } = await startMortal((earlier) => earlier < 2);
    const { status, body } = await createPod(all, {});
    expect(status).toBe(500);
    expect(JSON.stringify(body)).toContain("pods-all-again.legation.dev");
    expect(asked.map(({ path }) => path)).toEqual(["/mutate/all", "/mutate/all"]);
    expect((await createPod(all, {})).status).toBe(201);
  });
});

describe("the serving certificate", () => {
  test("is in a Secret, and every entry trusts its authority", async () => {
    expect((await storedCertificate()).length).toBeGreaterThan(1000);
    const trusted = await bundles();
    expect(trusted).toHaveLength(17);
    expect(new Set(trusted).size).toBe(1);
    expect(trusted[0]).not.toBe("");
  });

  test("stays the same when the installation is applied again", async () => {
    const before = [await storedCertificate(), ...(await bundles())];
    await install();
    expect([await storedCertificate(), ...(await bundles())]).toEqual(before);
    expect(await dryRunIsAnswered()).toBe(true);
  });

  test("is trusted by an entry that a new version adds, from the start", async () => {
    const last = JSON.stringify([{ op: "remove", path: "/webhooks/7" }]);
    await kubectl(host, ["patch", "mutatingwebhookconfiguration/legation", "--type=json", `--patch=${last}`]);
    expect(await bundles()).toHaveLength(16);
    await install();
    const trusted = await bundles();
    expect(trusted).toHaveLength(17);
    expect(new Set(trusted).size).toBe(1);
  });

  test("is trusted by a configuration that a new version adds, from the start", async () => {
    await kubectl(host, ["delete", "mutatingwebhookconfiguration/zz-legation"]);
    expect(JSON.parse(await install("-o", "json")).objects).toContainEqual({
      kind: "MutatingWebhookConfiguration",
      name: "zz-legation",
      change: "created",
    });
    const trusted = await bundles();
    expect(trusted).toHaveLength(17);
    expect(new Set(trusted).size).toBe(1);
  });

  test("is trusted again after the configurations were created anew", async () => {
    await kubectl(host, ["delete", ...CONFIGURATIONS]);
    await install();
    await eventually(async () => (await bundles()).every((bundle) => bundle !== ""));
    await eventually(dryRunIsAnswered, { what: "the webhook to be asked again" });
  });

  test("is restored without a failed call when its Secret is deleted", async () => {
    const before = await storedCertificate();
    await kubectl(host, ["delete", "secret", WEBHOOK_CERTIFICATE_SECRET.name, "-n", "legation-system"]);
    expect(await dryRunIsAnswered()).toBe(true);
    expect(await eventually(() => storedCertificate().catch(() => undefined))).toBe(before);
  });

  test("is shared by replicas that start together, and renewed without a restart or a failed call", async () => {
    await webhook.close();
    await kubectl(host, ["delete", "secret", WEBHOOK_CERTIFICATE_SECRET.name, "-n", "legation-system"]);
    // The replicas' clock is two months behind at first, so that the certificates they issue are old by now.
    let behindMs = 61 * DAY_MS;
    const clock: Clock = { ...realClock, wall: () => realClock.wall() - behindMs };
    const [first, second] = await Promise.all([startReplica(port, clock), startReplica(await freePort(), clock)]);
    webhook = first;
    onTestFinished(() => second.close());
    await eventually(dryRunIsAnswered, { what: "the new authority to be trusted" });
    const before = await storedCertificate();
    expect(new Set(await bundles()).size).toBe(1);

    behindMs = 0;
    // Counted: polling would hide failures in between.
    let failed = 0;
    const renewed = await eventually(async () => {
      if (!(await dryRunIsAnswered())) failed += 1;
      const now = await storedCertificate();
      return now === before ? undefined : now;
    });
    expect(renewed).not.toBe(before);
    expect(failed).toBe(0);
    for (let attempt = 0; attempt < 20; attempt += 1) expect(await dryRunIsAnswered()).toBe(true);
  });

  test("may be in files that are replaced, with a new authority, while calls go on", async () => {
    const folder = await mkdtemp(join(tmpdir(), "legation-files-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const before = await issueFiles(folder, "before");
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, await webhookKubeconfig());
    await webhook.close();
    onTestFinished(async () => {
      webhook = await startReplica(port);
      await eventually(dryRunIsAnswered, { what: "the webhook's own authority to be trusted again" });
    });
    const replica = new PlaneProcess({
      name: "webhook-with-files",
      command: process.execPath,
      args: [
        ...[MAIN, "webhook", `--kubeconfig=${kubeconfig}`, `--listen=127.0.0.1:${port}`],
        ...[`--tls-cert-file=${folder}/now/tls.crt`, `--tls-key-file=${folder}/now/tls.key`],
        `--ca-bundle-file=${folder}/now/ca.crt`,
      ],
      logFile: join(folder, "log"),
      ready: () => servedTo(before),
      readyTimeoutMs: 60_000,
    });
    onTestFinished(() => replica.stop("SIGTERM"));
    await replica.start();
    await eventually(dryRunIsAnswered, { what: "the authority in the file to be trusted" });

    const after = await issueFiles(folder, "after");
    const refused: string[] = [];
    await eventually(async () => {
      if (!(await dryRunIsAnswered())) refused.push("a pod");
      // An API server that opens a connection now does the same.
      for (const bundle of new Set(await bundles())) if (!(await servedTo(bundle))) refused.push("a connection");
      return servedTo(after);
    });
    expect(refused).toEqual([]);
    // More than there are connections from before the replacement.
    const many = await Promise.all(Array.from({ length: 20 }, dryRunIsAnswered));
    expect(many).not.toContain(false);
  });

  test("is the only Secret that the webhook's rights permit", async () => {
    const as = "--as=system:serviceaccount:legation-system:legation-webhook";
    const may = (...args: string[]): Promise<string> =>
      kubectl(host, ["auth", "can-i", ...args, as, "-n", "legation-system"]).catch(saidNo);
    expect((await may("update", `${secrets.plural}/${WEBHOOK_CERTIFICATE_SECRET.name}`)).trim()).toBe("yes");
    expect(await may("get", "secrets/other")).toContain("no");
    expect(await may("get", "pods")).toContain("no");
  });
});

describe("an unavailable webhook", () => {
  test("refuses only pods that would be delegated", async () => {
    await webhook.close();
    const refused = await createPod(annotated, asks);
    expect(refused.status).toBe(500);
    expect(refused.body.message).toContain("failed calling webhook");
    expect((await createPod(all, {})).status).toBe(500);
    expect((await createPod(annotated, {})).status).toBe(201);
    expect((await createPod(all, annotations({ [DELEGATE]: "false" }))).status).toBe(201);
    expect((await createPod(plain, asks)).status).toBe(201);
    const relabelled = await submit(host, "PATCH", `/api/v1/namespaces/${all}`, { metadata: { labels: { a: "b" } } });
    expect(relabelled.status).toBe(200);
    webhook = await startReplica(port);
    await eventually(dryRunIsAnswered, { what: "the webhook to be asked again" });
  });
});
