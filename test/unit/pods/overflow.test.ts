import { describe, expect, test } from "vitest";
import type { PodSpec, Toleration } from "../../../src/api/kubernetes.ts";
import { asksHostFirst, hostClaim, isOverflow, toleratesVirtualNodes, toOverflow } from "../../../src/pods/overflow.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

describe("a pod in overflow mode", () => {
  test("is known by its label alone until it becomes a proxy, and keeps its own scheduler", () => {
    const overflow = toOverflow(pod({ metadata: { labels: { app: "web" } } }));
    expect([isOverflow(overflow), asksHostFirst(overflow)]).toEqual([true, true]);
    expect(overflow.metadata?.labels).toMatchObject({ app: "web" });
    expect([isOverflow(proxyPod()), asksHostFirst(proxyPod())]).toEqual([false, false]);
  });

  test.each<[string, Pick<PodSpec, "volumes" | "resourceClaims">, string | undefined]>([
    ["a claim", { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] }, "spec.volumes: data"],
    ["a claim of its own", { volumes: [{ name: "scratch", ephemeral: {} }] }, "spec.volumes: scratch"],
    ["a device", { resourceClaims: [{ name: "gpu" }] }, "spec.resourceClaims: gpu"],
    ["no claim", { volumes: [{ name: "tmp", emptyDir: {} }], resourceClaims: [] }, undefined],
  ])("stays on the host for %s", (_which, spec, claim) => {
    expect(hostClaim(spec)).toBe(claim);
  });

  test.each<[string, Toleration[], boolean]>([
    ["the virtual nodes' own taint", [{ key: "legation.dev/virtual-node", operator: "Exists" }], true],
    ["every taint", [{ operator: "Exists" }], true],
    ["another taint", [{ key: "spot", operator: "Exists" }], false],
    ["another effect of it", [{ key: "legation.dev/virtual-node", operator: "Exists", effect: "NoExecute" }], false],
  ])("may be bound to a virtual node by the host's scheduler if it tolerates %s", (_which, tolerations, expected) => {
    expect(toleratesVirtualNodes(tolerations)).toBe(expected);
  });
});
