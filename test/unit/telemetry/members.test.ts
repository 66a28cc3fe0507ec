import { expect, test } from "vitest";
import type { MemberState } from "../../../src/telemetry/members.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";

async function series(metrics: Metrics, metric: string): Promise<readonly string[]> {
  return (await metrics.registry.metrics()).split("\n").filter((line) => new RegExp(`^${metric}[{ ]`).test(line));
}

test("exports members at the time of the scrape, and none that have left", async () => {
  const metrics = new Metrics();
  const west: MemberState = {
    name: "west",
    reachable: true,
    joined: undefined,
    unresponsiveSeconds: 1.5,
    delegates: 7,
    proxies: 5,
  };
  let members = [west, { ...west, name: "east", reachable: false }];
  const unfollow = metrics.members.follow({ members: () => members, waiting: () => ({ count: 3, oldestSeconds: 12 }) });
  expect(await series(metrics, "legation_member_reachable")).toEqual([
    'legation_member_reachable{cluster="west"} 1',
    'legation_member_reachable{cluster="east"} 0',
  ]);
  members = [
    { ...west, joined: true },
    { ...west, name: "east", joined: false },
    { ...west, name: "north" },
  ];
  expect(await series(metrics, "legation_member_network_joined")).toEqual([
    'legation_member_network_joined{cluster="west"} 1',
    'legation_member_network_joined{cluster="east"} 0',
  ]);
  members = [west, { ...west, name: "east", reachable: false }];
  for (const _ of ["a scrape", "the next one"]) {
    expect(await series(metrics, "legation_member_unresponsive_seconds_total")).toEqual([
      'legation_member_unresponsive_seconds_total{cluster="west"} 1.5',
      'legation_member_unresponsive_seconds_total{cluster="east"} 1.5',
    ]);
  }
  expect(await series(metrics, "legation_delegates")).toContain('legation_delegates{cluster="west"} 7');
  expect(await series(metrics, "legation_proxies")).toContain('legation_proxies{cluster="west"} 5');
  expect(await series(metrics, "legation_proxies_waiting")).toEqual(["legation_proxies_waiting 3"]);
  expect(await series(metrics, "legation_proxies_waiting_oldest_seconds")).toEqual([
    "legation_proxies_waiting_oldest_seconds 12",
  ]);
  members = [west];
  expect(await series(metrics, "legation_member_reachable")).toHaveLength(1);
  unfollow();
  expect(await series(metrics, "legation_member_reachable")).toEqual([]);
  expect(await series(metrics, "legation_proxies_waiting")).toEqual(["legation_proxies_waiting 0"]);
});

test("starts a member's counters at zero", async () => {
  const metrics = new Metrics();
  const west = { name: "west", reachable: true, joined: undefined, unresponsiveSeconds: 1.5, delegates: 7, proxies: 5 };
  metrics.members.follow({ members: () => [west], waiting: () => ({ count: 0, oldestSeconds: 0 }) });
  for (const name of ["legation_orphans_total", "legation_delegates_held_total", "legation_streams_open"]) {
    expect(await series(metrics, name)).toEqual([`${name}{cluster="west"} 0`]);
  }
  for (let orphan = 0; orphan < 3; orphan += 1) metrics.members.countOrphan("west");
  expect(await series(metrics, "legation_orphans_total")).toEqual(['legation_orphans_total{cluster="west"} 3']);
});

test("exports a token's expiration until its member has left", async () => {
  const metrics = new Metrics();
  const name = "legation_member_credentials_expiration_timestamp_seconds";
  metrics.members.setCredentialsExpiry("west", 1_700_000_000_000);
  expect(await series(metrics, name)).toEqual([`${name}{cluster="west"} 1700000000`]);
  metrics.members.setCredentialsExpiry("west", undefined);
  expect(await series(metrics, name)).toEqual([]);
});

test("bounds the number of series of a hundred members, however many pods there were", async () => {
  const metrics = new Metrics();
  for (let member = 0; member < 100; member += 1) {
    const cluster = `member-${member}`;
    for (const stage of ["delegate", "bind", "status"] as const) metrics.members.observeStage(stage, cluster, 0.1);
    for (const verb of ["list", "watch", "get", "create", "patch", "delete"]) {
      for (const resource of ["pods", "nodes", "secrets", "configmaps", "services"]) {
        for (const code of ["200", "404", "409", "AnswerLost"]) {
          metrics.observeRequest(cluster, verb, resource, code, 0.01);
        }
      }
    }
  }
  const lines = (await metrics.registry.metrics()).split("\n").filter((line) => line.includes("member-"));
  expect(lines.length).toBeLessThanOrEqual(100 * 300);
});

test("a member has 72 series, one for each kind of request, and three for each watched resource", async () => {
  const metrics = new Metrics();
  const west = { name: "west", reachable: true, joined: true, unresponsiveSeconds: 0, delegates: 1, proxies: 1 };
  metrics.members.follow({ members: () => [west], waiting: () => ({ count: 0, oldestSeconds: 0 }) });
  metrics.members.setCredentialsExpiry("west", 0);
  for (const stage of ["delegate", "bind", "status"] as const) metrics.members.observeStage(stage, "west", 1);
  const verbs = ["get", "list", "create", "update", "patch", "delete"];
  for (const verb of verbs) metrics.observeRequest("west", verb, "pods", "200", 1);
  for (const resource of ["pods", "nodes"]) {
    metrics.countWatch("west", resource);
    metrics.countWatchEvents("west", resource, 1, 1);
  }
  const ofWest = (await metrics.registry.metrics()).split("\n").filter((line) => line.includes('cluster="west"'));
  expect(ofWest).toHaveLength(72 + verbs.length + 2 * 3);
});
