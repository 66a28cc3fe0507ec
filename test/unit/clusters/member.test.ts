import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/cluster.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { Member } from "../../../src/clusters/member.ts";
import type { MemberEvents } from "../../../src/clusters/member-options.ts";
import type { VirtualNode } from "../../../src/clusters/readiness.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const events = new Events<MemberEvents<Member>>();
const cluster: Stored<Cluster> = {
  metadata: { name: "west", uid: "u", resourceVersion: "1" },
  spec: { credentialsSecret: { name: "w" } },
};

test("reports each change of its virtual node that matters to placement", async () => {
  const member = new Member({
    cluster,
    client: fakeClient({}),
    hostId: "host-id",
    events,
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
  });
  const open: VirtualNode = { cordoned: false, taints: [] };
  const cordoned: VirtualNode = { ...open, cordoned: true };
  const tainted: VirtualNode = { ...cordoned, taints: [{ key: "example.com/upkeep", effect: "NoSchedule" }] };
  for (const node of [open, cordoned, tainted, open, undefined]) {
    expect(member.setVirtualNode(node)).toBe(true);
    expect(member.setVirtualNode(node === undefined ? undefined : { ...node })).toBe(false);
  }
  await member.stop();
});

test("keeps reporting unreadable pods while single probes fail", async () => {
  const clock = new FakeClock();
  let probes = 0;
  const member = new Member({
    cluster,
    client: fakeClient({
      raw: async ({ path }) => {
        if (path === "/version") return { gitVersion: "v1.36.0" };
        probes += 1;
        if (probes % 3 === 0) throw new Error("overloaded");
        return "ok";
      },
      find: async () => undefined,
      list: () => Promise.reject(kubeError("ServerError", "overloaded", { verb: "list" })),
    }),
    hostId: "host-id",
    events,
    clock,
    log: createLogger({ level: "silent" }),
  });
  member.start();
  await clock.advance(29_000);
  expect(member.unreadable.pods).toBeUndefined();
  await clock.advance(11_000);
  expect(member.unreadable.pods).toBe("its pods cannot be read: overloaded");
  expect(probes).toBeGreaterThanOrEqual(4);
  await member.stop();
});

test("uses the published sum of others' requests until its own first reading", async () => {
  const status = { requestedByOthers: { cpu: "1500m" } };
  const options = { client: fakeClient({}), hostId: "host-id", events, clock: new FakeClock() };
  const log = createLogger({ level: "silent" });
  const known = new Member({ ...options, cluster: { ...cluster, status }, log });
  const joined = new Member({ ...options, cluster, log });
  expect([known.candidate().foreign, joined.candidate().foreign]).toEqual([{ cpu: 1.5 }, undefined]);
  await Promise.all([known.stop(), joined.stop()]);
});
