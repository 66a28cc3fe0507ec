import { describe, expect, test } from "vitest";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { Memories } from "../../../../src/controllers/delegation/memory.ts";
import { WaitingProxies } from "../../../../src/controllers/delegation/waiting-proxies.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

function waitingProxies() {
  const clock = new FakeClock();
  const memories = new Memories();
  const stored = new Map<ObjectKey, Stored<Pod>>();
  const looked: ObjectKey[] = [];
  const waiting = new WaitingProxies({
    clock,
    memories,
    proxyOf: (key) => stored.get(key),
    enqueue: (key) => looked.push(key),
  });
  const add = (name: string, spec: object = {}): ObjectKey => {
    const proxy = proxyPod({ name, uid: name, spec: { containers: [], ...spec } });
    const key = objectKey(proxy.metadata);
    stored.set(key, proxy);
    waiting.add(key, proxy);
    return key;
  };
  const lookedAt = (): ObjectKey[] => looked.splice(0);
  return { clock, memories, stored, waiting, add, lookedAt };
}

const GATED = { schedulingGates: [{ name: "example.com/quota" }] };

describe("a proxy without a node", () => {
  test("waits since it came, or since nothing held it back", async () => {
    const { clock, waiting, add } = waitingProxies();
    const begun = clock.now();
    const [key, gated] = [add("a"), add("b", GATED)];
    await clock.advance(5_000);
    add("a");
    add("b", GATED);
    expect([waiting.since(key), waiting.since(gated)]).toEqual([begun, begun + 5_000]);
    await clock.advance(1_000);
    add("b");
    // Its gates went just now; the metric counts it from then on, too.
    expect(waiting.since(gated)).toBe(begun + 5_000);
    expect(waiting.summary()).toEqual({ count: 2, oldestSeconds: 6 });
    waiting.remove(key);
    expect(waiting.since(key)).toBeUndefined();
  });

  test("is none for the metrics while it has scheduling gates", async () => {
    const { clock, waiting, add } = waitingProxies();
    add("a", GATED);
    await clock.advance(60_000);
    expect(waiting.summary()).toEqual({ count: 0, oldestSeconds: 0 });
  });

  test("is looked at again at once when members change, and once a while when delegates end", async () => {
    const { clock, waiting, add, lookedAt } = waitingProxies();
    const key = add("a");
    waiting.onCapacity();
    expect(lookedAt()).toEqual([key]);
    waiting.onRoom();
    waiting.onRoom();
    await clock.advance(249);
    expect(lookedAt()).toEqual([]);
    await clock.advance(1);
    expect(lookedAt()).toEqual([key]);
    waiting.remove(key);
    waiting.onRoom();
    expect(clock.pending).toBe(0);
  });

  test("is looked at together with the others when there are many", async () => {
    const { clock, waiting, add, lookedAt } = waitingProxies();
    for (let number = 0; number < 101; number++) add(`pod-${number}`);
    for (let change = 0; change < 10; change++) waiting.onCapacity();
    expect(lookedAt()).toEqual([]);
    await clock.advance(250);
    expect(lookedAt()).toHaveLength(101);
  });

  test("is looked at when another has its place, if it was told why it waits", async () => {
    const { clock, waiting, memories, add, lookedAt } = waitingProxies();
    add("a");
    const told = add("b");
    memories.reported("b", { reason: "NotPlaced", message: "no member fits" }, clock.now());
    waiting.onPlaced();
    await clock.advance(1_000);
    expect(lookedAt()).toEqual([told]);
  });

  test("may have a delegate in a member that has to be read again", async () => {
    const { waiting, memories, add, stored } = waitingProxies();
    add("a");
    add("gated", GATED);
    stored.delete(add("gone"));
    waiting.onReconnected("west");
    // It was given to nobody yet.
    expect(memories.of("gated").unproven).toBeUndefined();
    expect([...(memories.of("a").unproven ?? [])]).toEqual(["west"]);
    expect(memories.of("gone").unproven).toBeUndefined();
  });

  test("is not looked at any more when the controller stops", async () => {
    const { clock, waiting, add } = waitingProxies();
    add("a");
    waiting.onRoom();
    waiting.onPlaced();
    waiting.stop();
    expect(clock.pending).toBe(0);
  });
});
