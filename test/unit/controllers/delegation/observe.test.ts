import { describe, expect, test } from "vitest";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { Load } from "../../../../src/clusters/load.ts";
import { identify, Observer } from "../../../../src/controllers/delegation/observe.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { boundProxy, delegateOf } from "./world.ts";

const waiting = proxyPod({});
const bound = boundProxy();
const key = objectKey(waiting.metadata);

/** The stores of a host with this proxy, and of members with these delegates; `lost` has no connection. */
function observing({
  proxy,
  delegates = {},
  holders = [],
  uncertain,
  synced = true,
}: {
  proxy?: Stored<Pod>;
  delegates?: Readonly<Record<string, Stored<Pod>>>;
  holders?: readonly string[];
  uncertain?: string;
  synced?: boolean;
}) {
  const forgotten: ObjectKey[] = [];
  const found: string[] = [];
  const members = ["west", "east", "north"].map((name) => ({
    name,
    cluster: { metadata: { name }, spec: {} },
    reachable: true,
    read: true,
    nodesRead: true,
    probed: { reachable: true },
    unreadable: {},
    load: new Load(),
    delegates: { get: () => delegates[name], departed: () => undefined },
    candidate: () => ({ name, labels: {} }),
  }));
  const memberOf = (name: string) => members.find((member) => member.name === name);
  const observer = new Observer({
    identity: { id: "host-id", name: "cern" },
    registry: {
      members: () => members,
      member: memberOf,
      holders: () => holders.map(memberOf),
      unconnected: () => [{ metadata: { name: "lost" }, spec: {} }],
      problem: () => undefined,
      forget: (gone: ObjectKey) => forgotten.push(gone),
    },
    dependencies: { needs: () => undefined },
    virtualNodes: { get: () => undefined },
    placing: {
      memories: {
        of: () => ({ fresh: true, attempts: new Map(), ...(uncertain === undefined ? {} : { uncertain }) }),
        noteFound: (_uid: string, member: string) => found.push(member),
      },
      view: { of: () => ({ excludes: () => undefined }) },
    },
    proxies: { synced, get: () => proxy },
    waitingSince: () => undefined,
    clock: { now: () => 0 },
  } as never);
  return { observer, forgotten, found, names: () => observer.observe(key)?.members.map(({ name }) => name) };
}

describe("what a decision on a pod name depends on", () => {
  test("are all clusters while the proxy has no node, those that cannot be reached among them", () => {
    expect(observing({ proxy: waiting }).names()).toEqual(["west", "east", "north", "lost"]);
  });

  test("are its member, those that have had a delegate under the name, and one that may have one, once it is bound", () => {
    expect(observing({ proxy: bound }).names()).toEqual(["west"]);
    expect(observing({ proxy: bound, holders: ["east"], uncertain: "north" }).names()).toEqual([
      "east",
      "west",
      "north",
    ]);
  });

  test("are the members with delegates under the name when there is no proxy; with none, the name is forgotten", () => {
    const left = observing({ holders: ["east"], delegates: { east: delegateOf(waiting) } });
    expect([left.names(), left.forgotten]).toEqual([["east"], []]);
    const over = observing({ holders: ["east"] });
    expect([over.names(), over.forgotten]).toEqual([undefined, [key]]);
  });

  test("is not known before the host's proxies are", () => {
    const { names, forgotten } = observing({ holders: ["east"], synced: false });
    expect([names(), forgotten]).toEqual([undefined, []]);
  });

  test("are all clusters for a pod that is no proxy yet", () => {
    const { observer } = observing({});
    const members = observer.seen(key, pod({})).members.map(({ name }) => name);
    expect(members).toEqual(["west", "east", "north", "lost"]);
  });
});

test.each([
  ["its own delegate is found, and remembered,", delegateOf(waiting), ["east"]],
  ["another proxy's is not", delegateOf(proxyPod({ uid: "another" })), []],
])("of a proxy without a node %s", (_, delegate, expected) => {
  const { observer, found } = observing({ proxy: waiting, delegates: { east: delegate } });
  observer.observe(key);
  expect(found).toEqual(expected);
});

test("lines of log name the proxy's uid, also when only its delegate is left", () => {
  const observed = observing({ proxy: waiting }).observer.observe(key);
  expect(observed && identify(observed)).toEqual({ proxy: waiting.metadata.uid });
  const left = observing({ holders: ["east"], delegates: { east: delegateOf(waiting) } }).observer.observe(key);
  expect(left && identify(left)).toEqual({ proxy: waiting.metadata.uid });
});
