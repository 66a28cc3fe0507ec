import { describe, expect, test } from "vitest";
import { type ClusterStatus, JOINED_TWICE } from "../../../src/api/cluster-status.ts";
import { type Joined, joinedTwice } from "../../../src/clusters/joined-twice.ts";

const SERVER = "https://192.0.2.1";

interface Parts {
  readonly recorded?: string;
  readonly found?: Joined["found"];
  readonly created?: string;
  readonly status?: ClusterStatus;
  readonly agent?: Record<string, never>;
}

function joined(
  name: string,
  { recorded, found, created = "2026-01-01T00:00:00Z", status, agent }: Parts = {},
): Joined {
  const annotations = recorded === undefined ? {} : { "legation.dev/member-uid": recorded };
  return {
    cluster: {
      metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: created, annotations },
      spec: { credentialsSecret: { name: `member-${name}` }, ...(agent === undefined ? {} : { agent }) },
      ...(status === undefined ? {} : { status }),
    },
    found,
  };
}

const refused: ClusterStatus = {
  conditions: [{ type: "Ready", status: "False", reason: JOINED_TWICE, message: "", lastTransitionTime: "" }],
};
const later = "2026-01-02T00:00:00Z";

describe("of two Clusters for one member", () => {
  test.each<[string, Joined, Joined]>([
    ["the older one keeps it", joined("b", { recorded: "u" }), joined("a", { recorded: "u", created: later })],
    ["the first by name keeps it when both are as old", joined("a", { recorded: "u" }), joined("b", { recorded: "u" })],
    [
      "one with pods keeps it from an older one without",
      joined("b", { recorded: "u", created: later, status: { pods: 1 } }),
      joined("a", { recorded: "u", status: { pods: 0 } }),
    ],
    [
      "one that was refused stays so when the other has no pods any more",
      joined("b", { recorded: "u", created: later, status: { pods: 0 } }),
      joined("a", { recorded: "u", status: { ...refused, pods: 1 } }),
    ],
    [
      "a recorded uid counts as one that the member gave",
      joined("a", { recorded: "u" }),
      joined("b", { created: later, found: { uid: "u", server: "https://192.0.2.2" } }),
    ],
    [
      "the address counts where the credentials may not read the uid",
      joined("a", { recorded: "u", found: { uid: "u", server: SERVER } }),
      joined("b", { created: later, found: { uid: undefined, server: SERVER } }),
    ],
  ])("%s", (_case, kept, other) => {
    const expected = new Map([[other.cluster.metadata.name, kept.cluster.metadata.name]]);
    expect(joinedTwice([kept, other])).toEqual(expected);
    expect(joinedTwice([other, kept])).toEqual(expected);
  });
});

test.each<[string, Joined, Joined]>([
  [
    "two members behind one address with uids of their own",
    joined("a", { found: { uid: "u", server: SERVER } }),
    joined("b", { found: { uid: "v", server: SERVER } }),
  ],
  ["two members of which nothing is known yet", joined("a"), joined("b")],
  [
    "a member whose record says another uid than the one that answers",
    joined("a", { recorded: "u", found: { uid: "v", server: SERVER } }),
    joined("b", { found: { uid: "v", server: "https://192.0.2.2" } }),
  ],
  [
    "two members behind agents, whose addresses are the same in many clusters",
    joined("a", { found: { uid: "u", server: SERVER }, agent: {} }),
    joined("b", { found: { uid: undefined, server: SERVER }, agent: {} }),
  ],
  [
    "a member and one whose agent names the address of the other",
    joined("a", { found: { uid: "u", server: SERVER } }),
    joined("b", { found: { uid: undefined, server: SERVER }, agent: {} }),
  ],
])("refuses none of %s", (_case, one, other) => {
  expect(joinedTwice([one, other])).toEqual(new Map());
});
