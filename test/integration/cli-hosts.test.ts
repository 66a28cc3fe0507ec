import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../support/clusters/types.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { pristine } from "../support/harness/pristine.ts";
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

test("the last host to leave takes Legation's namespace with it", async () => {
  for (const member of [east, west]) {
    const run = await legationOn(host, "unjoin", member.name, "--member-kubeconfig", member.kubeconfig);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).not.toContain("still in");
    expect(await kubectl(member, ["get", "namespaces"])).not.toContain("legation-system");
  }
});
