import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EventFollower } from "../../../../src/controllers/pod-events/follower.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { type EventParts, kubeletEvent } from "../../../support/builders/event.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { connect } from "../../../support/fault-server/connect.ts";
import { FaultServer } from "../../../support/fault-server/fault-server.ts";
import { only, refuse } from "../../../support/fault-server/faults.ts";

let server: FaultServer;
let client: ClusterClient;
let clock: FakeClock;
let told: string[];
let follower: EventFollower;

beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server);
  clock = new FakeClock(Date.parse("2024-01-01T01:00:00Z"));
  told = [];
  follower = new EventFollower({
    client,
    fieldSelector: "involvedObject.kind=Pod",
    clock,
    log: createLogger({ level: "silent" }),
    onEvent: ({ metadata: { name }, count }, isNew) => told.push(`${isNew ? "new" : "again"} ${name} ${count}`),
  });
});
afterEach(async () => {
  await follower.stop();
  await client.close();
  await server.stop();
});

function put(name: string, parts: EventParts = {}): void {
  server.world.put(kubeletEvent({ name, ...parts }));
}

/** Returns an event of this many seconds ago, created at that time in the member. */
function ago(seconds: number, parts: EventParts = {}): EventParts {
  return { lastTimestamp: new Date(clock.now() - seconds * 1000).toISOString(), ...parts };
}

const watching = (): Promise<void> => expect.poll(() => server.openWatches).toBe(1);
const kinds = (): string[] => server.requests.map(({ kind }) => kind);

async function untilWatching(): Promise<void> {
  await expect
    .poll(async () => {
      await clock.fireNext();
      return server.openWatches;
    })
    .toBe(1);
}

describe("the follower of a member's events", () => {
  test("delivers the last minute at first, as possibly known to the host, and never the hour before", async () => {
    put("old", ago(3_000));
    put("recent", ago(30));
    put("again", ago(5, { count: 7 }));
    follower.start();
    await watching();
    expect(told).toEqual(["again again 7", "again recent 1"]);
    expect(server.requests[0]?.query.get("fieldSelector")).toBe("involvedObject.kind=Pod");
    expect(server.requests[1]?.query.get("fieldSelector")).toBe("involvedObject.kind=Pod");
  });

  test("reads a long list in pages", async () => {
    for (let index = 0; index < 1_100; index += 1) put(`e${index}`, ago(index < 3 ? 1 : 600));
    follower.start();
    await watching();
    expect(kinds()).toEqual(["list", "list", "list", "watch"]);
    expect(told).toHaveLength(3);
  });

  test("delivers new and repeated events, and no deletion", async () => {
    follower.start();
    await watching();
    put("one", ago(0));
    put("one", ago(0, { count: 2 }));
    server.world.remove({ metadata: { namespace: "team", name: "one" } });
    put("two", ago(0));
    await expect.poll(() => told).toEqual(["new one 1", "again one 2", "new two 1"]);
  });

  test("continues after a lost connection, once it knows that the server has not gone back", async () => {
    follower.start();
    await watching();
    put("one", ago(0));
    await expect.poll(() => told).toHaveLength(1);
    server.cutConnections();
    await expect.poll(() => server.openWatches).toBe(0);
    put("two", ago(0));
    await untilWatching();
    await expect.poll(() => told).toEqual(["new one 1", "new two 1"]);
    expect(kinds()).toEqual(["list", "watch", "list", "watch"]);
    expect(server.requests[2]?.query.get("limit")).toBe("1");
    expect(server.requests[3]?.query.get("resourceVersion")).toBe("2");
  });

  test("starts over after a lost connection to a server that has gone back in time", async () => {
    follower.start();
    await watching();
    const restore = server.world.backUp();
    for (let index = 0; index < 5; index += 1) put(`e${index}`, ago(0));
    await expect.poll(() => told).toHaveLength(5);
    server.cutConnections();
    await expect.poll(() => server.openWatches).toBe(0);
    restore();
    put("later", ago(0));
    await untilWatching();
    await expect.poll(() => told.at(-1)).toBe("again later 1");
  });

  test("delivers missed events when the history is gone, and nothing from long before", async () => {
    follower.start();
    await watching();
    put("one", ago(0));
    await expect.poll(() => told).toHaveLength(1);
    await server.stop();
    put("missed", ago(0));
    put("long ago", ago(120));
    server.world.compact();
    // Holds while the history, or the server, is gone.
    for (let attempt = 0; attempt < 10; attempt += 1) {
      await expect.poll(() => clock.pending).toBe(1);
      await clock.fireNext();
    }
    await server.listen();
    await untilWatching();
    expect(told.slice(1).sort()).toEqual(["again missed 1", "again one 1"]);
  });

  test("stops waiting when the server is known to answer again", async () => {
    server.faults.push(...Array.from({ length: 8 }, () => only("list", refuse(403, "Forbidden"))));
    follower.start();
    for (let attempt = 0; attempt < 7; attempt += 1) {
      await expect.poll(() => clock.pending).toBe(1);
      await clock.fireNext();
    }
    await expect.poll(() => clock.pending).toBe(1);
    follower.retry();
    await watching();
    expect(clock.pending).toBe(0);
  });

  test("waits longer each time while it is refused", async () => {
    server.faults.push(...Array.from({ length: 4 }, () => only("list", refuse(403, "Forbidden"))));
    follower.start();
    const delays: number[] = [];
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await expect.poll(() => clock.pending).toBe(1);
      const before = clock.now();
      await clock.fireNext();
      delays.push(clock.now() - before);
    }
    await watching();
    expect(delays[3]).toBeGreaterThan(delays[0] ?? 0);
  });
});
