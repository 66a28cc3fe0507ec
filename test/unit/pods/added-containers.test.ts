import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod, PodSpec, PodStatus, Stored } from "../../../src/api/kubernetes.ts";
import { feedback } from "../../../src/controllers/delegation/decision/feedback.ts";
import { addedCondition } from "../../../src/pods/added-containers.ts";
import { statusFrom, statusPatch } from "../../../src/pods/feedback.ts";
import { containerStatus, pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";

const TYPE = "legation.dev/AddedContainers";
const proxy = proxyPod({ status: runningStatus() });

/** A delegate that has `mesh` beyond the proxy's containers. */
function delegateWith(
  mesh: Partial<ContainerStatus>,
  { status = {}, spec = {} }: { status?: Partial<PodStatus>; spec?: Partial<PodSpec> } = {},
): Stored<Pod> {
  const own = pod().spec?.containers ?? [];
  const containerStatuses = [containerStatus(), containerStatus({ name: "mesh", ...mesh })];
  return pod({
    spec: { containers: [...own, { name: "mesh" }], ...spec },
    status: { ...runningStatus(), startTime: "2026-01-01T00:00:01Z", containerStatuses, ...status },
  });
}

const backOff = {
  ready: false,
  restartCount: 3,
  state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 40s restarting failed container" } },
  lastState: { terminated: { exitCode: 7, reason: "Error" } },
};

describe("containers that a member added to a delegate", () => {
  test.each<[string, Partial<ContainerStatus>, object, string, string]>([
    ["runs", { ready: true, state: { running: {} } }, {}, "ContainerAdded", "mesh"],
    ["starts", { ready: false, state: { waiting: { reason: "ContainerCreating" } } }, {}, "ContainerAdded", "mesh"],
    [
      "runs and is not ready",
      { ready: false, state: { running: {} } },
      {},
      "ContainerNotReady",
      "mesh runs and is not ready",
    ],
    ["crashes", backOff, {}, "ContainerFailing", "mesh waits: CrashLoopBackOff, exit code 7 (Error), 3 restarts"],
    [
      "has no image",
      { ready: false, state: { waiting: { reason: "ErrImagePull" } } },
      {},
      "ContainerFailing",
      "mesh waits: ErrImagePull",
    ],
    [
      "ended with an error",
      { ready: false, state: { terminated: { exitCode: 1 } } },
      {},
      "ContainerFailing",
      "mesh ended: exit code 1",
    ],
    [
      "was killed at the end of a pod that succeeded",
      { ready: false, state: { terminated: { exitCode: 137 } } },
      { status: { phase: "Succeeded" } },
      "ContainerAdded",
      "mesh",
    ],
  ])("are named in a condition of the proxy, with their state: one that %s", (_, mesh, parts, reason, message) => {
    expect(addedCondition(proxy, delegateWith(mesh, parts))).toEqual({
      type: TYPE,
      status: "True",
      reason,
      message,
      lastTransitionTime: "2026-01-01T00:00:01Z",
    });
  });

  test("may be init containers, of which a plain one is not ready until it has ended", () => {
    const init = (name: string, restartPolicy?: "Always") => ({
      name,
      ...(restartPolicy === undefined ? {} : { restartPolicy }),
    });
    const running = { ready: false, state: { running: {} } };
    const delegate = pod({
      spec: { initContainers: [init("setup"), init("proxy", "Always")] },
      status: {
        ...runningStatus(),
        initContainerStatuses: [
          containerStatus({ name: "setup", ...running }),
          containerStatus({ name: "proxy", ...running }),
        ],
      },
    });
    expect(addedCondition(proxy, delegate)?.message).toBe("setup; proxy runs and is not ready");
  });

  test("cost no condition where there are none, whatever the member reports, and none but the first while they end", () => {
    const forged = { type: TYPE, status: "True", message: "forged" };
    const none = pod({ status: { ...runningStatus(), conditions: [forged] } });
    expect(statusFrom(proxy, none)?.conditions?.map(({ type }) => type)).not.toContain(TYPE);
    const ending = delegateWith(backOff);
    ending.metadata.deletionTimestamp = "2026-01-01T00:01:00Z";
    expect(addedCondition(proxy, ending)).toBeUndefined();
  });

  test("are written with the status of the pod, and not again while nothing changes", () => {
    const delegate = delegateWith(backOff);
    const wanted = statusFrom(proxy, delegate) ?? {};
    expect(wanted.containerStatuses?.map(({ name }) => name)).toEqual(["main"]);
    const shown = { ...proxy, status: wanted };
    expect(statusPatch(shown, statusFrom(shown, delegate) ?? {})).toBeUndefined();
    const others = delegateWith({
      ...backOff,
      state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 1m20s" } },
    });
    expect(statusPatch(shown, statusFrom(shown, others) ?? {})).toBeUndefined();
  });

  test("are told in an event when one begins to fail, with the command that shows its log", () => {
    const delegate = delegateWith(backOff);
    const [write, told] = feedback(proxy, delegate);
    expect(write?.type).toBe("status");
    expect(told).toMatchObject({
      type: "announce",
      reason: "AddedContainerFailing",
      message: expect.stringMatching(
        /added containers, and they fail: mesh waits: CrashLoopBackOff.*`legation logs \S+ -n \S+ -c NAME`/,
      ),
    });
    const shown = { ...proxy, status: statusFrom(proxy, delegate) ?? {} };
    expect(feedback(shown, delegateWith({ ...backOff, restartCount: 4 })).map(({ type }) => type)).toEqual(["status"]);
  });

  test("are named as far as a condition may be long", () => {
    const containers = Array.from({ length: 200 }, (_, index) => ({ name: `added-${index}` }));
    const message = addedCondition(proxy, pod({ spec: { containers } }))?.message ?? "";
    expect(message).toHaveLength(1_024);
    expect(message).toMatch(/^added-0; added-1; .*…$/);
  });
});
