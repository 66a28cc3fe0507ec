import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KubeEvent } from "../../../../src/api/kubernetes.ts";
import { mirror } from "../../../../src/controllers/pod-events/mirror.ts";
import { EventWriter } from "../../../../src/controllers/pod-events/writer.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { type EventParts, kubeletEvent } from "../../../support/builders/event.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { connect } from "../../../support/fault-server/connect.ts";
import { answerJson, answerStatus, type Fault, FaultServer } from "../../../support/fault-server/fault-server.ts";
import { refuse } from "../../../support/fault-server/faults.ts";

let server: FaultServer;
let client: ClusterClient;
let clock: FakeClock;
let outcomes: string[];
let writer: EventWriter;
/** Names of the host's events. */
let present: Set<string>;

const proxy = { cluster: "cern", namespace: "team", name: "web-0", uid: "proxy-uid" };

/** Answers the host's event writes. */
const host: Fault = ({ method, path, body }, response) => {
  const object: KubeEvent = JSON.parse(body);
  const name = method === "POST" ? (object.metadata.name ?? "") : (path.split("/").at(-1) ?? "");
  if (method === "POST" && present.has(name)) answerStatus(response, 409, "AlreadyExists", "already exists");
  else if (method === "PATCH" && !present.has(name)) answerStatus(response, 404, "NotFound", "not found");
  else {
    present.add(name);
    answerJson(response, 200, { ...kubeletEvent(), ...object, metadata: kubeletEvent().metadata });
  }
  return true;
};

beforeEach(async () => {
  server = await FaultServer.start();
  server.always = (request, response) => (server.faults.shift() ?? host)(request, response);
  client = connect(server);
  clock = new FakeClock();
  outcomes = [];
  present = new Set();
  writer = new EventWriter({
    host: client,
    clock,
    log: createLogger({ level: "silent" }),
    onOutcome: (outcome) => outcomes.push(outcome),
  });
});
afterEach(async () => {
  await writer.stop();
  await client.close();
  await server.stop();
});

/** Returns a delegate's event on its proxy; `number` makes it unique. */
function event(number: number, parts: EventParts = {}): KubeEvent {
  return mirror(kubeletEvent({ uid: `${String(number).padStart(16, "0")}-rest`, ...parts }), proxy, "west");
}

/** Returns an event of its own pod. */
function eventOfPod(number: number, parts: EventParts = {}): KubeEvent {
  const told = event(number, parts);
  return { ...told, involvedObject: { ...told.involvedObject, uid: String(number) } };
}

const writes = (): string[] =>
  server.requests.map(({ method, body }) => `${method} ${(JSON.parse(body) as KubeEvent).count}`);

describe("the writer of events", () => {
  test("writes an event once, as the member has it", async () => {
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["created"]);
    expect(JSON.parse(server.requests[0]?.body ?? "")).toEqual(event(1));
    expect(server.requests[0]?.path).toBe("/api/v1/namespaces/team/events");
  });

  test("counts an existing event on after a restart", async () => {
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["created"]);
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["created", "known"]);
    writer.write("west", event(1, { count: 4 }), true);
    await expect.poll(() => outcomes).toEqual(["created", "known", "updated"]);
    expect(present.size).toBe(1);
  });

  test("creates no event again that the host has, when a list shows it after a restart", async () => {
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["created"]);
    writer.write("west", event(1), false);
    await expect.poll(() => outcomes).toEqual(["created", "known"]);
    expect(writes()).toEqual(["POST 1", "PATCH 1"]);
  });

  test("counts a repeated event in one request", async () => {
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["created"]);
    writer.write("west", event(1, { count: 2 }), false);
    await expect.poll(() => outcomes).toEqual(["created", "updated"]);
    expect(writes()).toEqual(["POST 1", "PATCH 2"]);
  });

  test("creates an event again that the host has deleted", async () => {
    writer.write("west", event(1, { count: 2 }), false);
    await expect.poll(() => outcomes).toEqual(["created"]);
    expect(writes()).toEqual(["PATCH 2", "POST 2"]);
  });
});

