import { describe, expect, test } from "vitest";
import { LIMIT_RANGER_ANNOTATION } from "../../../src/api/keys.ts";
import type { Container, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import type { RequestMutation } from "../../../src/placement/requests.ts";
import { RequestMutations, requestMutation } from "../../../src/scheduling/request-mutations.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const container = (name: string, requests: Record<string, string> = {}): Container => ({
  name,
  image: "busybox",
  resources: { requests },
});
const plain = pod();
const limitRanger = (text: string): { annotations: Record<string, string> } => ({
  annotations: { [LIMIT_RANGER_ANNOTATION]: `LimitRanger plugin set: ${text}` },
});

function storedAs(spec: Partial<PodSpec>, metadata = {}): Stored<Pod> {
  return pod({ spec, metadata });
}

describe("what a member made of a pod's requests", () => {
  test.each<[string, Pod, Pod, RequestMutation | undefined]>([
    ["nothing, as they are those that were sent", plain, storedAs({}), undefined],
    [
      "nothing, as the API server's default of a request is the limit",
      storedAs({ containers: [{ name: "main", image: "x", resources: { limits: { cpu: "1" } } }] }),
      storedAs({
        containers: [{ name: "main", image: "x", resources: { limits: { cpu: "1" }, requests: { cpu: "1" } } }],
      }),
      undefined,
    ],
    [
      "a LimitRange's default request",
      plain,
      storedAs({ containers: [container("main", { cpu: "20" })] }, limitRanger("cpu request for container main")),
      { requests: { cpu: 20, pods: 1 }, by: { cpu: "LimitRange" } },
    ],
    [
      "a LimitRange's default limit, of an extended resource",
      plain,
      storedAs(
        { containers: [{ name: "main", image: "x", resources: { limits: { "example.com/gpu": "2" } } }] },
        limitRanger("example.com/gpu limit for container main"),
      ),
      { requests: { "example.com/gpu": 2, pods: 1 }, by: { "example.com/gpu": "LimitRange" } },
    ],
    [
      "a LimitRange's default for an init container",
      storedAs({ initContainers: [container("setup")] }),
      storedAs(
        { initContainers: [container("setup", { memory: "1Ki" })] },
        limitRanger("memory request for init container setup"),
      ),
      { requests: { memory: 1024, pods: 1 }, by: { memory: "LimitRange" } },
    ],
    [
      "a webhook's sidecar, whatever LimitRanger set of it",
      plain,
      storedAs(
        { initContainers: [{ ...container("mesh", { cpu: "100m" }), restartPolicy: "Always" }] },
        limitRanger("cpu request for init container mesh"),
      ),
      { requests: { cpu: 0.1, pods: 1 }, by: { cpu: "Admission" } },
    ],
    [
      "a request at the level of the pod that a webhook raised, beside what LimitRanger set",
      storedAs({ resources: { requests: { cpu: "1" } } }),
      storedAs({ resources: { requests: { cpu: "2" } } }, limitRanger("memory request for container main")),
      { requests: { cpu: 2, pods: 1 }, by: { cpu: "Admission" } },
    ],
    [
      "a smaller request",
      storedAs({ containers: [container("main", { cpu: "2" })] }),
      storedAs({ containers: [container("main")] }),
      { requests: { pods: 1 }, by: { cpu: "Admission" } },
    ],
    [
      "the overhead of the member's RuntimeClass, not that of the host's",
      storedAs({ overhead: { cpu: "3" } }),
      storedAs({ overhead: { cpu: "250m" } }),
      { requests: { cpu: 0.25, pods: 1 }, by: { cpu: "RuntimeClass" } },
    ],
    [
      "a webhook's request beside an overhead",
      plain,
      storedAs({ overhead: { cpu: "250m" }, containers: [container("main", { cpu: "1" })] }),
      { requests: { cpu: 1.25, pods: 1 }, by: { cpu: "Admission" } },
    ],
    [
      "a webhook's request, where the annotation is that of the host's LimitRanger",
      pod({ metadata: limitRanger("cpu request for container main") }),
      storedAs({ containers: [container("main", { cpu: "1" })] }, limitRanger("cpu request for container main")),
      { requests: { cpu: 1, pods: 1 }, by: { cpu: "Admission" } },
    ],
  ])("is %s", (_, sent, stored, mutation) => {
    expect(requestMutation(sent, stored)).toEqual(mutation);
  });
});

describe("what is learnt of a member's admission", () => {
  const first = proxyPod({ name: "web-0", uid: "first" });
  const second = proxyPod({ name: "web-1", uid: "second" });
  const twenty: RequestMutation = { requests: { cpu: 20, pods: 1 }, by: { cpu: "LimitRange" } };
  const five: RequestMutation = { requests: { cpu: 5, pods: 1 }, by: { cpu: "LimitRange" } };

  test("holds for pods of the shape, in that namespace and member", () => {
    const mutations = new RequestMutations();
    expect(mutations.of(second, 0)).toBeUndefined();
    expect(mutations.learn("west", first, twenty, 0)).toBe(true);
    const known = (pod: Stored<Pod>, member: string): unknown => mutations.of(pod, 0)?.(member)?.mutation;
    const elsewhere = proxyPod({ metadata: { namespace: "other" } });
    const larger = proxyPod({ spec: { containers: [container("main", { cpu: "1" })] } });
    expect([known(second, "west"), known(second, "east"), known(elsewhere, "west"), known(larger, "west")]).toEqual([
      twenty,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("is replaced by another answer, and forgotten by one that changes nothing", () => {
    const mutations = new RequestMutations();
    expect(
      [twenty, { ...twenty }, five, undefined, undefined].map((made) => mutations.learn("west", first, made, 0)),
    ).toEqual([true, false, true, true, false]);
    expect(mutations.of(first, 0)).toBeUndefined();
  });

  test("is tried anew ten minutes after the last answer", () => {
    const mutations = new RequestMutations();
    mutations.learn("west", first, twenty, 0);
    mutations.learn("west", second, twenty, 60_000);
    const known = (now: number): unknown => mutations.of(first, now)?.("west")?.until;
    expect([known(659_999), known(660_000)]).toEqual([660_000, undefined]);
    expect(mutations.learn("west", first, twenty, 660_000)).toBe(true);
  });

  test("is bounded by member: the shape that was learnt first is forgotten", () => {
    const mutations = new RequestMutations();
    const of = (number: number): Stored<Pod> => proxyPod({ spec: { serviceAccountName: `sa-${number}` } });
    for (let number = 0; number <= 1000; number += 1) mutations.learn("west", of(number), twenty, 0);
    const known = (number: number): unknown => mutations.of(of(number), 0)?.("west")?.mutation;
    expect([known(0), known(1), known(1000)]).toEqual([undefined, twenty, twenty]);
  });
});
