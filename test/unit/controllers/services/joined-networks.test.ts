import { expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { JoinedNetworks } from "../../../../src/controllers/services/joined-networks.ts";
import { listing } from "../../../support/builders/answers.ts";
import { cluster, member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { registryOf, surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const stored = { uid: "u", resourceVersion: "1" };

interface Given {
  readonly cidrs?: readonly string[];
  readonly spec?: Partial<Cluster["spec"]>;
  readonly created?: string;
  /** Message of the condition that it was left out. */
  readonly leftOut?: string;
  readonly nodesRead?: boolean;
}

function joined(name: string, { cidrs = [], spec, created, leftOut, nodesRead = true }: Given): Member {
  const condition = {
    ...{ type: "NetworkJoined", status: "False" as const, reason: "PodNetworksOverlap" },
    ...{ message: leftOut ?? "", lastTransitionTime: "2026-01-01T00:00:00Z" },
  };
  const made: Stored<Cluster> = cluster(name, {
    metadata: created === undefined ? {} : { creationTimestamp: created },
    spec: { network: "corp", ...spec },
    status: { conditions: leftOut === undefined ? [] : [condition] },
  });
  const nodes = cidrs.map((cidr, index) => ({
    metadata: { name: `n${index}`, ...stored },
    spec: { podCIDRs: [cidr] },
  }));
  return member(name, undefined, { cluster: made, nodes, nodesRead });
}

async function networksOf(members: readonly Member[], hostCidrs?: readonly string[]) {
  const clock = new FakeClock();
  const around = surroundings(members, clock);
  const nodes = (hostCidrs ?? []).map((cidr) => ({ metadata: { name: cidr, ...stored }, spec: { podCIDRs: [cidr] } }));
  const networks = new JoinedNetworks({
    ...around,
    host: quietClient([], { list: listing((plural) => (plural === "nodes" ? nodes : []), "1") }),
    network: hostCidrs === undefined ? undefined : "corp",
    registry: registryOf(members),
  });
  let told = 0;
  around.events.on("networks", () => {
    told += 1;
  });
  networks.update();
  await clock.advance(10);
  return { networks, events: around.events, told: () => told };
}

test("members with pod CIDRs of their own are joined", async () => {
  const all = [joined("west", { cidrs: ["10.1.0.0/16"] }), joined("east", { cidrs: ["10.2.0.0/16"] })];
  const { networks } = await networksOf(all);
  expect(Object.fromEntries(networks.now.members)).toEqual({ west: "corp", east: "corp" });
});

test("the younger of two members with one pod CIDR is left out, by name", async () => {
  const all = [
    joined("east", { cidrs: ["10.1.0.0/16"], created: "2026-01-02T00:00:00Z" }),
    joined("west", { cidrs: ["10.1.0.0/16"], created: "2026-01-01T00:00:00Z" }),
  ];
  const { networks } = await networksOf(all);
  expect([...networks.now.members.keys()]).toEqual(["west"]);
  expect(networks.isJoined("east")).toBe(false);
  expect(networks.problem("east")).toContain("those of west addresses of 10.1.0.0/16: it is left out of network corp");
});

test("a member that was left out stays so, although it is older", async () => {
  const all = [
    joined("east", { cidrs: ["10.1.0.0/16"], created: "2026-01-02T00:00:00Z" }),
    joined("west", { cidrs: ["10.1.0.0/16"], created: "2026-01-01T00:00:00Z", leftOut: "before" }),
  ];
  const { networks } = await networksOf(all);
  expect([...networks.now.members.keys()]).toEqual(["east"]);
});

test("a member that was left out stays so until all of its network have been read", async () => {
  const west = joined("west", { cidrs: ["10.1.0.0/16"], leftOut: "before" });
  const { networks } = await networksOf([west, joined("east", { nodesRead: false })]);
  expect([networks.problem("west"), networks.isJoined("west"), networks.isJoined("east")]).toEqual([
    "before",
    false,
    true,
  ]);
});

test("a member with pod CIDRs of the host's nodes is left out of the host's network alone", async () => {
  const all = [
    joined("west", { cidrs: ["10.1.0.0/16"] }),
    joined("east", { cidrs: ["10.1.0.0/16"], spec: { network: "lab" } }),
  ];
  const { networks, told } = await networksOf(all, ["10.1.5.0/24"]);
  expect(networks.problem("west")).toContain("those of the host addresses of 10.1.5.0/24");
  expect(networks.isJoined("east")).toBe(true);
  expect(told()).toBeGreaterThan(0);
});

test("podCIDRs of a Cluster take the place of its nodes'", async () => {
  const all = [
    joined("west", { cidrs: ["10.1.0.0/16"] }),
    joined("east", { cidrs: ["10.1.0.0/16"], spec: { podCIDRs: ["10.2.0.0/16"] } }),
    joined("north", { cidrs: ["10.3.0.0/16"], spec: { podCIDRs: ["10.2.9.0/24"] } }),
  ];
  const { networks } = await networksOf(all);
  expect([...networks.now.members.keys()]).toEqual(["west", "east"]);
  expect(networks.problem("north")).toContain("10.2.9.0/24");
});

test("nodes whose CIDRs stay the same are not compared again", async () => {
  const west = joined("west", { cidrs: ["10.1.0.0/16"] });
  const { events, told } = await networksOf([west]);
  expect(told()).toBe(1);
  for (const _ of ["once", "twice"]) events.emit("memberNodes", west);
  expect(told()).toBe(1);
});
