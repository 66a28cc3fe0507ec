import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ends, stays, template } from "../support/builders/workload.ts";
import { kubeconfigText } from "../support/clusters/kubeconfig.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl, saidNo } from "../support/harness/kubectl.ts";
import { serveMetricsApi } from "../support/harness/metrics-api.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { pristine, removeLegation } from "../support/harness/pristine.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { type CliResult, ROOT, runCli } from "../support/legation/cli.ts";
import { LegationRun, legationOn, legationProcessOn } from "../support/legation/process.ts";
import { type Legation, startLegation } from "../support/legation/start.ts";

const KINDS =
  "customresourcedefinitions,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,configmaps," +
  "leases,nodes,namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings," +
  "validatingwebhookconfigurations,mutatingwebhookconfigurations,deployments,services,poddisruptionbudgets";

let host: Cluster;
let west: Cluster;
let east: Cluster;
// No server listens there: the tests create no object that the webhook is called for.
const WEBHOOK_URL = "https://127.0.0.1:1";

/** Returns all objects of a cluster whose name or namespace is Legation's. */
async function traces(cluster: Cluster): Promise<string[]> {
  const names = await kubectl(cluster, [
    "get",
    KINDS,
    "-A",
    "--ignore-not-found",
    "-o",
    'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\\n"}{end}',
  ]);
  return names.split("\n").filter((line) => line.includes("legation"));
}

function tracesOfAll(...clusters: readonly Cluster[]): Promise<string[][]> {
  return Promise.all(clusters.map(traces));
}

/** A claim, and a pod for which it is created in a member, where it waits for a volume. */
function claimAndUser(member: string): object[] {
  const resources = { requests: { storage: "1Gi" } };
  return [
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "by-hand", resources },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "user", annotations: { "legation.dev/clusters": member } },
      spec: {
        containers: [{ name: "main", image: "busybox" }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
      },
    },
  ];
}

function join(member: Cluster, ...args: string[]): Promise<CliResult> {
  return legationOn(host, "join", member.name, "--member-kubeconfig", member.kubeconfig, ...args);
}

beforeAll(async () => {
  host = hostCluster();
  west = memberCluster("west");
  east = memberCluster("east");
  await pristine(host, west, east);
});

afterAll(async () => {
  await removeLegation(host);
});

