import { describe, expect, test } from "vitest";
import type { Container, PodSpec } from "../../../src/api/kubernetes.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import { pod } from "../../support/builders/pod.ts";

function asking(cpu: string, parts: Partial<Container> = {}): Container {
  return { name: "c", image: "i", resources: { requests: { cpu } }, ...parts };
}

describe("podRequests equals kube-scheduler's", () => {
  test.each<[string, Partial<PodSpec>, number]>([
    ["its containers together", { containers: [asking("500m"), asking("1")] }, 1.5],
    [
      "the greatest init container, when greater",
      { containers: [asking("1")], initContainers: [asking("2"), asking("3")] },
      3,
    ],
    [
      "sidecars beside its containers",
      { containers: [asking("1")], initContainers: [asking("1", { restartPolicy: "Always" })] },
      2,
    ],
    [
      "sidecars beside the init containers after them",
      { containers: [asking("1")], initContainers: [asking("1", { restartPolicy: "Always" }), asking("5")] },
      6,
    ],
    ["its overhead on top", { containers: [asking("1")], overhead: { cpu: "250m" } }, 1.25],
    ["its own requests when it has them", { containers: [asking("1")], resources: { requests: { cpu: "4" } } }, 4],
    [
      "its own limits when nothing is requested",
      { containers: [{ name: "c", image: "i" }], resources: { limits: { cpu: "4" } } },
      4,
    ],
    [
      "what its containers request, within its own limits",
      { containers: [asking("1")], resources: { limits: { cpu: "4" } } },
      1,
    ],
    [
      "requests, also if limits are higher",
      { containers: [asking("1", { resources: { requests: { cpu: "1" }, limits: { cpu: "2" } } })] },
      1,
    ],
    [
      "limits where requests are missing",
      { containers: [{ name: "c", image: "i", resources: { limits: { cpu: "2" } } }] },
      2,
    ],
  ])("%s", (_, spec, cpu) => {
    expect(podRequests(pod({ spec }))).toEqual({ cpu, pods: 1 });
  });
});
