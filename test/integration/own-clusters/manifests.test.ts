import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { loadManifests, type Manifest, parseManifests } from "../../../src/cli/shared/manifests.ts";
import { apiRequest } from "../../support/clusters/api-request.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { MANIFESTS, startInstalledCluster } from "../../support/harness/installed.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { ROOT } from "../../support/legation/cli.ts";

const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";
const WEBHOOK = "system:serviceaccount:legation-system:legation-webhook";
const MEMBER_HOST = "host-of-a-member";

let host: Cluster;

beforeAll(async () => {
  host = await startInstalledCluster("manifests", afterFile);
  await run(["apply", "-k", join(MANIFESTS, "member")]);
  await run(["create", "clusterrolebinding", MEMBER_HOST, "--clusterrole=legation-host", `--user=${MEMBER_HOST}`]);
});

function run(args: readonly string[], { as, input }: { as?: string; input?: object } = {}): Promise<string> {
  const identity = as === undefined ? [] : [`--as=${as}`];
  return kubectl(host, [...args, ...identity], input === undefined ? {} : { input: JSON.stringify(input) });
}

async function stored(...args: string[]): Promise<unknown> {
  return JSON.parse(await run(["get", ...args, "-o", "json"]));
}

describe("the manifests", () => {
  const identity = ({ apiVersion, kind, metadata }: Manifest): string =>
    `${apiVersion} ${kind} ${metadata.namespace ?? ""}/${metadata.name}`;

  test("are the same for `kubectl apply -k` as for `legation install`", async () => {
    const built = parseManifests(await run(["kustomize", MANIFESTS]), "kubectl kustomize");
    const loaded = await loadManifests(MANIFESTS);
    expect(new Set(loaded.map(identity)).size).toBe(loaded.length);
    expect(loaded.map(identity).sort()).toEqual(built.map(identity).sort());
  });

  test("are found by `legation uninstall`, whoever applied them", async () => {
    for (const { metadata } of await loadManifests(MANIFESTS)) {
      expect(metadata.labels, metadata.name).toMatchObject({ "app.kubernetes.io/managed-by": "legation" });
    }
  });

  test("can be applied again without a change", async () => {
    // Exit code 0: no difference.
    await expect(run(["diff", "-k", MANIFESTS])).resolves.toBe("");
  });

  test("run pods that the restricted profile of their namespace admits", async () => {
    const selector = "-lapp.kubernetes.io/name=legation";
    await eventually(async () => {
      const names = await run(["get", "pods", "-n", "legation-system", selector, "-o", "name"]);
      expect(names.trim().split("\n")).toHaveLength(4);
      return true;
    });
  });
});

