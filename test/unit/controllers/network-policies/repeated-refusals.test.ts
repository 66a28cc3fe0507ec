import { afterEach, expect, test } from "vitest";
import type { NetworkPolicy, Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { NetworkPolicyController } from "../../../../src/controllers/network-policies/controller.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { quietClient } from "../quiet-client.ts";

let policies: NetworkPolicyController | undefined;

afterEach(() => policies?.stop());

const rules: Stored<NetworkPolicy> = {
  metadata: { name: "rules", namespace: "team", uid: "source-uid", resourceVersion: "7" },
  spec: { podSelector: {} },
};

test("wakes pods that wait for a policy after another message of the member, and not after other amounts", async () => {
  const clock = new FakeClock();
  const told: string[] = [];
  let attempts = 0;
  const create = async (): Promise<never> => {
    attempts += 1;
    const words = `lost${clock.now() < begun + 300_000 ? "" : " again"} after ${attempts} ms`;
    throw kubeError("ServerError", words, { resource: "networkpolicies" });
  };
  const begun = clock.now();
  const west = {
    name: "west",
    reachable: true,
    reachableSince: 0,
    read: true,
    cluster: { spec: {} },
    client: quietClient([], { create: create as never }),
    memory: new ByteBudget(1e6),
    watches: new Set(),
    delegates: { list: () => [], liveIn: () => 0 },
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const proxy = proxyPod({ metadata: { namespace: "team" } });
  const events = new Events<ControllerEvents>();
  events.on("needs", () => {
    const refusal = controller.refusal(proxy, "west");
    if (refusal !== undefined) told.push(refusal.replace(/.*: /, ""));
  });
  const controller = new NetworkPolicyController({
    host: quietClient([rules]),
    identity: HOST,
    registry: { members: () => [west], member: () => west },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    recorder: { record: () => {} },
    proxies: { synced: true, get: () => proxy, list: () => [proxy], byIndex: () => [proxy] },
    events,
    clock,
    log: createLogger({ level: "silent" }),
  } as never);
  policies = controller;
  controller.onMembers();
  controller.onProxy({ type: "added", object: proxy });
  await clock.advance(0);
  controller.prepare("team/web-0" as never, proxy.metadata.uid, "west");
  await clock.advance(600_000);
  expect(attempts).toBeGreaterThan(20);
  expect(told.map((words) => words.replace(/\d+/, "N"))).toEqual(["lost after N ms", "lost again after N ms"]);
});
