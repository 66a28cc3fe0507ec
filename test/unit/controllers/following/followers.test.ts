import { expect, test } from "vitest";
import type { ObjectKey, Pod } from "../../../../src/api/kubernetes.ts";
import { Followers } from "../../../../src/controllers/following/followers.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";

test("pods wait until it is known which objects follow them, and are told once", () => {
  const proxies = new Store<Pod>();
  const proxy = proxyPod({ name: "waits" });
  proxies.set(proxy);
  proxies.set(proxyPod({ name: "runs", uid: "uid-2", spec: { nodeName: "legation-west" } }));
  const around = surroundings([], new FakeClock());
  const { events } = around;
  const told: ObjectKey[] = [];
  events.on("needs", (key) => told.push(key));
  const followers = new Followers({ ...around, proxies });
  expect(followers.needs(proxy)).toEqual({ state: "awaited" });
  expect(followers.refusal(proxy, "west")).toBe("DelegatedTypes have not been read yet");
  followers.onTypesRead();
  followers.onTypesRead();
  expect(told).toEqual([`${proxy.metadata.namespace}/waits`]);
  expect([followers.needs(proxy), followers.refusal(proxy, "west")]).toEqual([undefined, undefined]);
  expect(followers.prepare(told[0] ?? ("" as ObjectKey), proxy.metadata.uid, "west")).toBe(true);
});
