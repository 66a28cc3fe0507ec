import { describe, expect, test } from "vitest";
import type { ContainerStatus, PodStatus } from "../../../src/api/kubernetes.ts";
import { lostPodStatus } from "../../../src/pods/lost-status.ts";
import { containerStatus, endedStatus, proxyPod, runningStatus } from "../../support/builders/pod.ts";

const now = Date.parse("2026-02-03T04:05:06.789Z");

describe("the status of a proxy whose delegate is gone", () => {
  test("is Failed, with running containers as the kubelet reports ones it cannot find", () => {
    const status = lostPodStatus(proxyPod({ status: runningStatus() }), { message: "deleted", now });
    expect(status.phase).toBe("Failed");
    expect(status.containerStatuses?.[0]?.state).toEqual({
      terminated: {
        exitCode: 137,
        reason: "ContainerStatusUnknown",
        message: "The container could not be located when the pod was terminated",
        startedAt: "2026-01-01T00:00:00Z",
        finishedAt: "2026-02-03T04:05:06Z",
      },
    });
    expect(status.conditions).toContainEqual(expect.objectContaining({ type: "Ready", status: "False" }));
    expect(status.conditions?.map(({ type }) => type)).not.toContain("DisruptionTarget");
  });

  test("keeps node, start time and container ids", () => {
    const running = { ...runningStatus(), startTime: "2026-01-01T00:00:00Z", podIP: "10.1.2.3" };
    const containerStatuses = [containerStatus({ state: { running: {} }, containerID: "containerd://abc" })];
    const status = lostPodStatus(proxyPod({ status: { ...running, containerStatuses } }), { message: "deleted", now });
    expect(status).toMatchObject({ phase: "Failed", startTime: running.startTime, podIP: running.podIP });
    expect(status.containerStatuses?.[0]?.state?.terminated).toMatchObject({ containerID: "containerd://abc" });
  });

  test("keeps the time since when the pod is not ready", () => {
    const before = "2026-01-15T00:00:00Z";
    const conditions = [
      { type: "Ready", status: "False", lastTransitionTime: before },
      { type: "ContainersReady", status: "True", lastTransitionTime: before },
    ];
    const status = lostPodStatus(proxyPod({ status: { ...runningStatus(), conditions } }), { message: "deleted", now });
    expect(status.conditions).toEqual([
      { type: "Ready", status: "False", reason: "PodFailed", lastTransitionTime: before },
      { type: "ContainersReady", status: "False", reason: "PodFailed", lastTransitionTime: "2026-02-03T04:05:06Z" },
    ]);
  });

  test("is a disruption if the host did not ask for the end", () => {
    const options = { message: "deleted there", disruptedBy: "DeletedInMember", now };
    const { reason, conditions } = lostPodStatus(proxyPod({ status: runningStatus() }), options);
    expect(reason).toBe("DeletedInMember");
    expect(conditions).toContainEqual(
      expect.objectContaining({ type: "DisruptionTarget", status: "True", message: "deleted there" }),
    );
  });

  test("keeps the reason of an announced eviction", () => {
    const evicted = { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "drained" };
    const options = { message: "deleted there", disruptedBy: "DeletedInMember", now };
    const { conditions } = lostPodStatus(proxyPod({ status: { ...runningStatus(), conditions: [evicted] } }), options);
    expect(conditions).toContainEqual(evicted);
  });

  test("keeps statuses of terminated containers", () => {
    const ended = endedStatus(3);
    const status = lostPodStatus(proxyPod({ status: { ...ended, phase: "Running" } }), { message: "deleted", now });
    expect(status.containerStatuses).toEqual(ended.containerStatuses);
  });

  const waiting = { waiting: { reason: "PodInitializing" } };
  const looping = { waiting: { reason: "CrashLoopBackOff" } };
  const failed = { terminated: { exitCode: 1 } };
  const done = { terminated: { exitCode: 0 } };
  const init = [{ name: "first" }, { name: "second" }];
  const first = (parts: Partial<ContainerStatus>) => containerStatus({ name: "first", ...parts });
  const second = (parts: Partial<ContainerStatus>) => containerStatus({ name: "second", ...parts });

  test.each<[string, PodStatus, readonly { readonly name: string }[], readonly string[]]>([
    [
      "a container that restarts again and again",
      { containerStatuses: [containerStatus({ state: looping })] },
      [],
      ["main"],
    ],
    [
      "a container that has not begun, without init containers",
      { containerStatuses: [containerStatus({ state: waiting })] },
      [],
      ["main"],
    ],
    [
      "the init container that is tried, and not what comes after it",
      {
        initContainerStatuses: [first({ state: looping, lastState: failed }), second({ state: waiting })],
        containerStatuses: [containerStatus({ state: waiting })],
      },
      init,
      ["first"],
    ],
    [
      "the first init container, though nothing has begun",
      {
        initContainerStatuses: [first({ state: waiting }), second({ state: waiting })],
        containerStatuses: [containerStatus({ state: waiting })],
      },
      init,
      ["first"],
    ],
    [
      "a container whose init containers are done",
      {
        initContainerStatuses: [first({ state: done }), second({ state: done })],
        containerStatuses: [containerStatus({ state: waiting })],
      },
      init,
      ["main"],
    ],
    [
      "a container beside one that has begun, though the init containers run again",
      {
        initContainerStatuses: [first({ state: waiting }), second({ state: waiting })],
        containerStatuses: [containerStatus({ state: looping, lastState: failed })],
      },
      init,
      ["first", "main"],
    ],
  ])("ends %s like the kubelet", (_, status, initContainers, names) => {
    const { initContainerStatuses = [], containerStatuses = [] } = lostPodStatus(
      proxyPod({ spec: { initContainers: [...initContainers] }, status: { phase: "Pending", ...status } }),
      { message: "deleted", now },
    );
    const unknown = [...initContainerStatuses, ...containerStatuses].filter(
      ({ state }) => state?.terminated?.reason === "ContainerStatusUnknown" && state.waiting === undefined,
    );
    expect(unknown.map(({ name }) => name)).toEqual(names);
  });
});
