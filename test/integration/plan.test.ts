import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { clusters } from "../../src/api/resources.ts";
import { issueAuthority, issueServing } from "../../src/certificates/issue.ts";
import { controllerOf } from "../../src/pods/pod-state.ts";
import { memberOf } from "../../src/pods/proxy.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { type AuditEvent, auditEvents, isWrite } from "../support/clusters/audit.ts";
import { kubeconfigText } from "../support/clusters/kubeconfig.ts";
import { freePort } from "../support/clusters/ports.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { type CliResult, runCli, runProcess } from "../support/legation/cli.ts";

useLegation();
const clients = useClients();
const patient = { timeoutMs: 60_000, intervalMs: 300 };
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "plan", labels });
  // A plan needs the members' first report.
  await eventuallyPasses(async () => {
    const { items } = await clients().host.list(clusters);
    for (const { status } of items) expect(status?.nodeKinds?.length).toBeGreaterThan(0);
  }, patient);
});

const statusSchema = z.object({
  replicas: z.number(),
  clusters: z.array(
    z.object({ cluster: z.string(), wanted: z.number(), has: z.number(), statuses: z.record(z.string(), z.number()) }),
  ),
  pending: z.array(z.object({ pods: z.array(z.string()), reason: z.string(), message: z.string() })),
});

const planSchema = z.object({
  fits: z.boolean(),
  guesses: z.array(z.unknown()),
  notChecked: z.array(z.string()),
  workloads: z.array(
    z.object({
      kind: z.string(),
      name: z.string(),
      outcome: z.string(),
      message: z.string().optional(),
      pods: z.array(
        z.object({
          cluster: z.string().optional(),
          waitsIn: z.string().optional(),
          message: z.string().optional(),
        }),
      ),
      clusters: z.array(z.object({ cluster: z.string(), pods: z.number() })),
    }),
  ),
});

