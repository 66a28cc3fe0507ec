import { expect, test } from "vitest";
import { Member } from "../../../src/clusters/member.ts";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { listing } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { delegateOf, memory, member as view, world } from "../controllers/delegation/world.ts";

// A load balancer before the member's API server cuts connections that were silent for 25 s (kubeadm's HAProxy example: 35 s).
test.each([25_000, 3_600_000])(
  "gives a pod without a node to the next member, though watches are cut each %i ms",
  async (cutAfterMs) => {
    const clock = new FakeClock();
    const client = fakeClient({
      raw: async ({ path }: { readonly path: string }) => (path === "/version" ? { gitVersion: "v1.36.0" } : "ok"),
      find: async () => undefined,
      list: listing([]),
      watch: (_resource, { onOpen, signal }) => {
        const next = async (): Promise<never> => {
          onOpen?.();
          await clock.sleep(cutAfterMs, signal);
          throw kubeError("AnswerLost", "other side closed", { verb: "watch" });
        };
        return { [Symbol.asyncIterator]: () => ({ next }) };
      },
    });
    const west = new Member({
      cluster: {
        metadata: { name: "west", uid: "u", resourceVersion: "1" },
        spec: { credentialsSecret: { name: "w" } },
      },
      client,
      hostId: "host-id",
      events: new Events(),
      clock,
      log: createLogger({ level: "silent" }),
    });
    west.start();
    await clock.advance(1_000);
    const begun = clock.now();
    const proxy = proxyPod();
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "too full" }];
    const delegate = delegateOf(proxy, { status: { phase: "Pending", conditions } });
    const attempts = new Map([["west", { since: begun, refusalCount: 0 }]]);
    let movedAfterMs: number | undefined;
    for (let second = 1; second <= 600 && movedAfterMs === undefined; second += 1) {
      await clock.advance(1_000);
      const { reachable, reachableSince } = west;
      const holder = view("west", { delegate, reachable, reachableSince });
      const { outcome } = decide(world(proxy, [holder, view("east")], { memory: memory({ attempts }) }), clock.now());
      if (outcome === "Withdrawing") movedAfterMs = clock.now() - begun;
    }
    await west.stop();
    expect(movedAfterMs).toBeLessThan(60_000);
  },
);
