import { describe, expect, onTestFinished, test } from "vitest";
import { type NetworkPolicy, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { NetworkPolicyController } from "../../../../src/controllers/network-policies/controller.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { NETWORK_POLICY } from "../../../../src/copies/network-policies.ts";
import { networkPolicies } from "../../../../src/kube/resources.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { NAMESPACE_INDEX } from "../../../../src/scheduling/known-pods.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { delegates, member } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { breakableClient } from "../breakable-client.ts";
import { surroundings } from "../fleet.ts";

type Policy = Stored<NetworkPolicy>;

const rules = policy({});
const other = policy({ policyTypes: ["Egress"] });

function policy(spec: object, metadata: object = {}): Policy {
  return {
    metadata: { name: "rules", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata },
    spec: { podSelector: {}, ...spec },
  };
}

function copyOf(source: Policy, metadata: object = {}): Policy {
  const copy = toCopy(NETWORK_POLICY, source, HOST);
  const name = copy.metadata?.name ?? "";
  return { ...copy, metadata: { ...copy.metadata, name, uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** Returns a pod that waits for `west`, with these policies on the host and in the member. */
async function waiting(
  host: readonly Policy[],
  west: readonly Policy[],
  { live = 0, unreadable = false, read = true } = {},
) {
  const clock = new FakeClock();
  const writes: string[] = [];
  const onHost = breakableClient(networkPolicies, host);
  const inMember = breakableClient(networkPolicies, west, { writes });
  if (unreadable) inMember.breakWith("not allowed");
  const proxy = proxyPod({ metadata: { namespace: "team" } });
  const proxies = new Store<Pod>({ [NAMESPACE_INDEX]: () => ["team"] });
  proxies.set(proxy);
  proxies.synced = true;
  const of = member("west", inMember.client, {
    read,
    delegates: delegates({ list: () => [], liveIn: () => live }),
  });
  const controller = new NetworkPolicyController({
    host: onHost.client,
    ...surroundings([of], clock),
    recorder: { record: () => {} },
    proxies,
  });
  onTestFinished(() => controller.stop());
  controller.onMembers();
  controller.onProxy({ type: "added", object: proxy });
  await clock.advance(10);
  return {
    clock,
    writes,
    proxies,
    onHost,
    inMember,
    member: of,
    controller,
    proxy,
    prepare: (uid = proxy.metadata.uid) => controller.prepare(objectKey(proxy.metadata), uid, "west"),
    preparation: (): unknown => {
      const needs = controller.needs(proxy);
      return needs?.state === "there" ? needs.in("west") : needs;
    },
  };
}

const ENDING = { deletionTimestamp: "2024-01-01T00:00:00Z" };
const FOR_HOST = { annotations: { "legation.dev/copy": "false" } };

describe("a pod", () => {
  test.each<[string, readonly Policy[], readonly Policy[], boolean]>([
    ["where its namespace has no policy", [], [], true],
    ["starts where its policies are", [rules], [copyOf(rules)], true],
    ["starts without a policy that stays on the host", [policy({}, FOR_HOST)], [], true],
    ["does not start before its policies are there", [rules], [], false],
    ["does not start under other rules", [rules], [copyOf(other)], false],
    ["does not start under a policy that is being deleted", [rules], [copyOf(rules, ENDING)], false],
    ["not before all of them are there", [rules, policy({}, { name: "more", uid: "more" })], [copyOf(rules)], false],
  ])("%s", async (_, host, west, expected) => {
    const { prepare } = await waiting(host, west);
    expect(prepare()).toBe(expected);
  });

  test("does not start, with the reason, while the member does not answer the writes of its policies", async () => {
    const { clock, inMember, preparation } = await waiting([rules], [copyOf(rules)]);
    expect(preparation()).toBe("prepared");
    inMember.breakWith("not allowed");
    await clock.advance(5_000);
    expect(preparation()).toEqual({ refused: expect.stringContaining("not allowed") });
  });

  test("does not start when the host's policies could not be read for a minute", async () => {
    const { clock, onHost, preparation } = await waiting([rules], [copyOf(rules)], { live: 1 });
    onHost.breakWith("not allowed");
    await clock.advance(50_000);
    expect(preparation()).toBe("prepared");
    await clock.advance(30_000);
    expect(preparation()).toEqual({
      state: "missing",
      reason: "NetworkNotReady",
      message: expect.stringContaining("not allowed"),
    });
  });

  test("does not start while its policies there cannot be read", async () => {
    const { preparation } = await waiting([rules], [copyOf(rules)], { unreadable: true });
    expect(preparation()).toEqual({ refused: expect.stringContaining("its NetworkPolicies cannot be read yet") });
  });
});

describe("a member's copies", () => {
  test("are created for the first pod, and not for an earlier one of its name", async () => {
    const { clock, writes, prepare } = await waiting([rules], []);
    expect(prepare("earlier")).toBe(true);
    await clock.advance(10);
    expect(writes).toEqual([]);
    expect(prepare()).toBe(false);
    await clock.advance(10);
    expect(writes).toEqual(["create rules.legation-host-id"]);
  });

  test.each([
    ["are deleted some time after the last pod", {}, true, ["delete rules.legation-host-id"]],
    ["stay for a delegate, whatever is known of its proxy", { live: 1 }, true, []],
    ["stay before the member's pods are known", { read: false }, true, []],
    ["stay before the host's pods are known", {}, false, []],
  ])("%s", async (_, parts, synced, expected) => {
    const { clock, writes, proxies, controller, member } = await waiting([rules], [copyOf(rules)], parts);
    proxies.synced = synced;
    controller.onProxies(member);
    await clock.advance(30_000);
    // The watch never shows its end, so the deletion is retried.
    expect([...new Set(writes)]).toEqual(expected);
  });

  test("do not count for a new pod while their deletion may still happen", async () => {
    const { clock, controller, member, writes, prepare } = await waiting([rules], [copyOf(rules)]);
    controller.onProxies(member);
    await clock.advance(15_000);
    expect(writes).toContain("delete rules.legation-host-id");
    expect(prepare()).toBe(false);
  });
});
