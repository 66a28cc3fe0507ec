import { describe, expect, test } from "vitest";
import { DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { lookUpPod, type PodSource } from "../../../src/kubelet/pod-lookup.ts";
import { Store } from "../../../src/runtime/store.ts";
import { endedStatus, type PodParts, pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";

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
    container = "main",
    uid,
  }: { delegate?: string; reachable?: boolean; container?: string; uid?: string } = {},
): ReturnType<typeof lookUpPod> {
  const proxies = new Store<Pod>();
  if (proxy !== undefined) proxies.set(proxy);
  const member = {
    probed: { reachable },
    read: true,
    delegates: { get: () => (delegate === undefined ? undefined : pod({ uid: delegate })) },
  };
  const source = { registry: { member: () => member, problem: () => undefined }, proxies };
  return lookUpPod(
    source as unknown as PodSource,
    "west",
    { namespace: "team", name: "web-0", ...(uid === undefined ? {} : { uid }) },
    container,
  );
}

describe("a request to a virtual node", () => {
  test("goes to the delegate that the proxy records", () => {
    expect(look(bound({ metadata: recorded }), { delegate: "delegate-uid" })).toMatchObject({ proxyUid: "uid-1" });
  });

  test("for one pod by its uid never goes to a later one of that name", () => {
    const proxy = bound({ metadata: recorded });
    expect(look(proxy, { delegate: "delegate-uid", uid: "uid-1" })).toMatchObject({ proxyUid: "uid-1" });
    expect(look(proxy, { delegate: "delegate-uid", uid: "uid-0" })).toMatchObject({ problem: "notFound" });
  });

  test("finds no pod that is not bound to the node", () => {
    const message = expect.stringContaining("does not exist");
    expect(look(undefined)).toEqual({ problem: "notFound", message });
    expect(look(proxyPod())).toEqual({ problem: "notFound", message });
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
  ])("gets the kubelet's message for a container of a pod %s", (_which, proxy, container, message) => {
    expect(look(proxy, { container })).toEqual({ problem: "notRunning", message });
    expect(look(proxy, { container, delegate: "another-uid" })).toEqual({ problem: "notRunning", message });
  });

  test("finds no ended pod whose delegate is gone", () => {
    expect(look(bound({ metadata: recorded, status: endedStatus(0) }))).toMatchObject({ problem: "notFound" });
  });

  test("reports a silent member before anything about the pod", () => {
    expect(look(bound(), { reachable: false })).toMatchObject({ problem: "unavailable" });
  });
});