function planCommand(...flags: string[]): string[] {
  return ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`, ...flags];
}

function plan(manifest: string, ...flags: string[]): Promise<CliResult> {
  return runCli(planCommand(...flags), { input: manifest });
}

interface Parts {
  readonly apiVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly podSpec?: object;
  readonly cpu?: string;
}

function workload(kind: string, name: string, parts: Parts): object {
  const { apiVersion = "apps/v1", annotations = {}, spec, podSpec, cpu = "100m" } = parts;
  const containers = [{ name: "main", image: "main:1", resources: { requests: { cpu } } }];
  const replicated = apiVersion === "apps/v1" ? { selector: { matchLabels: { app: name } } } : {};
  return {
    apiVersion,
    kind,
    metadata: { name, annotations: { "legation.dev/delegate": "true", ...annotations } },
    spec:
      kind === "Pod"
        ? { containers, ...podSpec }
        : {
            ...replicated,
            ...spec,
            template: { metadata: { labels: { app: name } }, spec: { containers, ...podSpec } },
          },
  };
}

const dividing = (division: object): Record<string, string> => ({
  "legation.dev/scheduling-preferences": JSON.stringify({ clusters: division }),
});

/** Counts the pods of each workload in each member. */
async function placed(): Promise<Record<string, Record<string, number>>> {
  const counts: Record<string, Record<string, number>> = {};
  for (const pod of await podsOf(clients().host, namespace)) {
    const owner = controllerOf(pod)?.name.replace(/-[0-9a-z]{8,10}$/, "") ?? pod.metadata.name;
    const member = memberOf(pod) ?? "none";
    const own = counts[owner] ?? {};
    own[member] = (own[member] ?? 0) + 1;
    counts[owner] = own;
  }
  return counts;
}

/** Starts a webhook that denies every request. */
async function denyingWebhook(): Promise<{ readonly url: string; readonly caBundle: string }> {
  const validity = { now: Date.now(), lifetimeMs: 24 * 3_600_000 };
  const authority = await issueAuthority("denying", validity);
  const server = createServer(await issueServing(authority, ["127.0.0.1"], validity), (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { uid } = JSON.parse(Buffer.concat(chunks).toString()).request;
      const response = { uid, allowed: false, status: { message: "not this one" } };
      outgoing.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }));
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.cert).toString("base64") };
}

describe("a plan", () => {
  test("predicts the placement, and writes nothing but dry-runs", async () => {
    const spread = JSON.stringify([{ topologyKey: "region" }]);
    const override = [{ clusters: ["west"], patch: [{ op: "remove", path: "/spec/priorityClassName" }] }];
    const manifest = [
      workload("Deployment", "weighed", {
        annotations: dividing({ west: { weight: 2 }, "*": { weight: 1 } }),
        spec: { replicas: 6 },
      }),
      workload("Deployment", "bounded", {
        annotations: dividing({ west: { maxReplicas: 1, weight: 5 }, east: { weight: 1 } }),
        spec: { replicas: 3 },
      }),
      workload("ReplicaSet", "spread", {
        annotations: { "legation.dev/cluster-spread": spread },
        spec: { replicas: 4 },
      }),
      workload("StatefulSet", "named", {
        annotations: { "legation.dev/clusters": "east" },
        spec: { replicas: 2, serviceName: "named" },
      }),
      workload("Job", "together", {
        apiVersion: "batch/v1",
        annotations: { "legation.dev/group": "flow" },
        spec: { parallelism: 3, completions: 3 },
        podSpec: { restartPolicy: "Never" },
      }),
      workload("Pod", "selected", { apiVersion: "v1", annotations: { "legation.dev/cluster-selector": "region=eu" } }),
      workload("Pod", "overridden", {
        apiVersion: "v1",
        annotations: { "legation.dev/overrides": JSON.stringify(override) },
      }),
    ]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");

    const before = new Date().toISOString();
    const { code, stdout, stderr } = await plan(manifest, "-o", "json");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const isPlans = (event: AuditEvent): boolean => {
      if (event.requestReceivedTimestamp < before || event.userAgent?.startsWith("legation/") !== true) return false;
      return isWrite(event) && !event.user.username.startsWith("system:serviceaccount:");
    };
    const written = await auditEvents(hostCluster(), isPlans, ['"legation/']);
    expect(written.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);

    const planned = planSchema.parse(JSON.parse(stdout));
    expect(planned).toMatchObject({ fits: true, guesses: [], notChecked: [] });
    const expected = planned.workloads.map(({ name, clusters: members }) => [
      name,
      Object.fromEntries(members.flatMap(({ cluster, pods }) => (pods === 0 ? [] : [[cluster, pods]]))),
    ]);
    expect(Object.fromEntries(expected)).toMatchObject({
      weighed: { west: 4, east: 2 },
      bounded: { west: 1, east: 2 },
      spread: { west: 2, east: 2 },
      named: { east: 2 },
      selected: { west: 1 },
      overridden: { east: 1 },
    });
    await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest });
    // Which member is emptier when the group's first pod comes depends on which controller is faster.
    const together = (counts: object | undefined): number[] => Object.values(counts ?? {});
    const { together: grouped, ...rest } = Object.fromEntries(expected);
    expect(together(grouped)).toEqual([3]);
    await eventuallyPasses(async () => {
      const { together: found, ...others } = await placed();
      expect(others).toEqual(rest);
      expect(together(found)).toEqual([3]);
    }, patient);
  });

  test("reports pods that fit nowhere in the words of the pod's condition, and by its exit code", async () => {
    const manifest = [
      workload("Pod", "unlabelled", { apiVersion: "v1", podSpec: { nodeSelector: { disk: "none" } } }),
      workload("Pod", "huge", { apiVersion: "v1", cpu: "4k" }),
      workload("Pod", "elsewhere", { apiVersion: "v1", annotations: { "legation.dev/clusters": "north" } }),
    ]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const { code, stdout, stderr } = await runProcess(planCommand("-o", "json"), { input: manifest });
    expect(code).toBe(5);
    expect(stderr).toContain("3 pods would wait");
    const planned = planSchema.parse(JSON.parse(stdout));
    await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest });
    const foreseen = Object.fromEntries(planned.workloads.map(({ name, pods: [first] }) => [name, first]));
    // The pod waits in one member, whose scheduler gives a longer reason.
    expect(foreseen.huge?.waitsIn).toMatch(/^(west|east)$/);
    const other = foreseen.huge?.waitsIn === "west" ? "east" : "west";
    const tooLarge = `${other}: cpu: 4000 requested, the largest node has 64`;
    expect(foreseen.huge?.message).toContain(tooLarge);
    await eventuallyPasses(async () => {
      const pods = await podsOf(clients().host, namespace);
      const said = pods.map((pod) => [pod.metadata.name, whyNotPlaced(pod)?.message]);
      expect(Object.fromEntries(said)).toEqual({
        unlabelled: foreseen.unlabelled?.message,
        elsewhere: foreseen.elsewhere?.message,
        // Equal members may swap places meanwhile.
        huge: expect.stringMatching(/(west|east): cpu: 4000 requested, the largest node has 64/),
      });
    }, patient);
  });

  test("has the API server's words for pods that it would refuse, and the kubelet's for missing objects", async () => {
    const { host } = clients();
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "small" } };
    await host.raw({ method: "POST", path, body: { ...quota, spec: { hard: { "requests.cpu": "1" } } } });
    await eventuallyPasses(async () => {
      expect(JSON.stringify(await host.raw({ method: "GET", path }))).toContain('"used"');
    }, patient);
    const pod = (name: string, podSpec: object, cpu?: string): object =>
      workload("Pod", name, { apiVersion: "v1", podSpec, ...(cpu === undefined ? {} : { cpu }) });
    const configured = (name: string): object => ({ volumes: [{ name: "conf", configMap: { name } }] });
    const manifest = [
      pod("account", { serviceAccountName: "robot" }),
      pod("priority", { priorityClassName: "no-such-class" }),
      pod("runtime", { runtimeClassName: "no-such-runtime" }),
      pod("greedy", {}, "2"),
      pod("unconfigured", configured("missing")),
      pod("configured", configured("written")),
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "written" } },
    ]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const { code, stdout } = await plan(manifest, "-o", "json");
    expect(code).toBe(5);
    const planned = planSchema.parse(JSON.parse(stdout));
    expect(planned).toMatchObject({ guesses: [], notChecked: [] });
    const foreseen = new Map(planned.workloads.map(({ name, ...rest }) => [name, rest]));
    expect(foreseen.get("configured")).toMatchObject({ outcome: "fits" });
    const applied = await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest }).catch(
      (error: Error) => error.message,
    );
    for (const name of ["account", "priority", "runtime", "greedy"]) {
      const { outcome, message = "" } = foreseen.get(name) ?? {};
      expect(outcome).toBe("refused");
      expect(message).not.toBe("");
      expect(applied).toContain(message);
    }
    await eventuallyPasses(async () => {
      const said = (await podsOf(host, namespace)).map((one) => [one.metadata.name, whyNotPlaced(one)?.message]);
      expect(Object.fromEntries(said)).toEqual({
        configured: undefined,
        unconfigured: foreseen.get("unconfigured")?.pods[0]?.message,
      });
    }, patient);
  });

  test("has the words of LimitRange, Pod Security, policies and webhooks, and applies their defaults", async () => {
    await kubectl(hostCluster(), ["label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline"]);
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
    const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }];
    const apiVersion = "admissionregistration.k8s.io/v1";
    const { url, caBundle } = await denyingWebhook();
    await applyAll(hostCluster(), [
      {
        apiVersion: "v1",
        kind: "LimitRange",
        metadata: { name: "limits", namespace },
        spec: { limits: [{ type: "Container", max: { cpu: "5k" }, default: { cpu: "4k" } }] },
      },
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: namespace },
        spec: {
          matchConstraints: { namespaceSelector, resourceRules: rules },
          validations: [{ expression: 'object.metadata.?name.orValue("") != "policied"', message: "not on a Friday" }],
        },
      },
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: namespace },
        spec: { policyName: namespace, validationActions: ["Deny"] },
      },
      {
        apiVersion,
        kind: "ValidatingWebhookConfiguration",
        metadata: { name: namespace },
        webhooks: [
          {
            name: "hooked.example.com",
            clientConfig: { url, caBundle },
            namespaceSelector,
            rules,
            matchConditions: [{ name: "hooked", expression: 'object.metadata.?name.orValue("") == "hooked"' }],
            admissionReviewVersions: ["v1"],
            sideEffects: "NoneOnDryRun",
          },
        ],
      },
    ]);
    onTestFinished(async () => {
      const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy,validatingwebhookconfiguration";
      await kubectl(hostCluster(), ["delete", kinds, namespace, "--ignore-not-found"]);
    });
    const pod = (name: string, container: object = {}): object =>
      workload("Pod", name, {
        apiVersion: "v1",
        podSpec: { containers: [{ name: "main", image: "main:1", ...container }] },
      });
    const small = { resources: { requests: { cpu: "100m" } } };
    const manifest = [
      pod("limited", { resources: { limits: { cpu: "6k" } } }),
      pod("privileged", { ...small, securityContext: { privileged: true } }),
      pod("policied", small),
      pod("hooked", small),
      pod("defaulted"),
      workload("Deployment", "privileges", {
        podSpec: { containers: [{ name: "main", image: "main:1", securityContext: { privileged: true } }] },
      }),
    ]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const foreseen = await eventually(
      async () => {
        const { code, stdout } = await plan(manifest, "-o", "json");
        const planned = planSchema.parse(JSON.parse(stdout));
        const found = new Map(planned.workloads.map(({ name, ...rest }) => [name, rest]));
        // API servers apply new policies and webhooks a little later.
        if (code !== 5 || found.get("policied")?.outcome === "fits" || found.get("hooked")?.outcome === "fits")
          return undefined;
        expect(planned).toMatchObject({ guesses: [], notChecked: [] });
        return found;
      },
      { timeoutMs: 60_000, intervalMs: 1000 },
    );
    const messages = Object.fromEntries(
      [...foreseen].map(
        ([
          name,
          {
            message,
            pods: [first],
          },
        ]) => [name, message ?? first?.message],
      ),
    );
    expect(messages).toEqual({
      limited: "maximum cpu usage per Container is 5k, but limit is 6k",
      privileged: expect.stringContaining('violates PodSecurity "baseline:latest": privileged'),
      policied: expect.stringContaining("denied request: not on a Friday"),
      hooked: 'admission webhook "hooked.example.com" denied the request: not this one',
      defaulted: expect.stringContaining("cpu: 4000 requested, the largest node has 64"),
      privileges: expect.stringContaining('violates PodSecurity "baseline:latest": privileged'),
    });
    const applied = await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest }).catch(
      (error: Error) => error.message,
    );
    for (const name of ["limited", "privileged", "policied", "hooked"]) expect(applied).toContain(messages[name]);
  });

  test("reports that admission was not checked if the user may not create pods", async () => {
    const account = `system:serviceaccount:${namespace}:looker`;
    const host = hostCluster();
    await kubectl(host, ["-n", namespace, "create", "serviceaccount", "looker"]);
    const role = `--clusterrole=legation-viewer`;
    const binding = `${namespace}-looks`;
    await kubectl(host, ["create", "clusterrolebinding", binding, role, `--serviceaccount=${namespace}:looker`]);
    onTestFinished(async () => void (await kubectl(host, ["delete", "clusterrolebinding", binding])));
    await kubectl(host, ["-n", namespace, "create", "rolebinding", "views", "--clusterrole=view", `--user=${account}`]);
    const token = (await kubectl(host, ["-n", namespace, "create", "token", "looker"])).trim();
    const folder = mkdtempSync(join(tmpdir(), "legation-looker-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kubeconfigText({ ...host, name: "host", user: "looker", token }));
    const manifest = JSON.stringify(workload("Deployment", "web", { spec: { replicas: 2 } }));
    const args = ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${kubeconfig}`];
    const { code, stdout } = await runCli(args, { input: manifest });
    expect(stdout).toContain("2 pods fit");
    expect(stdout).toMatch(
      /\nnot checked:\n {2}defaults, LimitRanges, quotas, Pod Security, policies and webhooks for Deployment \S+\/web: you may not create pods\n/,
    );
    expect(code).toBe(0);
  });

  test("has the words of policies and webhooks for a namespace that they would refuse", async () => {
    const written = (name: string, metadata: object): object => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, ...metadata },
    });
    const manifest = [
      written("kube-system", { labels: { "legation.dev/delegation": "all" } }),
      written(namespace, { annotations: { "legation.dev/clusters": "West" } }),
      workload("Pod", "web", { apiVersion: "v1" }),
    ]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const planned = await runCli(
      ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`, "-o", "json"],
      {
        input: manifest,
      },
    );
    expect(planned.code).toBe(5);
    const { workloads } = planSchema.parse(JSON.parse(planned.stdout));
    expect(workloads.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual([
      "Namespace refused",
      "Namespace refused",
      "Pod fits",
    ]);
    expect(workloads[0]?.message).toContain(
      "serves this cluster itself, so its pods cannot be delegated; remove the label",
    );
    expect(workloads[1]?.message).toContain('"West" is not a DNS label');
  });

  test("says where the pods of a workload are now, and ignores a quota that they fill", async () => {
    const { host } = clients();
    const web = (annotations: object): string => {
      const { metadata, ...rest } = Object(workload("Deployment", "hosted", {}));
      return JSON.stringify({ ...rest, metadata: { ...metadata, annotations } });
    };
    await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: web({}) });
    // An autoscaler sets the number; the manifest does not.
    await kubectl(hostCluster(), ["-n", namespace, "scale", "deployment", "hosted", "--replicas=2"]);
    // A quota counts existing pods when it is created, and then not for minutes.
    await kubectl(hostCluster(), ["-n", namespace, "rollout", "status", "deployment", "hosted", "--timeout=60s"]);
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "small" } };
    await host.raw({ method: "POST", path, body: { ...quota, spec: { hard: { pods: "2" } } } });
    await eventuallyPasses(async () => {
      expect(JSON.stringify(await host.raw({ method: "GET", path }))).toContain('"used":{"pods":"2"}');
    }, patient);
    const { code, stdout } = await plan(web({ "legation.dev/delegate": "true" }), "-o", "json");
    const { workloads, notChecked } = planSchema.parse(JSON.parse(stdout));
    const member = { cluster: expect.stringMatching(/^(west|east)$/) };
    expect(workloads[0]?.pods).toEqual([member, member]);
    expect(notChecked).toEqual([expect.stringMatching(/exceeded quota: small, .*, with the pods that it has now$/)]);
    expect(code).toBe(0);
    const all = ["label", "--overwrite", "namespace", namespace, "legation.dev/delegation=all"];
    await kubectl(hostCluster(), all);
    const told = await plan(web({}));
    expect(told.stdout).toContain("has 2 pods now (2 on this cluster); the plan places all its pods anew");
    expect(told.code).toBe(0);
  });

  test("has the webhook's words for objects that it would refuse, also as text", async () => {
    const wrong = JSON.stringify(workload("Deployment", "wrong", { annotations: { "legation.dev/clusters": "" } }));
    const [planned, applied] = await Promise.all([
      plan(wrong),
      kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: wrong }).catch(
        (error: Error) => error.message,
      ),
    ]);
    expect(planned.code).toBe(5);
    const [, words = ""] = /would be refused: (.*)/.exec(planned.stdout) ?? [];
    expect(words).toContain("legation.dev/clusters");
    expect(applied).toContain(words);
  });
});

test("shows the status of a workload: its division, its pods by member, and why some wait", async () => {
  const annotations = dividing({ west: { weight: 1, maxReplicas: 2 }, east: { weight: 1, maxReplicas: 1 } });
  const manifest = JSON.stringify(workload("Deployment", "web", { annotations, spec: { replicas: 4 } }));
  await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest });
  const args = ["status", "deployment", "web", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
  await eventuallyPasses(
    async () => {
      const { code, stdout, stderr } = await runCli([...args, "-o", "json"]);
      expect(stderr).toBe("");
      expect(code).toBe(0);
      const status = statusSchema.parse(JSON.parse(stdout));
      expect(status).toEqual({
        replicas: 4,
        clusters: [
          { cluster: "east", wanted: 1, has: 1, statuses: { Running: 1 } },
          { cluster: "west", wanted: 2, has: 2, statuses: { Running: 2 } },
        ],
        pending: [
          {
            pods: [expect.stringMatching(/^web-/)],
            reason: "NotPlaced",
            message: "east: has 1 of them, its maxReplicas; west: has 2 of them, its maxReplicas",
          },
        ],
      });
    },
    { ...patient, intervalMs: 1000 },
  );
  const missing = await runCli(["status", "job", "web", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`]);
  expect(missing).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`Job ${namespace}/web: is not on the host`),
  });
});
