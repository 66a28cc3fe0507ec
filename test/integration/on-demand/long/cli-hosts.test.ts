import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Cluster } from "../../../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../../../support/harness/clusters.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { pristine, removeLegation } from "../../../support/harness/pristine.ts";
import { tracesOf } from "../../../support/harness/traces.ts";
import { eventuallyPasses } from "../../../support/harness/wait.ts";
import { legationOn, legationProcessOn } from "../../../support/legation/process.ts";
import { type Legation, startLegation } from "../../../support/legation/start.ts";

// west is a member of host and a host itself; both hosts have east as a member.
let host: Cluster;
let west: Cluster;
let east: Cluster;
const running: Legation[] = [];

beforeAll(async () => {
  host = hostCluster();
  west = memberCluster("west");
  east = memberCluster("east");
  await pristine(host, west, east);
  running.push(await startLegation({ host: west, members: { east }, proxied: false }));
  running.push(await startLegation({ host, members: { west, east }, proxied: false }));
});
afterAll(async () => {
  for (const legation of running) await legation.stop();
  for (const cluster of [host, west]) await removeLegation(cluster);
});

/** Returns the service accounts that hosts have in a member. */
async function accounts(member: Cluster): Promise<string[]> {
  const path = "jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}";
  const names = await kubectl(member, ["-n", "legation-system", "get", "serviceaccounts", "-o", path]);
  return names.split("\n").filter((name) => name.startsWith("legation-host-"));
}

const labels = { app: "web" };
/** A Deployment with a ConfigMap and a Service. */
const WORKLOAD = {
  apiVersion: "v1",
  kind: "List",
  items: [
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { color: "blue" } },
    { apiVersion: "v1", kind: "Service", metadata: { name: "web" }, spec: { selector: labels, ports: [{ port: 80 }] } },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [{ name: "main", image: "busybox", envFrom: [{ configMapRef: { name: "settings" } }] }],
          },
        },
      },
    },
  ],
};

/** Returns Legation's objects in these clusters that belong to one namespace. */
async function tracesOfNamespace(namespace: string): Promise<string[]> {
  const all = await Promise.all([host, west, east].map((cluster) => tracesOf(cluster)));
  return all.flat().filter((line) => line.includes(namespace));
}

test("leaves only the members' empty namespaces when a namespace is deleted on the host", async () => {
  const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "all" } });
  const inIt = ["-n", namespace];
  await kubectl(host, [...inIt, "create", "-f", "-"], { input: JSON.stringify(WORKLOAD) });
  await kubectl(host, [...inIt, "rollout", "status", "deployment", "web"]);
  const kinds = async (): Promise<Set<string | undefined>> =>
    new Set((await tracesOfNamespace(namespace)).map((line) => line.split(" ")[0]));
  await eventuallyPasses(async () => {
    const found = await kinds();
    for (const kind of ["Pod", "ConfigMap", "Service", "Namespace"]) expect(found).toContain(kind);
  });
  await kubectl(host, ["delete", "namespace", namespace]);
  await eventuallyPasses(async () => expect([...(await kinds())]).toEqual(["Namespace"]));
});

test("ends the pods of a namespace that is deleted in a member, and their controllers replace them", async () => {
  const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "all" } });
  const inIt = ["-n", namespace];
  const [, , deployment] = WORKLOAD.items;
  await kubectl(host, [...inIt, "create", "configmap", "settings"]);
  await kubectl(host, [...inIt, "create", "-f", "-"], { input: JSON.stringify(deployment) });
  await kubectl(host, [...inIt, "rollout", "status", "deployment", "web"]);
  const phases = async (): Promise<string[]> =>
    (
      await kubectl(host, [
        ...inIt,
        "get",
        "pods",
        "-o",
        "jsonpath={range .items[*]}{.metadata.name} {.status.phase},{end}",
      ])
    )
      .split(",")
      .filter((pod) => pod !== "" && !pod.endsWith("Failed"));
  const [first = ""] = await phases();
  expect(first).toMatch(/ Running$/);
  const [member] = (await Promise.all([west, east].map(podsIn(namespace)))).flat();
  expect(member).toBeDefined();
  await kubectl(member ?? west, ["delete", "namespace", namespace, "--wait=false"]);
  await eventuallyPasses(
    async () => {
      const now = await phases();
      expect(now).toEqual([expect.stringMatching(/ Running$/)]);
      expect(now).not.toEqual([first]);
    },
    { timeoutMs: 60_000 },
  );
});

