import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { pristine } from "../support/harness/pristine.ts";
import { tracesOf } from "../support/harness/traces.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { legationOn } from "../support/legation/process.ts";
import { type Legation, startLegation } from "../support/legation/start.ts";

// west is a member of host and a host itself; both have east as a member.
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
  for (const cluster of [host, west]) await legationOn(cluster, "uninstall", "--force");
});

/** Service accounts that hosts have in a member. */
async function accounts(member: Cluster): Promise<string[]> {
  const path = "jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}";
  const names = await kubectl(member, ["-n", "legation-system", "get", "serviceaccounts", "-o", path]);
  return names.split("\n").filter((name) => name.startsWith("legation-host-"));
}

const labels = { app: "web" };
/** A Deployment with all that Legation copies for it. */
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

/** What Legation has in these clusters that has to do with one namespace. */
async function tracesOfNamespace(namespace: string): Promise<string[]> {
  const all = await Promise.all([host, west, east].map((cluster) => tracesOf(cluster)));
  return all.flat().filter((line) => line.includes(namespace));
}

test("the deletion of a namespace leaves nothing of it in any cluster but the members' empty namespaces", async () => {
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

test("each host has an account of its own in a member that they share", async () => {
  expect(await accounts(east)).toHaveLength(2);
  expect(await accounts(west)).toHaveLength(1);
});

test("uninstalling a host that is a member itself leaves the other hosts' access alone", async () => {
  const before = await accounts(west);
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

test("the last host to leave takes Legation's namespace with it, and nothing is left of its installation", async () => {
  for (const member of [east, west]) {
    const run = await legationOn(host, "unjoin", member.name, "--member-kubeconfig", member.kubeconfig);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).not.toContain("still in");
    expect(await kubectl(member, ["get", "namespaces"])).not.toContain("legation-system");
  }
  const gone = await legationOn(host, "uninstall");
  expect(gone.code, gone.stderr).toBe(0);
  // Of all kinds that the clusters serve.
  for (const cluster of [host, west, east]) {
    await eventuallyPasses(async () => expect(await tracesOf(cluster), cluster.name).toEqual([]));
  }
});
