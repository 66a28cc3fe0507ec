import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION, OWNER_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeEvent, KubeNode, KubeObject, Pod, Stored } from "../../../src/api/kubernetes.ts";
import { nodeFingerprint, totalsOf } from "../../../src/clusters/node-totals.ts";
import { expectDeleted } from "../../../src/controllers/delegation/actions/expectations.ts";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import { concernsHost, mirror, observedAt, recurrence, recurs } from "../../../src/controllers/pod-events/mirror.ts";
import { SpamFilter } from "../../../src/controllers/pod-events/spam-filter.ts";
import { dependencyKeys } from "../../../src/copies/named-by-pods.ts";
import { parseJson } from "../../../src/kube/json.ts";
import { events, isStored, isWellFormed, nodes, pods, type Resource } from "../../../src/kube/resources.ts";
import { fitOf } from "../../../src/placement/node-fit.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import { madeByHost, ownerOf } from "../../../src/pods/delegate.ts";
import { statusFrom, statusPatch } from "../../../src/pods/feedback.ts";
import { everRan, isTerminal, unschedulableMessage } from "../../../src/pods/pod-state.ts";
import { runningStatus } from "../../support/builders/pod.ts";
import { processorMs } from "../../support/harness/processor-time.ts";
import { boundProxy, delegateOf, member, world } from "../controllers/delegation/world.ts";

const now = 1_000_000;
const GATE = "example.com/gate";
const proxy = boundProxy({ status: runningStatus() });
const deletedProxy = boundProxy({
  metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 10 },
  status: runningStatus(),
});

const delegate: Stored<Pod> = delegateOf(proxy, {
  metadata: {
    finalizers: ["example.com/hold"],
    ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u", controller: true }],
  },
  spec: {
    nodeName: "n1",
    serviceAccountName: "robot",
    containers: [
      {
        name: "main",
        image: "work:1",
        env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
        envFrom: [{ configMapRef: { name: "c" } }],
        resources: { requests: { cpu: "1" }, limits: { cpu: "2" } },
      },
    ],
    initContainers: [{ name: "init", image: "work:1", restartPolicy: "Always" }],
    volumes: [
      { name: "a", configMap: { name: "c" } },
      { name: "b", projected: { sources: [{ secret: { name: "s" } }] } },
    ],
    tolerations: [{ key: "k", operator: "Exists", effect: "NoExecute", tolerationSeconds: 3 }],
    imagePullSecrets: [{ name: "pull" }],
    overhead: { cpu: "10m" },
  },
  status: {
    ...runningStatus(),
    hostIPs: [{ ip: "10.0.0.1" }],
    message: "m",
    observedGeneration: 1,
    extendedResourceClaimStatus: {
      requestMappings: [{ containerName: "main", resourceName: "cpu", requestName: "r" }],
      resourceClaimName: "c",
    },
  },
});

const deletedDelegate: Stored<Pod> = {
  ...delegate,
  metadata: { ...delegate.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 },
  spec: { ...delegate.spec, containers: [], terminationGracePeriodSeconds: 30, activeDeadlineSeconds: 60 },
};

const node: Stored<KubeNode> = {
  metadata: { name: "n1", uid: "u", resourceVersion: "1", labels: { zone: "a" } },
  spec: { unschedulable: false, taints: [{ key: "k", value: "v", effect: "NoSchedule" }] },
  status: {
    capacity: { cpu: "4", memory: "8Gi" },
    allocatable: { cpu: "4", memory: "8Gi" },
    conditions: [{ type: "Ready", status: "True" }],
  },
};

const event: Stored<KubeEvent> = {
  metadata: { namespace: "team", name: "web-0.1", uid: "u-1", resourceVersion: "1" },
  involvedObject: { kind: "Pod", namespace: "team", name: "web-0", uid: "delegate-uid", fieldPath: "spec" },
  type: "Normal",
  reason: "Started",
  message: "Started container",
  count: 1,
  lastTimestamp: "2026-01-01T00:00:00Z",
};

/** All that is reckoned from the object of a member beside the objects of others. */
const uses = {
  pod: (pod: Stored<Pod>): void => {
    dependencyKeys(pod);
    podRequests(pod);
    isTerminal(pod);
    everRan(pod);
    unschedulableMessage(pod);
    ownerOf(pod);
    madeByHost(pod, "host-id");
    const wanted = statusFrom(proxy, pod);
    if (wanted !== undefined) statusPatch(proxy, wanted);
    expectDeleted("west", pod.metadata.uid, 10)(world(proxy, [member("west", { delegate: pod })]));
    for (const each of [proxy, boundProxy(), deletedProxy, { ...proxy, spec: { containers: [] } }]) {
      decide(world(each, [member("west", { delegate: pod }), member("east")]), now);
      decide(world(each, [member("west"), member("east", { delegate: pod })]), now);
      decide(world(each, [member("west", { delegate: pod, reachable: false })]), now);
    }
    decide(world(undefined, [member("west", { delegate: pod })]), now);
  },
  node: (each: Stored<KubeNode>): void => {
    totalsOf([each, node]);
    nodeFingerprint(each);
    fitOf({ kind: "", nodeSelector: { zone: "a" }, tolerations: [], requests: { cpu: 1 } }, [each]);
  },
  event: (each: Stored<KubeEvent>): void => {
    concernsHost(each);
    observedAt(each);
    recurs(each);
    recurrence(each);
    new SpamFilter().accepts(
      "west",
      mirror(each, { cluster: "c", namespace: "team", name: "web-0", uid: "u" }, "west"),
      now,
    );
  },
};

