import { expect, onTestFinished, test } from "vitest";
import { type ObjectKey, objectKey, type Pod } from "../../../../src/api/kubernetes.ts";
import { Follower } from "../../../../src/controllers/following/follower.ts";
import { Followers } from "../../../../src/controllers/following/followers.ts";
import { delegatedKind, followedKind } from "../../../../src/copies/objects.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { followedObjects } from "../../../../src/scheduling/followed-objects.ts";
import { podGroupType } from "../../../support/builders/delegated-type.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const labels = { "scheduling.x-k8s.io/pod-group": "gang" };

test("an annotation of an object that follows pods adopts nothing in a member", () => {
  const hash = (text: string): string => text;
  const source = {
    metadata: { name: "gang", uid: "u", resourceVersion: "1", annotations: { "legation.dev/on-conflict": "adopt" } },
  };
  expect(delegatedKind(podGroupType, hash).applied.adoptionMarks(source)).toBeDefined();
  expect(followedKind(podGroupType, hash).applied?.adoptionMarks(source)).toBeUndefined();
});

test("pods that wait are told of a type that comes and goes, and are a gang meanwhile", async () => {
  const proxies = new Store<Pod>();
  const proxy = proxyPod({ name: "waits", metadata: { labels } });
  proxies.set(proxy);
  proxies.set(proxyPod({ name: "other", uid: "uid-2" }));
  proxies.synced = true;
  const around = surroundings([], new FakeClock());
  const told: (ObjectKey | "rules")[] = [];
  around.events.on("needs", (key) => told.push(key));
  around.events.on("followRules", () => told.push("rules"));
  const followers = new Followers({ ...around, proxies });
  followers.onTypesRead();
  told.length = 0;
  const objects = followedObjects(podGroupType);
  if (objects === undefined) throw new Error("the type follows no pods");
  const host = quietClient([]);
  const { groupOf } = objects;
  const parts = { host, proxies, type: podGroupType, objects, groupOf, devices: followers.devices };
  const follower = new Follower({ ...around, ...parts, onChange: () => {} });
  onTestFinished(() => follower.stop());
  followers.add(follower);
  const key = objectKey(proxy.metadata);
  expect(told).toEqual(["rules", key]);
  expect(followers.groupOf(proxy)).toMatchObject({ isGang: true, text: "the pods of PodGroup gang" });
  expect(followers.needs(proxy)).toEqual({ state: "awaited" });
  expect(followers.refusal(proxy, "west")).toBe(
    "an object of podgroups.scheduling.x-k8s.io that it names has not been read yet",
  );
  followers.remove(follower);
  expect(told).toEqual(["rules", key, "rules", key]);
  expect(followers.groupOf(proxy)).toBeUndefined();
  expect(followers.needs(proxy)).toBeUndefined();
});
