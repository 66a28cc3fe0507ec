import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { type FactSources, memberFacts, ownTrouble } from "../../../../src/controllers/virtual-node/member-facts.ts";
import { cluster, member } from "../../../support/builders/member.ts";
import { registryOf } from "../fleet.ts";

const ANSWERS = { probed: { reachable: true, version: "v1.36.3" }, unreadable: {} };
const SILENT = { probed: { reachable: false, message: "connection refused" }, unreadable: {} };

/** What can be known of these members; `unconnected` are Clusters without a connection. */
function sources(
  members: readonly Member[],
  registry: Parameters<typeof registryOf>[1] = {},
  parts: Partial<FactSources> = {},
): FactSources {
  return {
    registry: registryOf(members, registry),
    proxies: { synced: true, countByIndex: () => 3 },
    waitingIn: () => 2,
    kept: { countIn: () => 1 },
    networkProblem: () => undefined,
    ...parts,
  };
}

describe("a member that answers", () => {
  test("has its version, the host's pods there, and those that the host does not know", () => {
    const west = member("west", undefined, ANSWERS);
    expect(memberFacts("west", undefined, sources([west]))).toMatchObject({
      reachable: true,
      version: "v1.36.3",
      proxies: 3,
      unfinished: 3,
      running: 3,
      waiting: 0,
      held: 1,
    });
  });

  test("has pods that wait for a node counted while its Cluster leaves, and proxies unknown before they are read", () => {
    const leaving = cluster("west", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    const west = member("west", undefined, { ...ANSWERS, cluster: leaving });
    const unread = sources([west], {}, { proxies: { synced: false, countByIndex: () => 0 } });
    expect(memberFacts("west", undefined, unread)).toMatchObject({ waiting: 2, proxies: undefined });
  });

  test("is not spared for a failure of the host's network", () => {
    const west = member("west", undefined, ANSWERS);
    expect(memberFacts("west", "2 of 2 members do not answer", sources([west]))).not.toHaveProperty("spared");
  });
});

describe("a member that is lost", () => {
  test.each<[string, Partial<Member>, Partial<ReturnType<typeof memberFacts>>]>([
    ["does not answer", SILENT, { answers: false, message: "connection refused" }],
    ["cannot have its pods read", { ...ANSWERS, unreadable: { pods: "forbidden" } }, { message: "forbidden" }],
    [
      "is another cluster",
      { ...SILENT, mistaken: "another cluster answers" },
      { notMember: "AnotherCluster", message: "another cluster answers" },
    ],
    ["has not been read", { ...ANSWERS, read: false }, { answers: true }],
  ])("since it %s says so, and is spared when most are", (_why, parts, expected) => {
    const west = member("west", undefined, parts);
    const facts = memberFacts("west", "2 of 2 members do not answer", sources([west]));
    expect(facts).toMatchObject({ reachable: false, spared: "2 of 2 members do not answer", ...expected });
  });

  test("is told with what its credentials lack", () => {
    const west = member("west", undefined, SILENT);
    const found = sources([west], { problem: () => "Secret member-west is missing" });
    expect(memberFacts("west", undefined, found).message).toBe("connection refused; Secret member-west is missing");
  });
});

describe("a Cluster without a connection", () => {
  test("says why, and has the agent that is connected all the same", () => {
    const agent = { version: "0.2.0", since: 7_000, certificateExpires: 8_000 };
    const found = sources([], { problem: () => "Secret member-west is missing" }, { agent: () => agent });
    expect(memberFacts("west", "trouble", found)).toMatchObject({
      reachable: false,
      message: "Secret member-west is missing",
      spared: "trouble",
      agent: {
        version: "0.2.0",
        connectedSince: "1970-01-01T00:00:07Z",
        certificateExpires: "1970-01-01T00:00:08Z",
      },
    });
    expect(
      memberFacts("west", undefined, sources([], {}, { agent: () => ({ since: 7, certificateExpires: 8 }) })),
    ).not.toHaveProperty("agent");
  });

  test("whose member has joined under another name is refused, and not spared", () => {
    const facts = memberFacts("west", "trouble", sources([], { joinedAs: () => "east" }));
    expect(facts.notMember).toBe("JoinedTwice");
    expect(facts).not.toHaveProperty("spared");
  });
});

describe("the loss of members is taken for the host's own trouble", () => {
  const lost = (name: string): Member => member(name, undefined, SILENT);
  const sound = (name: string): Member => member(name, undefined, ANSWERS);
  const once = (name: string, parts: Parameters<typeof cluster>[1] = {}): Stored<Cluster> =>
    cluster(name, { status: { version: "v1.36.3" }, ...parts });
  const trouble = (members: Member[], unconnected: Stored<Cluster>[] = [], joinedAs?: string): string | undefined =>
    ownTrouble(
      registryOf(members, {
        clusters: () => [...members.map((each) => each.cluster), ...unconnected],
        problem: () => "it cannot be connected",
        joinedAs: () => joinedAs,
      }),
    );

  test("when all of several are lost, those without a connection included", () => {
    expect(trouble([lost("west"), lost("east")])).toMatch(/^2 of 2 members do not answer/);
    expect(trouble([lost("west")], [once("east")])).toMatch(/^2 of 2/);
    expect(trouble([lost("west"), sound("east")])).toBeUndefined();
  });

  test("not by Clusters that never answered, leave, or are refused, nor by a member that is being read", () => {
    expect(trouble([lost("west")], [cluster("east")])).toBeUndefined();
    const leaving = once("east", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    expect(trouble([lost("west")], [leaving])).toBeUndefined();
    expect(trouble([lost("west")], [once("east")], "west")).toBeUndefined();
    const syncing = member("east", undefined, { ...SILENT, syncing: true });
    expect(trouble([lost("west"), syncing])).toBeUndefined();
  });
});