describe("the rights of the manifests' accounts", () => {
  type Case = readonly [string, "yes" | "no", string];

  test.each<Case>([
    [CONTROLLER, "yes", "delete pods -n default"],
    [CONTROLLER, "yes", "patch pods/status -n default"],
    [CONTROLLER, "yes", "create pods/binding -n default"],
    [CONTROLLER, "yes", "create nodes"],
    [CONTROLLER, "yes", "patch leases.coordination.k8s.io -n kube-node-lease"],
    [CONTROLLER, "yes", "update leases.coordination.k8s.io/legation-controller -n legation-system"],
    [CONTROLLER, "yes", "patch secrets -n legation-system"],
    [CONTROLLER, "yes", "patch clusters.legation.dev/status"],
    [CONTROLLER, "yes", "create serviceaccounts/token -n default"],
    [CONTROLLER, "yes", "watch configmaps/kube-root-ca.crt -n kube-system"],
    [CONTROLLER, "yes", "get configmaps/cluster-info -n kube-public"],
    [CONTROLLER, "yes", "watch configmaps -n default"],
    [CONTROLLER, "yes", "watch serviceaccounts -n default"],
    [CONTROLLER, "yes", "patch events -n default"],
    [CONTROLLER, "no", "list events -n default"],
    [CONTROLLER, "no", "create pods -n default"],
    [CONTROLLER, "no", "create pods/exec -n default"],
    [CONTROLLER, "yes", "watch secrets -n default"],
    [CONTROLLER, "no", "get secrets/login -n default"],
    [CONTROLLER, "no", "patch secrets -n default"],
    [CONTROLLER, "no", "create secrets -n legation-system"],
    [CONTROLLER, "no", "update leases.coordination.k8s.io/other -n kube-system"],
    [CONTROLLER, "no", "patch namespaces"],
    [CONTROLLER, "no", "create clusters.legation.dev"],
    [CONTROLLER, "yes", "watch placementdefaults.legation.dev"],
    [CONTROLLER, "no", "patch placementdefaults.legation.dev"],
    [CONTROLLER, "no", "create clusterrolebindings.rbac.authorization.k8s.io"],
    [WEBHOOK, "yes", "update secrets/legation-webhook-certificate -n legation-system"],
    [WEBHOOK, "yes", "patch mutatingwebhookconfigurations.admissionregistration.k8s.io/legation"],
    [WEBHOOK, "yes", "patch mutatingwebhookconfigurations.admissionregistration.k8s.io/zz-legation"],
    [WEBHOOK, "yes", "patch validatingwebhookconfigurations.admissionregistration.k8s.io/legation"],
    [WEBHOOK, "no", "get secrets/member-west -n legation-system"],
    [WEBHOOK, "no", "list secrets -n legation-system"],
    [WEBHOOK, "no", "patch mutatingwebhookconfigurations.admissionregistration.k8s.io/other"],
    [WEBHOOK, "no", "list pods -n default"],
    [MEMBER_HOST, "yes", "create pods -n default"],
    [MEMBER_HOST, "yes", "get pods/log -n default"],
    [MEMBER_HOST, "yes", "watch nodes"],
    [MEMBER_HOST, "yes", "create namespaces"],
    [MEMBER_HOST, "yes", "get /readyz"],
    [MEMBER_HOST, "no", "delete namespaces"],
    [MEMBER_HOST, "yes", "create pods/exec -n default"],
    [MEMBER_HOST, "no", "create pods/eviction -n default"],
    [MEMBER_HOST, "yes", "patch pods/resize -n default"],
    [MEMBER_HOST, "yes", "patch pods/ephemeralcontainers -n default"],
    [MEMBER_HOST, "yes", "patch pods/status -n default"],
    [MEMBER_HOST, "no", "update pods/status -n default"],
    [MEMBER_HOST, "yes", "watch events -n default"],
    [MEMBER_HOST, "no", "create events -n default"],
    [MEMBER_HOST, "yes", "watch secrets -n default"],
    [MEMBER_HOST, "yes", "create secrets -n default"],
    [MEMBER_HOST, "yes", "delete configmaps -n default"],
    [MEMBER_HOST, "yes", "patch serviceaccounts -n default"],
    [MEMBER_HOST, "no", "get secrets/login -n default"],
    [MEMBER_HOST, "no", "update secrets -n default"],
    [MEMBER_HOST, "no", "create serviceaccounts/token -n legation-system"],
    [MEMBER_HOST, "no", "patch nodes"],
  ])("are exact for %s: %s, %s", async (as, expected, right) => {
    const attributes = attributesOf(right);
    const body = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: { user: as, groups: groupsOf(as), ...attributes },
    };
    const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    const answer = await apiRequest(host, "POST", path, { body });
    expect(answer.status, answer.text).toBe(201);
    const { allowed } = JSON.parse(answer.text).status;
    expect(allowed).toBe(expected === "yes");
  });
});

const SUBRESOURCES = ["status", "binding", "exec", "log", "token", "eviction", "resize", "ephemeralcontainers"];

/** Returns the attributes of `get pods.GROUP/log -n NAMESPACE`; the word after the slash may be a name, too. */
function attributesOf(right: string): object {
  const [verb = "", what = "", _, namespace] = right.split(" ");
  if (what.startsWith("/")) return { nonResourceAttributes: { verb, path: what } };
  const [full = "", part] = what.split("/");
  const [resource, ...group] = full.split(".");
  const name = part === undefined ? {} : SUBRESOURCES.includes(part) ? { subresource: part } : { name: part };
  return { resourceAttributes: { verb, group: group.join("."), resource, namespace, ...name } };
}

/** Returns the groups that the API server gives a user of this name. */
function groupsOf(user: string): string[] {
  const [, namespace] = /^system:serviceaccount:(.+):/.exec(user) ?? [];
  const own = namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  return [...own, "system:authenticated"];
}

