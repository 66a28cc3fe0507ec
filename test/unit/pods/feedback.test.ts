import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isJsonObject } from "../../../src/api/json.ts";
import { PLACED_CONDITION } from "../../../src/api/keys.ts";
import type { PodCondition, PodStatus } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { statusFrom, statusPatch } from "../../../src/pods/feedback.ts";
import { containerStatus, endedStatus, pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";

const waiting = (type: string): PodCondition => ({ type, status: "False", reason: "NotPlaced", message: "west: full" });
const placedBefore = { type: PLACED_CONDITION, status: "True", reason: "Placed" };

describe("a proxy's status", () => {
  test("copies the delegate's verbatim, with unknown fields", () => {
    const status = { ...runningStatus(), fieldOfTheFuture: [1, { two: 3 }] };
    expect(statusFrom(proxyPod(), pod({ status }))).toEqual(status);
  });

  test.each([
    ["nominatedNodeName", "node-7"],
    ["resourceClaimStatuses", [{ name: "gpu" }]],
    ["qosClass", "Burstable"],
  ])("keeps the host's %s", (field, value) => {
    const delegate = pod({ status: { ...runningStatus(), [field]: value } });
    expect(statusFrom(proxyPod(), delegate)).not.toHaveProperty(field);
  });

  test("drops statuses of containers that the member injected", () => {
    const injected = containerStatus({ name: "mesh-sidecar" });
    const own = containerStatus();
    const delegate = pod({
      status: { phase: "Running", containerStatuses: [injected, own], initContainerStatuses: [injected] },
    });
    const status = statusFrom(proxyPod(), delegate);
    expect(status?.containerStatuses).toEqual([own]);
    expect(status).not.toHaveProperty("initContainerStatuses");
  });

  test("drops devices that the proxy did not request", () => {
    const health = (...names: string[]): object[] => names.map((name) => ({ name, resources: [] }));
    const told = (...names: string[]) =>
      containerStatus({ allocatedResourcesStatus: health(...names), state: { running: {} } } as object);
    const resources = { requests: { "own/gpu": "1" }, claims: [{ name: "a" }, { name: "b", request: "big" }] };
    const proxy = proxyPod({ spec: { containers: [{ name: "main", resources }] } });
    const delegate = (...names: string[]) => pod({ status: { phase: "Running", containerStatuses: [told(...names)] } });
    const own = ["own/gpu", "claim:a", "claim:b/big"];
    const shown = (...names: string[]) => statusFrom(proxy, delegate(...names))?.containerStatuses;
    expect(shown(...own, "other/gpu", "claim:b", "claim:c")).toEqual([told(...own)]);
    expect(shown("other/gpu")?.[0]).not.toHaveProperty("allocatedResourcesStatus");
  });

  test("shows the devices of extended resources that the proxy requested", () => {
    const mapping = (containerName: string, resourceName: string) => ({
      containerName,
      resourceName,
      requestName: "r",
    });
    const told = (...requestMappings: ReturnType<typeof mapping>[]) =>
      pod({
        status: { ...runningStatus(), extendedResourceClaimStatus: { requestMappings, resourceClaimName: "made" } },
      });
    const resources = { requests: { "own/gpu": "1" } };
    const proxy = proxyPod({ spec: { containers: [{ name: "main", resources }] } });
    const own = mapping("main", "own/gpu");
    const others = [mapping("main", "other/gpu"), mapping("sidecar", "own/gpu")];
    expect(statusFrom(proxy, told(own, ...others))).toMatchObject({
      extendedResourceClaimStatus: { requestMappings: [own], resourceClaimName: "made" },
    });
    expect(statusFrom(proxy, told(...others))).not.toHaveProperty("extendedResourceClaimStatus");
  });

  test("renames mounts to the proxy's volumes, and drops the member's own", () => {
    const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
    const mounted = { mountPath, readOnly: true, recursiveReadOnly: "Disabled" };
    const main = (...volumeMounts: { name: string; mountPath: string }[]) =>
      containerStatus({ volumeMounts, state: { running: {} } });
    const own = { name: "kube-api-access-host", mountPath };
    const proxy = proxyPod({ spec: { containers: [{ name: "main", volumeMounts: [own] }] } });
    const told = main({ ...mounted, name: "kube-api-access-member" }, { name: "mesh", mountPath: "/mesh" });
    const status = { phase: "Running", containerStatuses: [told] };
    const shown = main({ ...mounted, name: "kube-api-access-host" });
    expect(statusFrom(proxy, pod({ status }))?.containerStatuses).toEqual([shown]);
    const { volumeMounts: _, ...bare } = told;
    expect(statusFrom(proxyPod(), pod({ status }))?.containerStatuses).toEqual([bare]);
  });

  const unschedulable = { type: "PodScheduled", status: "False", reason: "Unschedulable" };
  const scheduled = { type: "PodScheduled", status: "True" };
  test.each<[string, PodCondition[], PodCondition]>([
    ["True, once it is bound", [scheduled], unschedulable],
    ["False, as long as it is not bound", [waiting("PodScheduled")], scheduled],
    ["absent, as long as nothing has been reported", [], scheduled],
  ])("keeps the host's PodScheduled %s, whatever the delegate's is", (_, conditions, theirs) => {
    const proxy = proxyPod({ status: { phase: "Pending", conditions } });
    const delegate = pod({ status: { phase: "Pending", conditions: [theirs] } });
    expect(statusFrom(proxy, delegate)?.conditions).toEqual(conditions);
  });

  test("keeps conditions that the host set, such as readiness gates", () => {
    const gate = { type: "example.com/gate", status: "True" };
    const proxy = proxyPod({ status: { phase: "Running", conditions: [gate] } });
    const conditions = statusFrom(proxy, pod({ status: runningStatus() }))?.conditions;
    expect(conditions).toEqual([gate, { type: "Ready", status: "True" }]);
  });

  test.each<[string, PodCondition[], PodCondition[]]>([
    ["has the waiting condition of an earlier version", [waiting(PLACED_CONDITION)], []],
    ["waited in its member, whose kubelet reported nothing", [waiting("PodReadyToStartContainers")], []],
    ["was placed by an earlier version", [placedBefore], [placedBefore]],
  ])("removes the waiting condition of a proxy that %s", (_, conditions, kept) => {
    const proxy = proxyPod({ status: { phase: "Pending", conditions } });
    const ready = { type: "Ready", status: "True" };
    expect(statusFrom(proxy, pod({ status: runningStatus() }))?.conditions).toEqual([...kept, ready]);
  });

  test("never removes another controller's condition on the host", () => {
    const evicted = { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" };
    const proxy = proxyPod({ status: { phase: "Running", conditions: [evicted] } });
    expect(statusFrom(proxy, pod({ status: endedStatus(1) }))?.conditions).toEqual([evicted]);
  });

  test("keeps the host's eviction condition when the member's ends", () => {
    const evicted = { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" };
    const over = { type: "DisruptionTarget", status: "False", reason: "" };
    const status = { ...endedStatus(1), conditions: [over] };
    const proxy = proxyPod({ status: { phase: "Running", conditions: [evicted] } });
    expect(statusFrom(proxy, pod({ status }))?.conditions).toEqual([evicted]);
    expect(statusFrom(proxyPod(), pod({ status }))?.conditions).toEqual([]);
  });

  test("copies statuses of all kinds of containers in their order", () => {
    const message = '{"a":"\u0000\ud83d\ude00\\n"}\n\u2028';
    const terminated = { exitCode: 3, message, reason: "Error" };
    const crashed = containerStatus({ restartCount: 4, lastState: { terminated }, state: { waiting: {} } });
    const status: PodStatus = {
      phase: "Running",
      containerStatuses: [containerStatus({ name: "b" }), crashed],
      initContainerStatuses: [containerStatus({ name: "setup", state: { terminated } })],
      ephemeralContainerStatuses: [containerStatus({ name: "debugger", state: { running: {} } })],
    };
    const spec = {
      containers: [{ name: "main" }, { name: "b" }],
      initContainers: [{ name: "setup" }],
      ephemeralContainers: [{ name: "debugger" }],
    };
    const proxy = proxyPod({ spec });
    const shown = statusFrom(proxy, pod({ spec, status }));
    expect(shown).toEqual({ ...status, conditions: [] });
    expect(statusPatch(proxy, shown ?? {})?.status).toEqual(status);
  });
});

describe("observedGeneration of a proxy", () => {
  const conditions = [{ type: "Ready", status: "True", observedGeneration: 1 }];
  const status: PodStatus = { ...runningStatus(), observedGeneration: 2, conditions };
  const shown = { observedGeneration: 3, conditions: [{ type: "Ready", status: "False", observedGeneration: 3 }] };

  test("is the newest once the delegate's is", () => {
    const proxy = proxyPod({ metadata: { generation: 4 } });
    const told = statusFrom(proxy, pod({ metadata: { generation: 2 }, status }));
    expect(told?.observedGeneration).toBe(4);
    expect(told?.conditions).toEqual([{ type: "Ready", status: "True" }]);
  });

  test("stays until then, since the API server lets no client remove it", () => {
    const proxy = proxyPod({ metadata: { generation: 4 }, status: shown });
    const told = statusFrom(proxy, pod({ metadata: { generation: 3 }, status }));
    expect(told?.observedGeneration).toBe(3);
    expect(told?.conditions).toEqual([{ type: "Ready", status: "True", observedGeneration: 3 }]);
    expect(statusFrom(proxyPod(), pod({ metadata: { generation: 3 }, status }))).not.toHaveProperty(
      "observedGeneration",
    );
  });

  test("waits for a change that has still to reach the delegate", () => {
    const made = toDelegate(proxyPod(), { id: "host-id", name: "cern" });
    const delegate = pod({ metadata: { ...made.metadata, generation: 2 }, status });
    const changed = proxyPod({
      metadata: { generation: 4 },
      spec: { containers: [{ name: "main", image: "other" }] },
      status: shown,
    });
    expect(statusFrom(changed, delegate)?.observedGeneration).toBe(3);
  });
});

describe("a phase never goes backwards", () => {
  test.each([
    ["Succeeded", runningStatus()],
    ["Failed", runningStatus()],
    ["Failed", endedStatus(0)],
    ["Running", { phase: "Pending" }],
    ["Running", { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] }],
    ["Running", {}],
  ])("%s ignores %j", (phase, status) => {
    expect(statusFrom(proxyPod({ status: { phase } }), pod({ status }))).toBeUndefined();
  });

  test.each([
    ["Pending", runningStatus()],
    ["Running", endedStatus(0)],
    ["Pending", endedStatus(1)],
  ])("%s advances to %j", (phase, status) => {
    expect(statusFrom(proxyPod({ status: { phase } }), pod({ status }))?.phase).toBe(status.phase);
  });

  test("takes all but the phase while init containers run again in a new sandbox", () => {
    const waiting = { name: "main", ready: false, state: { waiting: { reason: "PodInitializing" } } };
    const status = {
      phase: "Pending",
      podIP: "10.1.0.9",
      conditions: [{ type: "Ready", status: "False" }],
      containerStatuses: [{ ...waiting, image: "", imageID: "", restartCount: 0 }],
    };
    const proxy = proxyPod({ status: { phase: "Running", podIP: "10.1.0.1" } });
    expect(statusFrom(proxy, pod({ status }))).toEqual({ ...status, phase: "Running" });
  });

  test.each([undefined, []])("waits for container statuses before Running: %j", (containerStatuses) => {
    const conditions = [{ type: "Initialized", status: "True" }];
    const status = { phase: "Running", conditions, ...(containerStatuses === undefined ? {} : { containerStatuses }) };
    expect(statusFrom(proxyPod(), pod({ status }))).toEqual({ phase: "Pending", conditions });
  });

  test("updates the rest of a terminal status, except reason and message", () => {
    const proxy = proxyPod({ status: { ...endedStatus(1), reason: "DeadlineExceeded", message: "too long" } });
    const conditions = [{ type: "PodReadyToStartContainers", status: "False" }];
    const shown = statusFrom(proxy, pod({ status: { ...endedStatus(1), message: "other", conditions } }));
    expect(shown).toEqual({ ...endedStatus(1), reason: "DeadlineExceeded", message: "too long", conditions });
  });
});

describe("a status patch", () => {
  test("is undefined if the proxy shows the status already", () => {
    expect(statusPatch(proxyPod({ status: runningStatus() }), runningStatus())).toBeUndefined();
  });

  test("holds changes and removals, with the uid as a precondition", () => {
    const proxy = proxyPod({ status: { phase: "Pending", message: "pulling", hostIP: "10.0.0.1" } });
    expect(statusPatch(proxy, { phase: "Running", hostIP: "10.0.0.1" })).toEqual({
      metadata: { uid: "uid-1" },
      status: { phase: "Running", message: null },
    });
  });

  test("replaces lists that strategic merge would add to", () => {
    const proxy = proxyPod({ status: { podIPs: [{ ip: "10.1.0.1" }], hostIPs: [{ ip: "10.0.0.1" }] } });
    const wanted = { podIPs: [{ ip: "10.1.0.2" }], hostIPs: [{ ip: "10.0.0.2" }] };
    expect(statusPatch(proxy, wanted)?.status).toEqual({
      podIPs: [{ ip: "10.1.0.2" }, { $patch: "replace" }],
      hostIPs: [{ ip: "10.0.0.2" }, { $patch: "replace" }],
    });
  });

  test("replaces maps that strategic merge would add to, where the proxy has one", () => {
    const proxy = proxyPod({ status: { allocatedResources: { cpu: "1", memory: "1Gi" } } as PodStatus });
    const wanted = { allocatedResources: { cpu: "2" }, resources: { limits: { cpu: "2" } } } as PodStatus;
    expect(statusPatch(proxy, wanted)?.status).toEqual({
      allocatedResources: { cpu: "2", $patch: "replace" },
      resources: { limits: { cpu: "2" } },
    });
  });

  test("merges conditions by type, and removes lost fields and types", () => {
    const ready = { type: "Ready", status: "False", reason: "ContainersNotReady" };
    const kept = { type: "Initialized", status: "True" };
    const gone = { type: "PodResizePending", status: "True" };
    const proxy = proxyPod({ status: { conditions: [ready, kept, gone] } });
    const wanted = { conditions: [kept, { type: "Ready", status: "True" }] };
    expect(statusPatch(proxy, wanted)?.status).toEqual({
      conditions: [
        { type: "Ready", status: "True", reason: null },
        { type: "PodResizePending", $patch: "delete" },
      ],
    });
  });

  test("leaves no difference once applied, for any two statuses", () => {
    const text = fc.string({ maxLength: 4 });
    const condition = fc.record(
      { type: fc.constantFrom("A", "B", "C"), status: text, reason: text },
      { requiredKeys: ["type", "status"] },
    );
    const status = fc.record(
      {
        phase: fc.constantFrom("Pending", "Running"),
        message: text,
        podIPs: fc.array(fc.record({ ip: text }), { maxLength: 2 }),
        allocatedResources: fc.dictionary(fc.constantFrom("cpu", "memory"), text),
        conditions: fc.uniqueArray(condition, { selector: ({ type }) => type, maxLength: 3 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(status, status, (current, wanted) => {
        const patch = statusPatch(proxyPod({ status: current }), wanted);
        const applied = patch === undefined ? current : strategicMerge(current, patch.status);
        expect(statusPatch(proxyPod({ status: applied }), wanted)).toBeUndefined();
      }),
    );
  });
});

/** Applies a strategic merge patch, for the fields that the property uses. */
function strategicMerge(current: PodStatus, patch: Record<string, unknown>): PodStatus {
  const merged: Record<string, unknown> = { ...current };
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete merged[field];
    else if (field === "podIPs" && Array.isArray(value)) merged[field] = value.filter((item) => !("$patch" in item));
    else if (field === "conditions" && Array.isArray(value)) {
      const byType = new Map((current.conditions ?? []).map((condition) => [condition.type, { ...condition }]));
      for (const { $patch, ...change } of value) {
        if ($patch === "delete") byType.delete(change.type);
        else {
          const next = { ...byType.get(change.type), ...change };
          for (const key of Object.keys(next)) if (next[key] === null) delete next[key];
          byType.set(change.type, next);
        }
      }
      merged[field] = [...byType.values()];
    } else if (isJsonObject(value) && isJsonObject(merged[field])) {
      const { $patch, ...fields } = value;
      merged[field] = $patch === "replace" ? fields : { ...merged[field], ...fields };
    } else merged[field] = value;
  }
  return merged;
}
