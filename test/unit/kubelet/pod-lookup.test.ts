import { describe, expect, test } from "vitest";
import { DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES, type Shard, slotOf } from "../../../src/api/shards.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { lookUpPod, type PodSource } from "../../../src/kubelet/pod-lookup.ts";
import { Store } from "../../../src/runtime/store.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { endedStatus, type PodParts, pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const recorded = { annotations: { [DELEGATE_UID_ANNOTATION]: "delegate-uid" } };

function bound({ spec, ...parts }: PodParts = {}): Stored<Pod> {
  return proxyPod({ ...parts, spec: { nodeName: "legation-west", ...spec } });
}

/** Returns the answer of `west`'s node about a pod's container. */
function look(
  proxy: Stored<Pod> | undefined,
  {
    delegate,
    reachable = true,
    isForward = false,
    container = "main",
    uid,
    shard = ALL_NAMESPACES,
    asked,
  }: {
    delegate?: string;
    reachable?: boolean;
    /** Port-forward names no container. */
    isForward?: boolean;
    container?: string;
    uid?: string;
    shard?: Shard;
    /** The uid of the pod that the member answers with. */
    asked?: string | KubeError;
  } = {},
): ReturnType<typeof lookUpPod> {
  const proxies = new Store<Pod>();
  if (proxy !== undefined) proxies.set(proxy);
  const member = {
    probed: { reachable },
    read: true,
    delegates: { get: () => (delegate === undefined ? undefined : pod({ uid: delegate })) },
    client: fakeClient({
      find: async () => {
        if (asked instanceof KubeError) throw asked;
        return asked === undefined ? undefined : pod({ uid: asked });
      },
    }),
  };
  const source = { registry: { member: () => member, problem: () => undefined }, proxies, shard };
  return lookUpPod(
    source as unknown as PodSource,
    "west",
    { namespace: "team", name: "web-0", ...(uid === undefined ? {} : { uid }) },
    isForward ? undefined : container,
  );
}

describe("a request to a virtual node", () => {
  test("goes to the delegate that the proxy records", async () => {
    expect(await look(bound({ metadata: recorded }), { delegate: "delegate-uid" })).toMatchObject({
      proxyUid: "uid-1",
    });
  });

  test("for one pod by its uid never goes to a later one of that name", async () => {
    const proxy = bound({ metadata: recorded });
    expect(await look(proxy, { delegate: "delegate-uid", uid: "uid-1" })).toMatchObject({ proxyUid: "uid-1" });
    expect(await look(proxy, { delegate: "delegate-uid", uid: "uid-0" })).toMatchObject({ problem: "notFound" });
  });

  test("finds no pod that is not bound to the node", async () => {
    const message = expect.stringContaining("does not exist");
    expect(await look(undefined)).toEqual({ problem: "notFound", message });
    expect(await look(proxyPod())).toEqual({ problem: "notFound", message });
  });

  test("for a connection finds no pod that has ended, though its delegate is still there", async () => {
    const ended = bound({ metadata: recorded, status: endedStatus(0) });
    const delegate = "delegate-uid";
    expect(await look(ended, { delegate })).toMatchObject({ proxyUid: "uid-1" });
    const message = 'pod "web-0" is not available';
    expect(await look(ended, { delegate, isForward: true })).toEqual({ problem: "notRunning", message });
  });

  const elsewhere = { index: 1 - (slotOf("team") % 2), count: 2 };
  test.each([
    ["the delegate that the proxy records", "delegate-uid", { proxyUid: "uid-1" }],
    ["no other pod of its name", "another-uid", { problem: "notRunning" }],
    ["no pod where the member has none", undefined, { problem: "notRunning" }],
    ["a problem of a member that does not answer", kubeError("NotSent", "refused"), { problem: "unavailable" }],
  ])("of another shard, which is not watched, finds %s by asking the member", async (_, asked, found) => {
    const options = { shard: elsewhere, ...(asked === undefined ? {} : { asked }) };
    expect(await look(bound({ metadata: recorded }), options)).toMatchObject(found);
  });

  const initContainers = [{ name: "setup", image: "setup" }];
  test.each<[string, Stored<Pod>, string, string]>([
    [
      "that has no delegate yet",
      bound(),
      "main",
      'container "main" in pod "web-0" is waiting to start: ContainerCreating',
    ],
    [
      "whose delegate is being made again",
      bound({ metadata: recorded }),
      "main",
      'container "main" in pod "web-0" is waiting to start: ContainerCreating',
    ],
    [
      "whose init containers come first",
      bound({ spec: { initContainers } }),
      "main",
      'container "main" in pod "web-0" is waiting to start: PodInitializing',
    ],
    [
      "whose init container it is",
      bound({ spec: { initContainers } }),
      "setup",
      'container "setup" in pod "web-0" is waiting to start: ContainerCreating',
    ],
    [
      "that has run, and whose delegate is gone",
      bound({ metadata: recorded, status: runningStatus() }),
      "main",
      'container "main" in pod "web-0" is not available',
    ],
  ])("gets the kubelet's message for a container of a pod %s", async (_which, proxy, container, message) => {
    expect(await look(proxy, { container })).toEqual({ problem: "notRunning", message });
    expect(await look(proxy, { container, delegate: "another-uid" })).toEqual({ problem: "notRunning", message });
  });

  test("finds no ended pod whose delegate is gone", async () => {
    expect(await look(bound({ metadata: recorded, status: endedStatus(0) }))).toMatchObject({ problem: "notFound" });
  });

  test("reports a silent member before anything about the pod", async () => {
    expect(await look(bound(), { reachable: false })).toMatchObject({ problem: "unavailable" });
  });
});