describe("the host's API server", () => {
  const LEASE = "/apis/coordination.k8s.io/v1/namespaces/legation-system/leases/legation-controller";

  beforeAll(() => run(["apply", "-f", join(ROOT, "examples", "flow-control", "priority-level.yaml")]));

  test.each<[string, string, "GET" | "POST", string, string]>([
    ["the controller's lists", "legation-controller", "GET", "/api/v1/pods?limit=1", "legation"],
    ["what the controller reads beside resources", "legation-controller", "GET", "/version", "legation"],
    ["the leader's Lease", "legation-controller", "GET", LEASE, "legation-leases"],
    ["events of delegates", "legation-controller", "POST", "/api/v1/namespaces/default/events", "legation-events"],
    ["what the webhook reads", "legation-webhook", "GET", "/api/v1/namespaces/kube-system", "legation"],
  ])("counts %s by a flow schema of Legation's", async (_what, account, method, path, schema) => {
    const token = (await run(["create", "token", account, "-n", "legation-system"])).trim();
    const names = [
      "get",
      "flowschemas",
      "-o",
      "jsonpath={range .items[*]}{.metadata.uid} {.metadata.name}{'\\n'}{end}",
    ];
    const nameOf = new Map((await run(names)).split("\n").map((line) => line.split(" ") as [string, string]));
    await eventuallyPasses(async () => {
      const options = method === "POST" ? { body: {} } : {};
      const { headers } = await apiRequest({ ...host, token }, method, path, options);
      expect(nameOf.get(String(headers["x-kubernetes-pf-flowschema-uid"]))).toBe(schema);
    });
  });
});

describe("a Cluster", () => {
  const cluster = (name: string, spec: object = { credentialsSecret: { name: "member-west" } }): object => ({
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name },
    spec,
  });
  const create = (input: object): Promise<string> =>
    run(["create", "--dry-run=server", "-o", "json", "-f", "-"], { input });

  test("gets its defaults from the API server", async () => {
    const made: unknown = JSON.parse(await create(cluster("west")));
    expect(made).toMatchObject({
      spec: {
        credentialsSecret: { name: "member-west", key: "kubeconfig" },
        createNamespaces: true,
        scheduleTimeoutSeconds: 30,
        probe: { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
      },
    });
  });

  test.each([
    ["a name of 55 characters", cluster("w".repeat(55)), /at most 54 characters/],
    ["a name with a dot", cluster("west.example"), /is a DNS label/],
    ["no credentials", cluster("west", {}), /credentialsSecret: Required/],
    [
      "a timeout of 0",
      cluster("west", { credentialsSecret: { name: "s" }, scheduleTimeoutSeconds: 0 }),
      /greater than or equal to 1/,
    ],
    [
      "an unknown field",
      cluster("west", { credentialsSecret: { name: "s" }, colour: "red" }),
      /unknown field "spec.colour"/,
    ],
  ])("is refused with %s", async (_what, input, message) => {
    await expect(create(input)).rejects.toThrow(message);
  });

  test("shows its state in kubectl's columns", async () => {
    await run(["create", "-f", "-"], { input: cluster("shown") });
    const lastTransitionTime = "2026-11-21T00:00:00Z";
    const conditions = [{ type: "Ready", status: "True", reason: "Reachable", message: "", lastTransitionTime }];
    const status = { version: "v1.36.3", nodes: 3, pods: 12, conditions };
    await run([
      "patch",
      "cluster/shown",
      "--subresource=status",
      "--type=merge",
      `--patch=${JSON.stringify({ status })}`,
    ]);
    expect(await run(["get", "legation", "-o", "name"])).toContain("cluster.legation.dev/shown\n");
    const [head = "", row = ""] = (await run(["get", "clusters.legation.dev"])).split("\n");
    expect(head.split(/\s+/)).toEqual(["NAME", "READY", "VERSION", "NODES", "PODS", "AGE"]);
    expect(row.split(/\s+/).slice(0, 5)).toEqual(["shown", "True", "v1.36.3", "3", "12"]);
  });
});

