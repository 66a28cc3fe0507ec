import { expect, test } from "vitest";
import { isInShard } from "../../../src/api/shards.ts";
import { waitingElsewhere } from "../../../src/controllers/host-wide.ts";
import { cluster } from "../../support/builders/member.ts";
import { type PodParts, proxyPod } from "../../support/builders/pod.ts";

const SHARD = { index: 0, count: 2 };
const NAMESPACES = ["a", "b", "c", "d", "e", "f"];
const [OURS = "", OTHERS = ""] = [true, false].map((is) => NAMESPACES.find((one) => isInShard(SHARD, one) === is));
const NOW = Date.parse("2026-11-30T12:00:00Z");

const waiting = (namespace: string, parts: PodParts = {}) =>
  proxyPod({ ...parts, metadata: { ...parts.metadata, namespace } });

function leaving(secondsAgo: number, isReady: boolean) {
  const ready = {
    type: "Ready",
    status: isReady ? ("True" as const) : ("Unknown" as const),
    reason: "",
    message: "",
    lastTransitionTime: "",
  };
  return cluster("west", {
    metadata: { deletionTimestamp: new Date(NOW - secondsAgo * 1_000).toISOString() },
    status: { conditions: [ready] },
  });
}

test.each([
  { what: "of another shard", pod: waiting(OTHERS), member: leaving(10, true), count: 1 },
  { what: "of the own shard, which counts its own", pod: waiting(OURS), member: leaving(10, true), count: 0 },
  { what: "with a node", pod: waiting(OTHERS, { spec: { nodeName: "n" } }), member: leaving(10, true), count: 0 },
  {
    what: "with a gate",
    pod: waiting(OTHERS, { spec: { schedulingGates: [{ name: "g" }] } }),
    member: leaving(10, true),
    count: 0,
  },
  { what: "after a minute", pod: waiting(OTHERS), member: leaving(60, true), count: 0 },
  { what: "after an hour without an answer", pod: waiting(OTHERS), member: leaving(3_600, false), count: 1 },
])("a member that leaves is held by a pod that waits: $what", ({ pod, member, count }) => {
  expect(waitingElsewhere([pod], { shard: SHARD, cluster: member, now: NOW })).toBe(count);
});