describe("legation install", () => {
  interface Installed {
    readonly clusterName: string;
    readonly objects: readonly { readonly kind: string; readonly change: string }[];
  }

  const installed = ({ code, stdout, stderr }: CliResult): Installed => {
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  };
  const install = async (...args: string[]): Promise<Installed> =>
    installed(await legationOn(host, "install", "-o", "json", ...args));

  test("creates everything once and changes nothing when it runs again", async () => {
    const first = installed(await legationProcessOn(host, "install", "-o", "json", "--cluster-name", "berlin"));
    expect(first.objects.every(({ change }) => change === "created")).toBe(true);
    expect(first.objects.at(-1)?.kind).toBe("MutatingWebhookConfiguration");
    const second = await install();
    expect(second.clusterName).toBe("berlin");
    expect(second.objects).toHaveLength(first.objects.length);
    expect(second.objects.filter(({ change }) => change !== "unchanged")).toEqual([]);
  });

  test("keeps the replicas and resources that an operator set on a Deployment", async () => {
    const deployment = ["-n", "legation-system", "deployment/legation-webhook"];
    await kubectl(host, ["scale", ...deployment, "--replicas=3"]);
    await kubectl(host, ["set", "resources", ...deployment, "--limits=memory=1Gi"]);
    const again = await install("--image", "registry.example/legation:next");
    const changed = again.objects.filter(({ change }) => change !== "unchanged").map(({ kind }) => kind);
    expect(changed).toEqual(["Deployment", "Deployment"]);
    const { spec } = JSON.parse(await kubectl(host, ["get", ...deployment, "-o", "json"]));
    const [container] = spec.template.spec.containers;
    expect((await install()).objects.filter(({ change }) => change !== "unchanged")).toEqual([]);
    expect(spec.replicas).toBe(3);
    expect(container).toMatchObject({
      image: "registry.example/legation:next",
      resources: { limits: { memory: "1Gi" }, requests: { memory: expect.any(String) } },
    });
  });

  test("does not guess which image of a private registry has this version", async () => {
    const controller = ["-n", "legation-system", "deployment/legation-controller"];
    await kubectl(host, ["label", ...controller, "--overwrite", "app.kubernetes.io/version=0.0.1"]);
    const { code, stderr } = await legationProcessOn(host, "install");
    expect(code).toBe(2);
    expect(stderr).toContain("the cluster runs registry.example/legation:next, which is version 0.0.1, and this is");
    await install("--image", "registry.example/legation:next");
    await install();
  });

  test("refuses a cluster that has a real node with a virtual node's name, before it writes anything", async () => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "legation-control-plane" } };
    await kubectl(host, ["create", "-f", "-"], { input: JSON.stringify(node) });
    onTestFinished(async () => {
      await kubectl(host, ["delete", "node", node.metadata.name]);
    });
    const { code, stderr } = await legationOn(host, "install", "--cluster-name", "paris");
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining(": legation-control-plane") });
    expect(await kubectl(host, ["get", "-n", "legation-system", "configmap/legation", "-o", "json"])).toContain(
      "berlin",
    );
  });

  test("moves a webhook that was applied to the cluster out of it, and back", async () => {
    const configuration = "mutatingwebhookconfiguration/legation";
    const applied = JSON.parse(await kubectl(host, ["get", configuration, "-o", "json"]));
    await kubectl(host, ["delete", configuration]);
    const { name, labels } = applied.metadata;
    const bare = { ...applied, metadata: { name, labels } };
    await kubectl(host, ["apply", "-f", "-"], { input: JSON.stringify(bare) });
    const targets = async (): Promise<string[][]> => {
      const { webhooks } = JSON.parse(await kubectl(host, ["get", configuration, "-o", "json"]));
      return webhooks.map(({ clientConfig }: { clientConfig: object }) => Object.keys(clientConfig));
    };
    await install("--webhook-url", WEBHOOK_URL);
    for (const keys of await targets()) expect(keys).toEqual(["url"]);
    await install();
    for (const keys of await targets()) expect(keys).toEqual(["url"]);
    await install("--image", "registry.example/legation:next");
    for (const keys of await targets()) expect(keys).toEqual(["service"]);
  });

  test("keeps the caBundle that the webhook process wrote, and removes what another version installed", async () => {
    const caBundle = btoa(host.caData);
    const added = ["of-another-version.legation.dev", "somebody-elses.example.com"].map((name) => ({
      name,
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
      clientConfig: { url: `${WEBHOOK_URL}/mutate/all` },
    }));
    const ours = { name: "pods-all.legation.dev", clientConfig: { caBundle } };
    const patch = JSON.stringify({ webhooks: [ours, ...added] });
    await kubectl(host, ["patch", "mutatingwebhookconfiguration", "legation", "--type=strategic", "-p", patch]);
    await kubectl(host, ["create", "clusterrole", "legation-of-old", "--verb=get", "--resource=pods"]);
    const labels = ["app.kubernetes.io/managed-by=legation", "app.kubernetes.io/part-of=legation"];
    await kubectl(host, ["label", "clusterrole", "legation-of-old", ...labels]);
    const moved = await install("--webhook-url", WEBHOOK_URL);
    const removed = moved.objects.filter(({ change }) => change === "removed").map(({ kind }) => kind);
    // Objects that this kind of installation does not need, and those of another version.
    expect(removed).toEqual(expect.arrayContaining(["Deployment", "Service", "PodDisruptionBudget", "ClusterRole"]));
    const configuration = await kubectl(host, ["get", "mutatingwebhookconfiguration", "legation", "-o", "json"]);
    const { webhooks }: { webhooks: { name: string; clientConfig: Record<string, unknown> }[] } =
      JSON.parse(configuration);
    expect(webhooks.find(({ name }) => name === "pods-all.legation.dev")?.clientConfig).toEqual({
      url: `${WEBHOOK_URL}/mutate/all`,
      caBundle,
    });
    const names = webhooks.map(({ name }) => name);
    expect(names).not.toContain("of-another-version.legation.dev");
    expect(names).toContain("somebody-elses.example.com");
  });
});