describe("the policies", () => {
  // This test creates proxies itself.
  beforeAll(() => run(["delete", "mutatingwebhookconfiguration", "legation", "zz-legation"]));

  const template = {
    metadata: { labels: { "legation.dev/proxy": "true" }, finalizers: ["legation.dev/delegate"] },
    spec: {
      schedulerName: "legation",
      restartPolicy: "Never",
      containers: [{ name: "main", image: "registry.example/never-pulled:1" }],
    },
  };
  const job = (completions: number): object => ({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "batch" },
    spec: { parallelism: completions, completions, template },
  });

  async function proxiesOf(namespace: string, count: number): Promise<string[]> {
    return eventually(async () => {
      const names = (await run(["get", "pods", "-n", namespace, "-o", "name"]))
        .split("\n")
        .filter((name) => name !== "");
      return names.length === count ? names : undefined;
    });
  }

  const optedIn = (): Promise<string> => freshNamespace(host, { labels: { "legation.dev/delegation": "annotated" } });

  /** Releases a proxy as Legation's controller does at its end. */
  async function release(namespace: string, name: string): Promise<void> {
    const patch = JSON.stringify({ metadata: { finalizers: null } });
    await run(["patch", name, "-n", namespace, "--type=merge", `--patch=${patch}`], { as: CONTROLLER });
  }

  async function whenDeleting(namespace: string, name: string): Promise<unknown> {
    return eventually(async () => {
      const proxy = await stored(name, "-n", namespace);
      expect(proxy).toMatchObject({ metadata: { deletionTimestamp: expect.any(String) } });
      return proxy;
    });
  }

  test("let a Job see its proxies finish, release them, and delete them with itself", async () => {
    const namespace = await optedIn();
    await run(["create", "-n", namespace, "-f", "-"], { input: job(2) });
    const proxies = await proxiesOf(namespace, 2);
    for (const name of proxies) {
      const patch = JSON.stringify({ status: { phase: "Succeeded" } });
      await run(["patch", name, "-n", namespace, "--subresource=status", "--type=merge", `--patch=${patch}`]);
    }
    await run(["wait", "-n", namespace, "job/batch", "--for=condition=Complete", "--timeout=50s"]);
    for (const name of proxies) {
      // The Job controller's own finalizer is gone, Legation's is not.
      const held = { metadata: { finalizers: ["legation.dev/delegate"] } };
      expect(await stored(name, "-n", namespace)).toMatchObject(held);
    }
    await run(["delete", "job/batch", "-n", namespace, "--wait=false"]);
    for (const name of proxies) {
      await whenDeleting(namespace, name);
      await release(namespace, name);
    }
    await proxiesOf(namespace, 0);
  });

  test("let a namespace with proxies go as soon as they are released", async () => {
    const namespace = await optedIn();
    await run(["create", "-n", namespace, "-f", "-"], { input: job(1) });
    const [proxy = ""] = await proxiesOf(namespace, 1);
    await run(["delete", "namespace", namespace, "--wait=false"]);
    await whenDeleting(namespace, proxy);
    await release(namespace, proxy);
    await run(["wait", `namespace/${namespace}`, "--for=delete", "--timeout=60s"]);
  });

  test("let a taint evict a proxy from a virtual node, with its condition", async () => {
    const namespace = await optedIn();
    const taints = [{ key: "example.com/out", effect: "NoExecute" }];
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "legation-west" }, spec: { taints } };
    await run(["create", "-f", "-"], { input: node, as: CONTROLLER });
    await run(["create", "-n", namespace, "-f", "-"], { input: job(1) });
    const [proxy = ""] = await proxiesOf(namespace, 1);
    const binding = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: proxy.replace("pod/", ""), annotations: { "legation.dev/cluster": "west" } },
      target: { apiVersion: "v1", kind: "Node", name: "legation-west" },
    };
    const url = `/api/v1/namespaces/${namespace}/pods/${binding.metadata.name}/binding`;
    await run(["create", "--raw", url, "-f", "-"], { input: binding, as: CONTROLLER });
    expect(await whenDeleting(namespace, proxy)).toMatchObject({
      metadata: { annotations: { "legation.dev/cluster": "west" } },
      spec: { nodeName: "legation-west" },
      status: {
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: "DisruptionTarget", reason: "DeletionByTaintManager" }),
        ]),
      },
    });
    await release(namespace, proxy);
  });
});