type Path = readonly (string | number)[];

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, each]) => pathsOf(each, [...path, key]))];
}

/** The object with another value at a path. */
function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value))
    return value.map((each, index) => (String(index) === String(key) ? replaced(each, rest, by) : each));
  return { ...Object(value), [key]: replaced(Object(value)[key], rest, by) };
}

function survives<T extends KubeObject>(
  resource: Resource<T>,
  object: Stored<T>,
  use: (object: Stored<T>) => void,
): void {
  const garbage = fc.oneof(
    fc.constantFrom(null, undefined, 0, -1, "", "x", true, [], {}, [null], [[]], ["x"], { a: null }, [{}]),
    // The client keeps them as text.
    fc
      .constantFrom("12345678901234567890", "-9223372036854775808", "9007199254740993")
      .map((text) => JSON.rawJSON(text)),
    fc.jsonValue({ maxDepth: 2 }),
  );
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...pathsOf(object)), garbage), { minLength: 1, maxLength: 2 }),
      (changes) => {
        // The object arrives as text.
        const text =
          JSON.stringify(changes.reduce<unknown>((made, [path, by]) => replaced(made, path, by), object)) ?? "null";
        const made: unknown = parseJson(text);
        if (!isStored<T>(made) || !isWellFormed(resource, made)) return;
        accepted += 1;
        use(made);
      },
    ),
    { numRuns: 3_000 },
  );
  // Many of the changed objects are still accepted.
  expect(accepted).toBeGreaterThan(100);
}

describe("an accepted object of an untrusted server never throws in code that handles others:", () => {
  test("a pod", () => survives(pods, delegate, uses.pod));
  test("a pod that is being deleted", () => survives(pods, deletedDelegate, uses.pod));
  test("a node", () => survives(nodes, node, uses.node));
  test("an event", () => survives(events, event, uses.event));
});

describe("an object of an untrusted server costs no more than its size:", () => {
  const types = (count: number): string[] => Array.from({ length: count }, (_, index) => `example.com/t${index}`);
  const forged = (parts: { readonly recorded: readonly string[]; readonly told: readonly string[] }): Stored<Pod> => {
    const record = JSON.stringify({ labels: [], annotations: [], gates: types(50_000), conditions: parts.recorded });
    const annotations = { ...delegate.metadata.annotations, [FORWARDED_ANNOTATION]: record };
    const conditions = parts.told.map((type) => ({ type, status: "True" }));
    return { ...delegate, metadata: { ...delegate.metadata, annotations }, status: { ...delegate.status, conditions } };
  };

  test.each<[string, Stored<Pod>]>([
    ["a long record beside many conditions", forged({ recorded: [], told: types(2_000) })],
    ["a record of many conditions beside as many", forged({ recorded: types(20_000), told: types(20_000) })],
    ["a gate's condition, many times", forged({ recorded: [], told: Array.from({ length: 2_000 }, () => GATE) })],
  ])("%s", (_what, pod) => {
    const spec = { containers: [], ...proxy.spec, readinessGates: [{ conditionType: GATE }] };
    const took = processorMs(() => decide(world({ ...proxy, spec }, [member("west", { delegate: pod })]), now));
    // A quadratic search takes more than five times as long.
    expect(took).toBeLessThan(1_000);
  });
});

describe("an object of an untrusted server is accepted", () => {
  test.each<[string, Resource<KubeObject>, Stored<KubeObject>]>([
    ["a pod", pods, delegate],
    ["a node", nodes, node],
    ["an event", events, event],
  ])("as %s that is one", (_what, resource, object) => {
    expect(isWellFormed(resource, object)).toBe(true);
  });

  test("with integers beyond 2^53, which API servers accept", () => {
    const spec = { ...delegate.spec, terminationGracePeriodSeconds: JSON.rawJSON("9223372036854775807") };
    const large: Stored<KubeObject> = Object.assign({}, delegate, { spec });
    expect(isWellFormed<KubeObject>(pods, large)).toBe(true);
  });

  test.each<[string, object]>([
    ["labels that are no strings", { metadata: { ...delegate.metadata, labels: { a: 1 } } }],
    [
      "an owner annotation that is an object",
      { metadata: { ...delegate.metadata, annotations: { [OWNER_ANNOTATION]: {} } } },
    ],
    ["containers that are no list", { spec: { containers: {} } }],
    ["a container that is nothing", { spec: { containers: [null] } }],
    ["conditions without a type", { status: { conditions: [{ status: "True" }] } }],
    ["a status that is a list", { status: [] }],
    [
      "requests that are numbers no computer reckons with",
      {
        spec: {
          containers: [{ name: "main", resources: { requests: { cpu: JSON.rawJSON("12345678901234567890") } } }],
        },
      },
    ],
    [
      "requests that are no quantities",
      { spec: { containers: [{ name: "main", resources: { requests: { cpu: {} } } }] } },
    ],
  ])("not as a pod with %s", (_what, parts) => {
    const forged: Stored<KubeObject> = Object.assign({}, delegate, parts);
    expect(isWellFormed<KubeObject>(pods, forged)).toBe(false);
  });
});