describe("legation join while no controller runs", () => {
  test("stays joined, and says so, when the controller does not report on the Cluster; unjoin removes all", async () => {
    const before = await tracesOfAll(host, west);
    const { code, stderr } = await join(west, "--timeout", "1s");
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringContaining("no controller reported on it within 1 s"),
    });
    expect(await kubectl(host, ["get", "clusters.legation.dev", "-o", "name"])).toContain("/west");
    const left = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
    await eventuallyPasses(async () => expect(await tracesOfAll(host, west)).toEqual(before));
  });

  test.each([
    [["SIGINT"], 130],
    [["SIGTERM"], 143],
    // A Ctrl-C under npm run arrives twice.
    [["SIGINT", "SIGINT"], 130],
  ] as const)("ends on %j with %d while it waits, and stays joined", async (signals, code) => {
    const process = new LegationRun(host, ["join", "west", "--member-kubeconfig", west.kubeconfig]);
    await process.untilStderr("waiting until it is Ready");
    expect(await process.interrupt(...signals)).toBe(code);
    expect(await kubectl(host, ["get", "clusters.legation.dev", "-o", "name"])).toContain("/west");
    const left = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
  });

  test.each([
    ["the host itself", () => ["self", "--member-kubeconfig", host.kubeconfig], 3, "the member is the host itself"],
    ["a kubeconfig that is not there", () => ["west", "--member-kubeconfig", "/none"], 1, "/none"],
    [
      "a member that does not answer",
      () => ["west", "--member-kubeconfig", host.kubeconfig, "--member-context", "x"],
      1,
      "no context x",
    ],
  ])("refuses %s before it creates anything", async (_case, args, code, message) => {
    const before = await traces(host);
    const result = await legationOn(host, "join", ...args());
    expect(result.stderr).toContain(message);
    expect(result.code).toBe(code);
    expect(await traces(host)).toEqual(before);
  });
});

const HOME = ["--home-api-server", "https://203.0.113.7:6443"];

