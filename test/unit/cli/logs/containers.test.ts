import { describe, expect, test } from "vitest";
import type { Container, ContainerStatus, Pod } from "../../../../src/api/kubernetes.ts";
import {
  asksForSeveralPods,
  chosenContainers,
  type LogState,
  logStateOf,
  whyNoLog,
} from "../../../../src/cli/logs/containers.ts";
import { containerStatus, pod } from "../../../support/builders/pod.ts";

const containers: Container[] = [{ name: "main" }, { name: "proxy" }];
const initContainers: Container[] = [{ name: "init" }, { name: "sidecar", restartPolicy: "Always" }];
const SPEC = { containers, initContainers };
const DEFAULT = "kubectl.kubernetes.io/default-container";

describe("the containers of a pod", () => {
  test.each<[string, Record<string, string>, Parameters<typeof chosenContainers>[1], readonly string[]]>([
    ["the first one", {}, { all: false }, ["main"]],
    ["the one that the pod's annotation names", { [DEFAULT]: "proxy" }, { all: false }, ["proxy"]],
    ["the first one if the annotation names none of the pod", { [DEFAULT]: "other" }, { all: false }, ["main"]],
    ["the one that the user names", {}, { all: false, container: "init" }, ["init"]],
    ["none if the pod lacks the one that the user names", {}, { all: false, container: "other" }, []],
    ["all, in the order in which they start", {}, { all: true }, ["init", "sidecar", "main", "proxy"]],
  ])("are %s", (_case, annotations, choice, names) => {
    expect(chosenContainers(pod({ spec: SPEC, metadata: { annotations } }), choice)).toEqual(names);
  });
});

type State = NonNullable<ContainerStatus["state"]>;

const WAITING = { waiting: { reason: "ImagePullBackOff", message: "no such image" } };
const RUNNING = { running: {} };
const ended = (exitCode: number): State => ({ terminated: { exitCode } });

function withState(
  state: State,
  {
    phase = "Running",
    restartPolicy = "Never",
    ...rest
  }: Partial<ContainerStatus> & { phase?: string; restartPolicy?: string } = {},
): Pod {
  const status = { phase, containerStatuses: [containerStatus({ state, ...rest })] };
  return pod({ spec: { ...SPEC, restartPolicy }, status });
}

describe("a container's log", () => {
  test.each<[string, LogState, Pod]>([
    ["none before the kubelet knows the container", "none", pod({ spec: SPEC })],
    ["none while the container waits", "none", withState(WAITING)],
    ["never there when the pod ended first", "never", withState(WAITING, { phase: "Failed" })],
    ["growing while the container runs", "growing", withState(RUNNING)],
    ["complete when the container has ended", "complete", withState(ended(1))],
    ["growing when the container failed and restarts", "growing", withState(ended(1), { restartPolicy: "OnFailure" })],
    ["complete when it succeeded, with OnFailure", "complete", withState(ended(0), { restartPolicy: "OnFailure" })],
    [
      "growing while it waits for its next start",
      "growing",
      withState(WAITING, { lastState: ended(1), restartPolicy: "OnFailure" }),
    ],
    [
      "complete when its pod has ended, whatever its policy",
      "complete",
      withState(ended(1), { phase: "Failed", restartPolicy: "OnFailure" }),
    ],
  ])("is %s", (_case, state, of) => {
    expect(logStateOf(of, "main")).toBe(state);
  });

  test("is growing when a sidecar has ended, which restarts by its own policy", () => {
    const initContainerStatuses = [containerStatus({ name: "sidecar", state: ended(0) })];
    const status = { phase: "Running", initContainerStatuses };
    expect(logStateOf(pod({ spec: { ...SPEC, restartPolicy: "Never" }, status }), "sidecar")).toBe("growing");
  });

  test.each<[string, Pod]>([
    ["waits to start: ImagePullBackOff: no such image", withState(WAITING)],
    ["did not run; its pod is Failed", withState(WAITING, { phase: "Failed" })],
    [
      "waits to start: Unschedulable: no node",
      pod({
        status: {
          phase: "Pending",
          conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" }],
        },
      }),
    ],
    ["waits to start", pod()],
  ])("is missing since its container %s", (why, of) => {
    expect(whyNoLog(of, "main")).toBe(why);
  });
});

test.each<[object, boolean]>([
  [{}, false],
  [{ parallelism: 1, completions: 1 }, false],
  [{ parallelism: 2 }, true],
  [{ completions: 20 }, true],
])("a Job with %j asks for several pods: %s", (spec, several) => {
  expect(asksForSeveralPods({ spec: { template: {}, ...spec } })).toBe(several);
});