describe("the load on the host", () => {
  /** Answers no request until it is released. */
  function held(): { fault: Fault; release: () => void } {
    const waiting: (() => void)[] = [];
    let open = false;
    const fault: Fault = (request, response) => {
      if (open) return host(request, response);
      waiting.push(() => host(request, response));
      return true;
    };
    const release = (): void => {
      open = true;
      for (const answer of waiting) answer();
    };
    return { fault, release };
  }

  test("never exceeds eight requests at once", async () => {
    const { fault, release } = held();
    server.always = fault;
    for (let number = 0; number < 20; number += 1) writer.write("west", eventOfPod(number), true);
    await expect.poll(() => server.requests.length).toBe(8);
    release();
    await expect.poll(() => outcomes).toHaveLength(20);
  });

  test("has events of one pod written in turn, and those of others meanwhile", async () => {
    const { fault, release } = held();
    server.always = fault;
    for (const number of [1, 2, 3]) writer.write("west", event(number), true);
    writer.write("west", eventOfPod(4), true);
    const names = (): unknown[] => server.requests.map(({ body }) => (JSON.parse(body) as KubeEvent).metadata.name);
    await expect.poll(names).toContain(event(4).metadata.name);
    expect(names()).toHaveLength(2);
    release();
    await expect.poll(() => outcomes).toHaveLength(4);
    const inOrder = [1, 2, 3].map((number) => event(number).metadata.name);
    expect(names().filter((name) => name !== event(4).metadata.name)).toEqual(inOrder);
  });

  test("has an event that changes while queued written once, in its last state", async () => {
    const { fault, release } = held();
    server.always = fault;
    writer.write("west", event(1), true);
    await expect.poll(() => server.requests.length).toBe(1);
    for (let count = 2; count <= 9; count += 1) writer.write("west", event(1, { count }), false);
    release();
    await expect.poll(() => outcomes).toEqual(["created", "updated"]);
    expect(writes()).toEqual(["POST 1", "PATCH 9"]);
  });

  test("has events of one pod limited, whatever their source", async () => {
    for (let number = 0; number < 60; number += 1) {
      writer.write("west", event(number, { source: { component: `source-${number}` } }), true);
    }
    await expect.poll(() => outcomes).toHaveLength(60);
    expect(outcomes.filter((outcome) => outcome === "limited")).toHaveLength(10);
  });

  /** Sends events of as many pods, one each. */
  function flood(member: string, count: number, message: string): void {
    for (let number = 0; number < count; number += 1) {
      writer.write(member, eventOfPod(number, { message }), true);
    }
  }

  test("has events beyond a queue of ten megabytes dropped", async () => {
    const { fault } = held();
    server.always = fault;
    flood("west", 1_000, "x".repeat(2 ** 15));
    expect(outcomes.length).toBeGreaterThan(600);
    expect(new Set(outcomes)).toEqual(new Set(["overflowed"]));
  });

  test("keeps a member's flood behind another's events, and drops none of these", async () => {
    const { fault, release } = held();
    server.always = fault;
    writer.write("east", eventOfPod(2_001), true);
    flood("west", 1_000, "x".repeat(2 ** 15));
    writer.write("east", eventOfPod(2_002), true);
    await expect.poll(() => server.requests.length).toBe(8);
    release();
    const names = (): (string | undefined)[] =>
      server.requests.slice(0, 12).map(({ body }) => (JSON.parse(body) as KubeEvent).metadata.name);
    await expect.poll(() => names()).toContain(event(2_002).metadata.name);
    expect(names()).toContain(event(2_001).metadata.name);
  });

  test("pauses after a transient refusal, and then has the writes repeated", async () => {
    server.faults.push(refuse(503, "ServiceUnavailable"));
    writer.write("west", event(1), true);
    await expect.poll(() => clock.pending).toBe(1);
    writer.write("west", event(2), true);
    await clock.fireNext();
    await expect.poll(() => outcomes).toEqual(["created", "created"]);
    expect(present.size).toBe(2);
  });

  test("has a conflicting write repeated", async () => {
    present.add(event(1).metadata.name ?? "");
    server.faults.push(refuse(409, "Conflict"));
    writer.write("west", event(1, { count: 2 }), false);
    await expect.poll(() => clock.pending).toBe(1);
    await clock.fireNext();
    await expect.poll(() => outcomes).toEqual(["updated"]);
  });

  test("has an event given up after repeated failures", async () => {
    server.always = refuse(500, "InternalError");
    writer.write("west", event(1), true);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await expect.poll(() => clock.pending).toBe(1);
      await clock.fireNext();
    }
    await expect.poll(() => outcomes).toEqual(["failed"]);
  });

  test("has no event given up while the host is away, and writes it afterwards", async () => {
    await server.stop();
    writer.write("west", event(1), true);
    for (let attempt = 0; attempt < 8; attempt += 1) {
      await expect.poll(() => clock.pending).toBe(1);
      await clock.fireNext();
    }
    expect(outcomes).toEqual([]);
  });

  test("drops events of a terminating namespace without retries", async () => {
    server.faults.push(refuse(403, "Forbidden"));
    writer.write("west", event(1), true);
    await expect.poll(() => outcomes).toEqual(["refused"]);
    expect(clock.pending).toBe(0);
  });
});