describe("the life of a member", () => {
  let running: Legation;
  let namespace: string;

  beforeAll(async () => {
    running = await startLegation({ host, members: {} });
    namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "all" }, onFinished: () => {} });
  });
  afterAll(async () => {
    await kubectl(host, ["delete", "namespace", namespace, "--ignore-not-found"]);
    await running.stop();
  });

  const pods = (): Promise<string> =>
    kubectl(host, ["-n", namespace, "get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"]);

  test("has two members Ready after they join", async () => {
    const first = await join(west, "--labels", "region=eu,tier=gold");
    const second = await legationProcessOn(host, "join", "east", "--member-kubeconfig", east.kubeconfig, ...HOME);
    expect(first.code, first.stderr).toBe(0);
    expect(second.code, second.stderr).toBe(0);
    const status = await legationOn(host, "status", "-o", "json");
    expect(JSON.parse(status.stdout)).toMatchObject({
      clusters: [
        { name: "east", ready: "True", version: "v1.36.3", nodes: 3 },
        { name: "west", ready: "True" },
      ],
      waiting: { unplaced: 0 },
    });
    expect(await kubectl(host, ["get", "cluster", "west", "-o", "jsonpath={.metadata.labels}"])).toContain(
      '"tier":"gold"',
    );
    expect(await kubectl(host, ["get", "cluster", "east", "-o", "jsonpath={.spec.homeAPI}"])).toBe(
      '{"server":"https://203.0.113.7:6443"}',
    );
  });

  test("refuses to join a member under a second name", async () => {
    const before = await tracesOfAll(host, west);
    const elsewhere = await legationOn(host, "join", "west", "--member-kubeconfig", east.kubeconfig);
    expect(elsewhere).toMatchObject({ code: 3, stderr: expect.stringContaining("is not the cluster of") });
    const other = await legationOn(host, "join", "west2", "--member-kubeconfig", west.kubeconfig);
    expect(other).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("this member has joined already, as west"),
    });
    expect(await tracesOfAll(host, west)).toEqual(before);
  });

  test("puts a member that joins again into a network, keeps it there, and takes it out", async () => {
    const networkOf = (): Promise<string> =>
      kubectl(host, ["get", "clusters.legation.dev", "west", "-o", "jsonpath={.spec.network}"]);
    const asked: [string[], string][] = [
      [["--network", "corp"], "corp"],
      [[], "corp"],
      [["--network", ""], ""],
    ];
    for (const [args, network] of asked) {
      const { code, stderr } = await join(west, ...args);
      expect(code, stderr).toBe(0);
      expect(await networkOf()).toBe(network);
    }
    expect(await join(west, "--network", "Corp")).toMatchObject({ code: 2 });
  });

  test("updates the rights in a member that joins again", async () => {
    const before = await tracesOfAll(host, west);
    const role = before[1]?.find((line) => line.startsWith("ClusterRole "))?.split("/")[1] ?? "";
    const rules = (): Promise<string> => kubectl(west, ["get", "clusterrole", role, "-o", "jsonpath={.rules}"]);
    const wanted = await rules();
    await kubectl(west, ["patch", "clusterrole", role, "--type=json", '-p=[{"op":"remove","path":"/rules/0"}]']);
    const again = await join(west);
    expect(again.code, again.stderr).toBe(0);
    expect(await rules()).toBe(wanted);
    expect(await tracesOfAll(host, west)).toEqual(before);
  });

  test("replaces the host's credentials when a member joins again, and a running pod stays as it is", async () => {
    const secret = ["-n", "legation-system", "secret/member-west"];
    const stored = async (): Promise<string> =>
      atob(await kubectl(host, ["get", ...secret, "-o", "jsonpath={.data.kubeconfig}"]));
    const tokenOf = (text: string): string => /token: (\S+)/.exec(text)?.[1] ?? "";
    const inIt = ["-n", namespace];
    const run = [
      "run",
      "stays",
      "--image=busybox",
      "--annotations=kwok.test/outcome=running,legation.dev/clusters=west",
    ];
    await kubectl(host, [...inIt, ...run]);
    await kubectl(host, [...inIt, "wait", "pod/stays", "--for=condition=Ready"]);
    const pod = (): Promise<string> =>
      kubectl(host, [...inIt, "get", "pod", "stays", "-o", "jsonpath={.metadata.uid} {.status.phase}"]);
    const before = await pod();
    const first = await stored();
    const again = await join(west, "--labels", "region=us");
    expect(again.code, again.stderr).toBe(0);
    expect(tokenOf(await stored())).not.toBe(tokenOf(first));
    expect((await stored()).replace(tokenOf(await stored()), tokenOf(first))).toBe(first);
    expect(await kubectl(host, ["get", "cluster", "west", "-o", "jsonpath={.metadata.labels.region}"])).toBe("us");
    const write = (text: string): Promise<string> =>
      kubectl(host, ["patch", ...secret, "--type=merge", `-p=${JSON.stringify({ data: { kubeconfig: btoa(text) } })}`]);
    await write(first.replace(tokenOf(first), "ended"));
    expect(await join(west)).toMatchObject({ code: 0 });
    expect(tokenOf(await stored()).split(".")).toHaveLength(3);
    await kubectl(host, ["delete", ...secret]);
    const restored = await join(west, "--member-server", west.proxiedServer);
    expect(restored.code, restored.stderr).toBe(0);
    expect(await join(west)).toMatchObject({ code: 0 });
    expect(await stored()).toContain(`server: ${west.proxiedServer}`);
    const moved = await join(west, "--member-server", west.server);
    expect(moved.code, moved.stderr).toBe(0);
    expect(await stored()).toContain(`server: ${west.server}`);
    // Credentials without this annotation belong to the operator and stay.
    await kubectl(host, ["annotate", ...secret, "legation.dev/token-expires-"]);
    const own = await join(west, "--member-server", west.proxiedServer);
    expect(own).toMatchObject({ code: 3, stderr: expect.stringContaining("has credentials of your own") });
    const kept = await stored();
    expect(await join(west)).toMatchObject({ code: 0, stderr: expect.stringContaining("so it is your own") });
    expect(await stored()).toBe(kept);
    await kubectl(host, ["annotate", ...secret, "legation.dev/token-expires=2001-01-01T00:00:00Z"]);
    expect(await join(west)).toMatchObject({ code: 0 });
    expect(await stored()).not.toBe(kept);
    const status = await legationOn(host, "status");
    expect(status.stdout).toMatch(/^west +True/m);
    expect(await pod()).toBe(before);
    await kubectl(host, [...inIt, "delete", "pod", "stays", "--grace-period=1"]);
  });

  test("grants the host's account in the member what the manifests say, and no more", async () => {
    const can = async (...what: string[]): Promise<boolean> => {
      const name = (await traces(west)).find((line) => line.startsWith("ClusterRole "))?.split("/")[1];
      const as = `--as=system:serviceaccount:legation-system:${name}`;
      const answer = await kubectl(west, ["auth", "can-i", as, ...what]).catch(saidNo);
      return answer.trim() === "yes";
    };
    expect(await can("create", "pods", "-n", "default")).toBe(true);
    expect(await can("get", "secrets", "-n", "kube-system")).toBe(false);
    expect(await can("create", "serviceaccounts", "--subresource=token", "-n", "kube-system")).toBe(false);
    expect(await can("update", "deployments", "-n", "default")).toBe(false);
    expect(await can("delete", "nodes")).toBe(false);
    expect(await can("delete", "clusterroles/cluster-admin")).toBe(false);
  });

  test("shows where one pod is with status", async () => {
    await kubectl(host, ["-n", namespace, "create", "configmap", "settings", "--from-literal=color=blue"]);
    await kubectl(host, ["-n", namespace, "create", "deployment", "web", "--image=busybox", "--replicas=4"]);
    await kubectl(host, ["-n", namespace, "set", "env", "deployment/web", "--from=configmap/settings"]);
    await kubectl(host, ["-n", namespace, "rollout", "status", "deployment", "web"]);
    const [pod = ""] = (
      await kubectl(host, ["-n", namespace, "get", "pods", "-o", "jsonpath={.items[*].metadata.name}"])
    ).split(" ");
    const { stdout } = await legationOn(host, "status", "pod", pod, "-n", namespace);
    expect(stdout).toMatch(/admitted as a proxy/);
    expect(stdout).toMatch(/scheduled in (west|east)[\s\S]*bound to node legation-(west|east)/);
    expect(stdout).toMatch(/containers started/);
    const table = await legationProcessOn(host, "status");
    expect(table.stdout).toMatch(
      /^NAME +READY +REACHED +VERSION +NODES +CPU FREE\/ALL +MEMORY FREE\/ALL +PODS RUN\/ALL +AGE$/m,
    );
    expect(table.stdout).not.toContain("\u001B");
  });

  test("permits status to the viewer role, and a workload's status to users who may read the workload", async () => {
    const account = `system:serviceaccount:${namespace}:looker`;
    await kubectl(host, ["-n", namespace, "create", "serviceaccount", "looker"]);
    const binding = `${namespace}-looks`;
    await kubectl(host, [
      "create",
      "clusterrolebinding",
      binding,
      "--clusterrole=legation-viewer",
      `--serviceaccount=${namespace}:looker`,
    ]);
    onTestFinished(async () => void (await kubectl(host, ["delete", "clusterrolebinding", binding])));
    await kubectl(host, ["-n", namespace, "create", "rolebinding", "views", "--clusterrole=view", `--user=${account}`]);
    const token = (await kubectl(host, ["-n", namespace, "create", "token", "looker"])).trim();
    const folder = mkdtempSync(joinPath(tmpdir(), "legation-looker-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const kubeconfig = joinPath(folder, "kubeconfig");
    writeFileSync(
      kubeconfig,
      kubeconfigText({ name: "host", server: host.server, caData: host.caData, user: "looker", token }),
    );
    const ask = (...what: string[]): Promise<CliResult> => runCli(["status", ...what, `--kubeconfig=${kubeconfig}`]);
    expect(await ask()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^west +True/m) });
    const deployment = await ask("deployment", "web", "-n", namespace);
    expect(deployment).toMatchObject({ code: 0, stdout: expect.stringContaining("west") });
  });

  test("refuses to unjoin while pods run in the member, and leaves the virtual node schedulable", async () => {
    const { code, stderr } = await legationOn(host, "unjoin", "west");
    expect(code).toBe(3);
    expect(stderr).toMatch(new RegExp(`pods? runs? there: ${namespace}/web-`));
    expect(await kubectl(host, ["get", "node", "legation-west", "-o", "jsonpath={.spec.unschedulable}"])).toBe("");
  });

  test("refuses to unjoin with the kubeconfig of another member, and changes nothing there", async () => {
    const before = await tracesOfAll(host, west, east);
    const run = await legationOn(host, "unjoin", "west", "--drain", "--member-kubeconfig", east.kubeconfig);
    expect(run).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("is not the cluster of --member-kubeconfig: that has joined as east"),
    });
    expect(await tracesOfAll(host, west, east)).toEqual(before);
    expect(await kubectl(host, ["get", "node", "legation-west", "-o", "jsonpath={.spec.unschedulable}"])).toBe("");
  });

  test("moves the pods with unjoin --drain, and leaves only claims, their namespace, and namespaces that others use", async () => {
    const configMaps = ["-n", namespace, "get", "configmaps", "-o", "name"];
    const services = ["-n", namespace, "get", "services", "-o", "name"];
    await kubectl(host, ["-n", namespace, "expose", "deployment", "web", "--port=80"]);
    await eventuallyPasses(async () => expect(await kubectl(west, services)).toContain("service/web"));
    expect(await kubectl(west, configMaps)).toContain("configmap/settings");
    await kubectl(west, ["-n", namespace, "create", "configmap", "not-ours"]);
    const claims = ["-n", namespace, "get", "persistentvolumeclaims", "-o", "name"];
    for (const object of claimAndUser("west")) {
      await kubectl(host, ["-n", namespace, "create", "-f", "-"], { input: JSON.stringify(object) });
    }
    await eventuallyPasses(async () => expect(await kubectl(west, claims)).toBe("persistentvolumeclaim/data\n"));
    await kubectl(host, ["-n", namespace, "delete", "pod", "user", "--now"]);
    const metrics = await serveMetricsApi(west);
    onTestFinished(metrics.stop);
    const run = await legationProcessOn(host, "unjoin", "west", "--drain", "--member-kubeconfig", west.kubeconfig);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toMatch(new RegExp(`still in west: Namespace ${namespace}: it holds .*ConfigMap not-ours`));
    expect(run.stdout).toContain(
      `still in west: PersistentVolumeClaim ${namespace}/data: it holds data; when nothing needs it`,
    );
    expect(await kubectl(west, claims)).toBe("persistentvolumeclaim/data\n");
    expect(await kubectl(west, configMaps)).not.toContain("configmap/settings");
    expect(await kubectl(west, services)).toBe("");
    expect(await traces(west)).toEqual([]);
    expect((await traces(host)).filter((line) => line.includes("west"))).toEqual([]);
    await kubectl(host, ["-n", namespace, "rollout", "status", "deployment", "web"]);
    expect(new Set((await pods()).split(" "))).toEqual(new Set(["legation-east"]));
    await kubectl(west, ["-n", namespace, "delete", "configmap/not-ours", "persistentvolumeclaim/data"]);
    const again = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(again).toMatchObject({ code: 0, stdout: expect.not.stringContaining("still in west") });
    expect(await kubectl(west, ["get", "namespaces"])).not.toContain(namespace);
  });

  test("reports that a member was never joined", async () => {
    expect(await legationOn(host, "unjoin", "nowhere")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("joined: east"),
    });
  });

  test("does not touch a member that has joined under another name when unjoin finds its credentials", async () => {
    const before = await traces(east);
    const stored = JSON.parse(
      await kubectl(host, ["-n", "legation-system", "get", "secret", "member-east", "-o", "json"]),
    );
    const { annotations, namespace: system } = stored.metadata;
    const labels = { "legation.dev/cluster": "gone" };
    const left = { ...stored, metadata: { name: "member-gone", namespace: system, labels, annotations } };
    await kubectl(host, ["create", "-f", "-"], { input: JSON.stringify(left) });
    const run = await legationOn(host, "unjoin", "gone");
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toContain("it has joined as east, too, and leaves with that");
    expect(await traces(east)).toEqual(before);
    expect((await traces(host)).filter((line) => line.includes("member-gone"))).toEqual([]);
    expect((await legationOn(host, "status")).stdout).toMatch(/^east +True/m);
  });

  test("unjoins with --force without the member and without the controller", async () => {
    const cut = await legationOn(host, "join", "west", "--member-kubeconfig", west.proxiedKubeconfig);
    expect(cut.code, cut.stderr).toBe(0);
    await kubectl(host, ["-n", namespace, "scale", "deployment", "web", "--replicas=8"]);
    await kubectl(host, ["-n", namespace, "rollout", "status", "deployment", "web"]);
    expect(await pods()).toContain("legation-west");
    await west.proxy.cut();
    await running.controller.stop();
    try {
      const run = await legationProcessOn(host, "unjoin", "west", "--force", "--timeout=2s");
      expect(run.code, run.stderr).toBe(0);
      expect(run.stderr).toContain("released in the controller's place");
      expect(run.stdout).toContain("still in west: everything");
      expect((await traces(host)).filter((line) => line.includes("west"))).toEqual([]);
    } finally {
      await west.proxy.heal();
    }
    // An operator with the member's kubeconfig can still clean it.
    const clean = await legationOn(host, "unjoin", "west", "--member-kubeconfig", west.kubeconfig);
    expect(clean.code, clean.stderr).toBe(0);
    expect(await traces(west)).toEqual([]);
    await running.controller.start();
    await kubectl(host, ["-n", namespace, "rollout", "status", "deployment", "web"]);
  });

  // The other tests' objects go with this: a second attempt would find nothing.
  test("refuses to uninstall while delegated pods run; with --force also frees a namespace that waited for Legation", {
    retry: 0,
  }, async () => {
    await kubectl(host, ["-n", namespace, "scale", "deployment", "web", "--replicas=2"]);
    await eventually(async () => (await pods()).split(" ").length === 2);
    const refused = await legationProcessOn(host, "uninstall");
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("2 delegated pods have not finished") });
    expect(await kubectl(host, ["get", "mutatingwebhookconfigurations"])).toContain("legation");

    await running.stop();
    await kubectl(host, ["delete", "namespace", namespace, "--wait=false"]);
    await eventually(async () => (await kubectl(host, ["get", "namespace", namespace])).includes("Terminating"));
    const left = await legationOn(host, "unjoin", "east", "--force", "--timeout=2s");
    expect(left.code, left.stderr).toBe(0);
    const run = await legationOn(host, "uninstall", "--force");
    expect(run.code, run.stderr).toBe(0);
    expect(await traces(host)).toEqual([]);
    await eventually(async () => !(await kubectl(host, ["get", "namespaces"])).includes(namespace));
    expect(await kubectl(east, ["get", "pods", "-A"])).not.toContain(namespace);
    expect((await traces(east)).filter((line) => !line.startsWith("Namespace") && !line.includes("default"))).toEqual([
      expect.stringContaining("kube-root-ca.crt"),
    ]);
  });
});

