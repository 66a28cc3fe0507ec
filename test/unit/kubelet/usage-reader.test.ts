import { expect, test } from "vitest";
import { DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import { ALL_NAMESPACES, type Shard, slotOf } from "../../../src/api/shards.ts";
import type { PodSource } from "../../../src/kubelet/pod-lookup.ts";
import { UsageReader } from "../../../src/kubelet/usage-reader.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

/** Reads the usage of a node with one proxy, of which the member has a delegate of this uid. */
async function read(
  uid: string | undefined,
  metrics: { readonly pod: string; readonly nodes: readonly object[] },
  shard: Shard = ALL_NAMESPACES,
) {
  const annotations = { [DELEGATE_UID_ANNOTATION]: "delegate-uid" };
  const proxy = proxyPod({ metadata: { annotations }, status: runningStatus() });
  const usage = { cpu: "250m", memory: "1Mi" };
  const items = [
    { metadata: { namespace: "team", name: "web-0" }, timestamp: metrics.pod, containers: [{ name: "main", usage }] },
  ];
  const member = {
    probed: { reachable: true },
    client: fakeClient({ raw: async ({ path }) => ({ items: path.includes("/pods?") ? items : metrics.nodes }) }),
    delegates: { get: () => (uid === undefined ? undefined : pod({ uid, status: runningStatus() })) },
  };
  const source = { registry: { member: () => member, problem: () => undefined }, proxiesOn: () => [proxy], shard };
  const reader = new UsageReader({
    cluster: "west",
    source: source as unknown as PodSource,
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
  });
  return await reader.read();
}

test.each([
  { named: "the delegate that it records", uid: "delegate-uid", measuredAt: "2026-01-01T00:01:00Z", told: ["web-0"] },
  { named: "another pod in its delegate's place", uid: "other-uid", measuredAt: "2026-01-01T00:01:00Z", told: [] },
  { named: "a pod of its name that ran before", uid: "delegate-uid", measuredAt: "2025-12-31T23:59:59Z", told: [] },
])("reports the measurement of $named for a proxy, or not: $told", async ({ uid, measuredAt, told }) => {
  const { failed, pods } = await read(uid, { pod: measuredAt, nodes: [] });
  expect(failed).toBe(false);
  expect(pods.map((each) => each.pod.metadata?.name)).toEqual(told);
});

test("reports the measurement of a proxy of another shard, whose delegate is not watched", async () => {
  const elsewhere = { index: 1 - (slotOf("team") % 2), count: 2 };
  const { pods } = await read(undefined, { pod: "2026-01-01T00:01:00Z", nodes: [] }, elsewhere);
  expect(pods.map((each) => each.pod.metadata?.name)).toEqual(["web-0"]);
});

test.each(["soon", "", "2026-13-01T00:00:00Z"])(
  "knows no usage where the member measured a node at %j",
  async (timestamp) => {
    const nodes = [{ timestamp, usage: { cpu: "1", memory: "1Gi" } }];
    expect(await read("delegate-uid", { pod: "2026-01-01T00:01:00Z", nodes })).toEqual({ failed: true, pods: [] });
  },
);