/** Returns the member if it has a pod in the namespace. */
function podsIn(namespace: string): (member: Cluster) => Promise<Cluster[]> {
  return async (member) => {
    const pods = await kubectl(member, ["-n", namespace, "get", "pods", "-o", "name", "--ignore-not-found"]);
    return pods === "" ? [] : [member];
  };
}

test("gives each host its own account in a shared member", async () => {
  expect(await accounts(east)).toHaveLength(2);
  expect(await accounts(west)).toHaveLength(1);
});

test("keeps the other hosts' access when a host that is also a member is uninstalled", async () => {
  const before = await accounts(west);
  const refused = { code: 3, stderr: expect.stringContaining("has 1 member: east") };
  expect(await legationOn(west, "uninstall", "--force")).toMatchObject(refused);
  expect(await legationOn(west, "unjoin", "east")).toMatchObject({ code: 0 });
  const run = await legationOn(west, "uninstall");
  expect(run.code, run.stderr).toBe(0);
  expect(run.stdout).toContain("this cluster is a member of other hosts");
  expect(await accounts(west)).toEqual(before);
  expect(await accounts(east)).toHaveLength(1);
  const left = await kubectl(west, ["-n", "legation-system", "get", "secrets,deployments,services", "-o", "name"]);
  expect(left.split("\n").filter((name) => name.includes("member-"))).toEqual([]);
  const { stdout } = await legationOn(host, "status", "-o", "json");
  expect(JSON.parse(stdout).clusters).toMatchObject([
    { name: "east", ready: "True" },
    { name: "west", ready: "True" },
  ]);
});

test("removes Legation's namespace from the member with the last host, and all of its installation", async () => {
  const leave = async (member: Cluster): Promise<void> => {
    const run = await legationOn(host, "unjoin", member.name, "--member-kubeconfig", member.kubeconfig);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).not.toContain("still in");
    expect(await kubectl(member, ["get", "namespaces"])).not.toContain("legation-system");
  };
  // Objects of earlier tests go with their namespaces, a little later.
  const proxies = ["get", "pods", "-A", "-l", "legation.dev/proxy", "-o", "name"];
  await eventuallyPasses(async () => expect(await kubectl(host, proxies)).toBe(""), { timeoutMs: 90_000 });
  await leave(west);
  // Deleting the Cluster by hand leaves the member's side and its credentials in place.
  await kubectl(host, ["delete", "clusters.legation.dev", "east", "--timeout=50s"]);
  expect(await kubectl(host, ["get", "nodes", "-o", "name"])).not.toContain("legation-east");
  expect(await accounts(east)).toHaveLength(1);
  const refused = { code: 3, stderr: expect.stringContaining("has 1 member: east") };
  expect(await legationOn(host, "uninstall")).toMatchObject(refused);
  await leave(east);
  const gone = await legationOn(host, "uninstall");
  expect(gone.code, gone.stderr).toBe(0);
  // Counts objects of all kinds that the clusters serve.
  for (const cluster of [host, west, east]) {
    await eventuallyPasses(async () => expect(await tracesOf(cluster), cluster.name).toEqual([]));
  }
});

test("keeps its installation while a member that does not answer is joined, and leaves after unjoin --force", async () => {
  onTestFinished(() => east.proxy.heal());
  const again = await startLegation({ host, members: { east } });
  running.push(again);
  const namespace = await freshNamespace(host, { labels: { "legation.dev/delegation": "all" } });
  const run = ["-n", namespace, "run", "--image=busybox", "--annotations=kwok.test/outcome=running"];
  await kubectl(host, [...run, "web"]);
  await kubectl(host, ["-n", namespace, "wait", "pod/web", "--for=condition=Ready"]);

  await again.stop();
  await east.proxy.cut();
  const before = await tracesOf(host);
  const refused = { code: 3, stderr: expect.stringContaining("has 1 member: east") };
  expect(await legationOn(host, "uninstall", "--force")).toMatchObject(refused);
  expect(await tracesOf(host)).toEqual(before);
  const left = await legationOn(host, "unjoin", "east", "--force", "--timeout=2s");
  expect(left.code, left.stderr).toBe(0);
  expect(left.stdout).toContain("still in east: everything");
  const gone = await legationProcessOn(host, "uninstall");
  expect(gone.code, gone.stderr).toBe(0);
  await eventuallyPasses(async () => expect(await tracesOf(host)).toEqual([]));
  await east.proxy.heal();
  // The host has nothing of Legation left, but the member still knows it.
  const clean = await legationOn(host, "unjoin", "east", "--member-kubeconfig", east.kubeconfig);
  expect(clean.code, clean.stderr).toBe(0);
  await eventuallyPasses(async () => expect(await tracesOf(east)).toEqual([]));
});
