import { describe, expect, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { identifyPod } from "../../../../src/controllers/delegation/observe.ts";
import { PlaceTracker } from "../../../../src/controllers/delegation/place-tracker.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { delegates as delegatesOf, member } from "../../../support/builders/member.ts";
import { endedStatus, pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { placementOver } from "../../scheduling/placement-over.ts";
import { registryOf } from "../fleet.ts";
import { key, observing, waiting } from "./observing.ts";
import { boundProxy, delegateOf } from "./world.ts";

const bound = boundProxy();

describe("the clusters that a decision on a pod name depends on", () => {
  test("are all of them while the proxy has no node, including unreachable ones", () => {
    expect(observing({ proxy: waiting }).names()).toEqual(["west", "east", "north", "lost"]);
  });

  test("are its member and those that have had, or may have, a delegate under the name once it is bound", () => {
    expect(observing({ proxy: bound }).names()).toEqual(["west"]);
    expect(observing({ proxy: bound, holders: ["east"], uncertain: "north" }).names()).toEqual([
      "east",
      "west",
      "north",
    ]);
  });

  test("leave out a refused Cluster, except for its reason and an uncertain create", () => {
    const unbound = observing({ proxy: waiting, refused: true }).observer.observe(key)?.members.at(-1);
    expect(unbound).toMatchObject({ name: "lost", excluded: "it is not connected" });
    const there = boundProxy({
      metadata: { annotations: { [CLUSTER_ANNOTATION]: "lost" } },
      spec: { nodeName: "legation-lost" },
    });
    expect(observing({ proxy: there }).names()).toEqual(["lost"]);
    expect(observing({ proxy: there, refused: true }).names()).toEqual([]);
    expect(observing({ proxy: there, refused: true, uncertain: "lost" }).names()).toEqual(["lost"]);
  });

  test("are the members with delegates under the name without a proxy, and none once the name is forgotten", () => {
    const left = observing({ holders: ["east"], delegates: { east: delegateOf(waiting) } });
    expect([left.names(), left.forgotten]).toEqual([["east"], []]);
    const over = observing({ holders: ["east"] });
    over.tracker.update(key);
    expect([over.names(), over.forgotten]).toEqual([undefined, [key]]);
  });

  test("are unknown before the host's proxies are read", () => {
    const { names, forgotten, tracker } = observing({ holders: ["east"], synced: false });
    tracker.update(key);
    expect([names(), forgotten]).toEqual([undefined, []]);
  });

  test("are all of them for a pod that is no proxy yet", () => {
    const { observer } = observing({});
    const members = observer.seen(key, pod({})).members.map(({ name }) => name);
    expect(members).toEqual(["west", "east", "north", "lost"]);
  });
});

test.each([
  ["remembers its own delegate", delegateOf(waiting), ["east"]],
  ["ignores another proxy's delegate", delegateOf(proxyPod({ uid: "another" })), []],
])("%s for a proxy without a node", (_, delegate, expected) => {
  const { tracker, found } = observing({ proxy: waiting, delegates: { east: delegate } });
  tracker.update(key);
  expect(found).toEqual(expected);
});

describe("a proxy without a node, whose member had its delegate", () => {
  const asked = { requests: { pods: 1 }, namespace: "team" };
  const refusal = { cluster: "west", reason: "Unschedulable", message: "no node" } as const;
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  const annotations = { "legation.dev/group": "flow", "legation.dev/api": "none" };
  const metadata = { labels: { app: "web" }, annotations, ownerReferences: [owner] };
  const waits = proxyPod({ metadata });
  const other = proxyPod({ uid: "other", name: "web-1", metadata });
  const made = delegateOf(waits, { spec: {} });
  const going = { ...made, metadata: { ...made.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };

  interface West {
    registered: boolean;
    reachable: boolean;
    read: boolean;
    delegate?: Stored<Pod> | undefined;
    departed?: Stored<Pod>;
  }

  /** Returns the host's counts of the proxy after `west` has shown its delegate and `happens` has run. */
  function counted(
    happens: (of: ReturnType<typeof placementOver>["placementState"], west: West) => void,
    expected: object,
  ) {
    const namespaces = new Store<Namespace>();
    namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
    const homeApi = () => ({ state: "unknown", message: "" }) as const;
    const { proxies, placementState } = placementOver(
      ["west", "east"].map((name) => candidateNamed(name)),
      { namespaces, homeApi },
    );
    const state: West = { registered: true, reachable: true, read: true, delegate: made };
    const members = () =>
      ["west", "east"]
        .filter((name) => name === "east" || state.registered)
        .map((name) =>
          member(name, fakeClient({}), {
            reachable: name === "east" || state.reachable,
            read: name === "east" || state.read,
            delegates: delegatesOf({
              get: () => (name === "west" ? state.delegate : undefined),
              departed: () => (name === "west" ? state.departed : undefined),
            }),
          }),
        );
    const known = (name: string) => members().find((each) => each.name === name);
    const registry = registryOf([], { member: known, holders: members });
    const tracker = new PlaceTracker({ registry, placementState, proxies, clock: { now: () => 0 } });
    proxies.synced = true;
    for (const stored of [waits, other]) {
      proxies.set(stored);
      placementState.update(stored);
    }
    placementState.reservations.attempt(waits.metadata.uid, "west", asked, waits);
    tracker.update(key);
    happens(placementState, state);
    tracker.update(key);
    const spread = Object.fromEntries(placementState.spread.of("team", { matchLabels: { app: "web" } }, "other"));
    expect({ spread, divided: placementState.divisions.proxies.placed("web") }).toEqual({
      spread: expected,
      divided: expected,
    });
    expect(placementState.groups.placeOf("other")?.first).toBe(Object.keys(expected).length > 0 ? key : undefined);
  }

  test.each<[string, Parameters<typeof counted>[0], object]>([
    ["counts there as long as the delegate is there", () => undefined, { west: 1 }],
    ["counts nowhere once it is gone", (_, west) => delete west.delegate, {}],
    [
      "counts nowhere while it is being deleted, also after a refusal",
      ({ retries }, west) => {
        retries.refuse(waits.metadata.uid, refusal, { nodesVersion: 0, pod: waits, sharedBy: "spec" });
        west.delegate = going;
      },
      {},
    ],
    [
      "counts there while it is being deleted after it has had a node",
      (_, west) => {
        west.delegate = { ...going, spec: { containers: [], nodeName: "n" } };
      },
      { west: 1 },
    ],
    [
      "counts nowhere once its Cluster is gone",
      (_, west) => {
        west.registered = false;
      },
      {},
    ],
    [
      "counts there while the member does not answer",
      (_, west) => {
        delete west.delegate;
        west.reachable = false;
      },
      { west: 1 },
    ],
    [
      "counts there while the member is being read",
      (_, west) => {
        delete west.delegate;
        west.read = false;
      },
      { west: 1 },
    ],
    [
      "counts where its room is reserved",
      ({ reservations }, west) => {
        reservations.reserve(waits.metadata.uid, "east", asked);
        delete west.delegate;
      },
      { east: 1 },
    ],
    [
      "counts where it is if the Cluster with its reserved room is gone",
      ({ reservations }, west) => {
        reservations.attempt(waits.metadata.uid, "east", asked, waits);
        west.delegate = made;
        reservations.reserve(waits.metadata.uid, "north", asked);
      },
      { west: 1 },
    ],
    [
      "counts where a create may have made it again",
      ({ memories, reservations }, west) => {
        delete west.delegate;
        reservations.attempt(waits.metadata.uid, "west", asked, waits);
        memories.noteUncertain(waits.metadata.uid, "west", { at: 0, message: "reset" });
      },
      { west: 1 },
    ],
    [
      "counts where a create that certainly failed is repeated",
      ({ memories, reservations }, west) => {
        delete west.delegate;
        reservations.attempt(waits.metadata.uid, "west", asked, waits);
        reservations.release(waits.metadata.uid, "west");
        memories.writes.mayPass(waits.metadata.uid, "create west");
      },
      { west: 1 },
    ],
    [
      "counts nowhere after a create that certainly failed",
      ({ reservations }, west) => {
        delete west.delegate;
        reservations.attempt(waits.metadata.uid, "west", asked, waits);
        reservations.release(waits.metadata.uid, "west");
      },
      {},
    ],
    [
      "counts there when it has run there and is gone",
      (_, west) => {
        delete west.delegate;
        west.departed = { ...made, status: endedStatus(0) };
      },
      { west: 1 },
    ],
    [
      "counts there when it ran there when it went",
      (_, west) => {
        delete west.delegate;
        west.departed = { ...made, status: runningStatus() };
      },
      { west: 1 },
    ],
    [
      "counts nowhere when it went without having run",
      (_, west) => {
        delete west.delegate;
        west.departed = going;
      },
      {},
    ],
  ])("%s", (_, happens, expected) => counted(happens, expected));
});

test("name the proxy's uid in log lines, also when only its delegate is left", () => {
  const observed = observing({ proxy: waiting }).observer.observe(key);
  expect(observed && identifyPod(observed)).toEqual({ proxy: waiting.metadata.uid });
  const left = observing({ holders: ["east"], delegates: { east: delegateOf(waiting) } }).observer.observe(key);
  expect(left && identifyPod(left)).toEqual({ proxy: waiting.metadata.uid });
});

describe("a delegate that waits for a node", () => {
  const stored = (cpu: string, nodeName?: string): Stored<Pod> =>
    delegateOf(waiting, {
      metadata: { annotations: { ...delegateOf(waiting).metadata.annotations, ...limitRanger } },
      spec: {
        containers: [{ name: "main", image: "busybox", resources: { requests: { cpu } } }],
        ...(nodeName === undefined ? {} : { nodeName }),
      },
    });
  const limitRanger = { "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container main" };
  const seen = (proxy: Stored<Pod>, delegate: Stored<Pod>): unknown => {
    const { mutation, overfull } =
      observing({ proxy, delegates: { west: delegate } })
        .observer.observe(key)
        ?.members.find(({ name }) => name === "west") ?? {};
    return [mutation?.requests.cpu, mutation?.by, overfull];
  };

  test.each<[string, Stored<Pod>, Stored<Pod>, unknown]>([
    ["as its member's admission left it", waiting, delegateOf(waiting), [undefined, undefined, undefined]],
    ["as its member made it larger", waiting, stored("20"), [20, { cpu: "LimitRange" }, undefined]],
    ["as its member made it larger than any node", waiting, stored("65"), [65, { cpu: "LimitRange" }, true]],
    [
      "as its member made it larger, also for a bound proxy",
      bound,
      stored("20"),
      [20, { cpu: "LimitRange" }, undefined],
    ],
    ["until it has a node", waiting, stored("20", "node-1"), [undefined, undefined, undefined]],
  ])("is observed %s", (_, proxy, delegate, facts) => {
    expect(seen(proxy, delegate)).toEqual(facts);
  });
});