describe("legation uninstall", () => {
  test("needs no --force after unjoin when all pods have finished, and leaves pods of the host without its marks", async () => {
    const running = await startLegation({ host, members: { east }, proxied: false });
    onTestFinished(running.stop);
    const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "all" } });
    const annotation = `--annotations=${KWOK_ANNOTATIONS.outcome}=succeeded`;
    await kubectl(host, ["-n", namespace, "run", "once", "--image=busybox", "--restart=Never", annotation]);
    const overflows = "--annotations=legation.dev/mode=overflow";
    await kubectl(host, ["-n", namespace, "run", "here", "--image=busybox", overflows, "--labels=app=here"]);
    await kubectl(host, ["-n", namespace, "wait", "pod/once", "--for=jsonpath={.status.phase}=Succeeded"]);
    const labelsOf = (pod: string): Promise<string> =>
      kubectl(host, ["-n", namespace, "get", "pod", pod, "-o", "jsonpath={.metadata.labels}"]);
    expect(JSON.parse(await labelsOf("here"))).toEqual({ app: "here", "legation.dev/proxy": "overflow" });
    const refused = { code: 3, stderr: expect.stringContaining("has 1 member: east") };
    expect(await legationOn(host, "uninstall")).toMatchObject(refused);
    const left = await legationOn(host, "unjoin", "east", "--member-kubeconfig", east.kubeconfig);
    expect(left.code, left.stderr).toBe(0);
    await running.stop();
    // An aggregated API without a server would keep every namespace.
    const access = await legationOn(host, "install", "--access", "--access-address=localhost:1");
    expect(access.code, access.stderr).toBe(0);
    await kubectl(host, ["apply", "-k", joinPath(ROOT, "manifests", "ui")]);

    const run = await legationProcessOn(host, "uninstall", "-o", "json");
    expect(run.code, run.stderr).toBe(0);
    expect(JSON.parse(run.stdout).namespaces).toEqual([namespace]);
    expect(run.stderr).toContain(`Namespace ${namespace}: label legation.dev/delegation=all taken off`);
    expect(await kubectl(host, ["-n", namespace, "get", "pods", "-o", "name"])).toBe("pod/here\n");
    expect(JSON.parse(await labelsOf("here"))).toEqual({ app: "here" });
    expect(await traces(host)).toEqual([]);
    expect(await kubectl(host, ["get", "apiservice", "v1.access.legation.dev", "--ignore-not-found"])).toBe("");
    expect(await legationOn(host, "uninstall")).toMatchObject({ code: 0 });
  });

  test("with --force deletes whole Jobs that have not finished, after unjoin --force had those of a member fail", async () => {
    const running = await startLegation({ host, members: { east }, proxied: false });
    onTestFinished(running.stop);
    const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "annotated" } });
    const annotations = { "legation.dev/whole": "true" };
    const spec = (pod: Record<string, string>) => ({ template: template({ restartPolicy: "Never" }, pod) });
    const apply = (kind: string, name: string, parts: object): Promise<string> => {
      const input = JSON.stringify({ apiVersion: "batch/v1", kind, ...{ metadata: { name, annotations }, ...parts } });
      return kubectl(host, ["-n", namespace, "create", "-f", "-"], { input });
    };
    const wait = (job: string, what: string): Promise<string> =>
      kubectl(host, ["-n", namespace, "wait", `job/${job}`, `--for=${what}`, "--timeout=30s"]);
    await apply("Job", "done", { spec: spec(ends(0)) });
    await apply("Job", "runs", { spec: spec(stays("running")) });
    const jobTemplate = { metadata: { annotations }, spec: spec(ends(0)) };
    await apply("CronJob", "nightly", { metadata: { name: "nightly" }, spec: { schedule: "0 0 1 1 *", jobTemplate } });
    await wait("done", "condition=complete");
    await wait("runs", "jsonpath={.status.active}=1");

    const named = expect.stringContaining(`1 whole Job runs there: Job ${namespace}/runs`);
    expect(await legationOn(host, "unjoin", "east")).toMatchObject({ code: 3, stderr: named });
    const late = expect.stringContaining(`1 whole Job had not ended after 1 s: Job ${namespace}/runs`);
    expect(await legationOn(host, "unjoin", "east", "--drain", "--timeout=1s")).toMatchObject({ stderr: late });
    const forced = await legationOn(host, "unjoin", "east", "--force", "--timeout=1s");
    expect(forced).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Failed (ClusterRemoved): Job ${namespace}/runs`),
    });
    await wait("runs", "condition=failed");
    await apply("Job", "late", { spec: spec(ends(0)) });
    await running.stop();

    const refused = expect.stringContaining(`1 whole Job has not finished: Job ${namespace}/late`);
    expect(await legationOn(host, "uninstall")).toMatchObject({ code: 3, stderr: refused });
    const run = await legationOn(host, "uninstall", "--force");
    expect(run.code, run.stderr).toBe(0);
    expect(run.stderr).toContain(`Job ${namespace}/late had not finished, and is deleted: nothing makes it again`);
    expect(run.stderr).toContain(`this cluster runs the next Jobs of ${namespace}/nightly`);
    const left = JSON.parse(await kubectl(host, ["-n", namespace, "get", "jobs,cronjobs", "-o", "json"])).items;
    expect(left.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
      "done",
      "runs",
      "nightly",
    ]);
    expect(left[0].status).toMatchObject({ succeeded: 1 });
    for (const { metadata } of left.slice(0, 2)) {
      // The API server gives a Job the labels of its template.
      expect([metadata.finalizers, metadata.labels, metadata.annotations]).toEqual([
        undefined,
        { app: "web" },
        annotations,
      ]);
    }
    expect(left[2].spec.jobTemplate.spec.managedBy).toBeUndefined();
    expect(await traces(host)).toEqual([]);
  });
});
