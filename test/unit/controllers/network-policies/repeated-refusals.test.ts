import { afterEach, expect, test } from "vitest";
import { type NetworkPolicy, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { NetworkPolicyController } from "../../../../src/controllers/network-policies/controller.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { NAMESPACE_INDEX } from "../../../../src/scheduling/known-pods.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { delegates, member } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
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
  const west = member("west", quietClient([], { create }), {
    delegates: delegates({ list: () => [], liveIn: () => 0 }),
  });
  const proxy = proxyPod({ metadata: { namespace: "team" } });
  const events = new Events<ControllerEvents>();
  events.on("needs", () => {
    const refusal = controller.refusal(proxy, "west");
    if (refusal !== undefined) told.push(refusal.replace(/.*: /, ""));
  });
  const proxies = new Store<Pod>({ [NAMESPACE_INDEX]: () => ["team"] });
  proxies.set(proxy);
  proxies.synced = true;
  const controller = new NetworkPolicyController({
    host: quietClient([rules]),
    ...surroundings([west], clock),
    proxies,
    events,
  });
  policies = controller;
  controller.onMembers();
  await clock.advance(0);
  controller.onProxy({ type: "added", object: proxy });
  await clock.advance(0);
  controller.prepare(objectKey({ namespace: "team", name: "web-0" }), proxy.metadata.uid, "west");
  await clock.advance(600_000);
  expect(attempts).toBeGreaterThan(20);
  expect(told.map((words) => words.replace(/\d+/, "N"))).toEqual(["lost after N ms", "lost again after N ms"]);
});
