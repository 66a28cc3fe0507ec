import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LEADERLESS_ANNOTATION } from "../../../src/api/keys.ts";
import type { Lease } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { leases } from "../../../src/kube/resources.ts";
import { LeaderElector, type LeaderElectorOptions } from "../../../src/runtime/leader-election.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";
import { connect } from "../../support/fault-server/connect.ts";
import { FaultServer } from "../../support/fault-server/fault-server.ts";
import { cut, only, refuse } from "../../support/fault-server/faults.ts";

const ref = { namespace: "legation-system", name: "controller" };

let server: FaultServer;
let client: ClusterClient;
let clock: FakeClock;
let electors: LeaderElector[];
let log: string[];

beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server);
  clock = new FakeClock();
  electors = [];
  log = [];
});
afterEach(async () => {
  await Promise.all(electors.map((elector) => elector.stop()));
  await client.close();
  await server.stop();
});

function elector(identity: string, options: Partial<LeaderElectorOptions> = {}): LeaderElector {
  const made = new LeaderElector({
    client,
    ...ref,
    identity,
    leaderlessAnnotation: LEADERLESS_ANNOTATION,
    clock,
    log: createLogger({ level: "silent" }),
    onStartedLeading: () => log.push(`${identity} started`),
    onStoppedLeading: () => {
      log.push(`${identity} stopped`);
    },
    ...options,
  });
  electors.push(made);
  made.start();
  return made;
}

const lease = (): Promise<Lease | undefined> => client.find(leases, ref);

/** Passes time in steps, letting requests be answered in between. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await clock.advance(500);
    await realTurns();
  }
}

async function realTurns(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 4));
  await settle();
}

describe("a candidate", () => {
  test("creates a missing lease and renews it", async () => {
    const a = elector("a");
    expect(a.leftMs()).toBeUndefined();
    await expect.poll(() => a.isLeader).toBe(true);
    expect(a.leftMs()).toBe(14_000);
    expect(await lease()).toMatchObject({
      spec: {
        holderIdentity: "a",
        leaseDurationSeconds: 15,
        leaseTransitions: 0,
        renewTime: "2024-01-01T00:00:00.000000Z",
      },
    });
    await pass(60_000);
    expect(a.isLeader).toBe(true);
    expect(log).toEqual(["a started"]);
    expect(server.requests.filter(({ method }) => method === "PUT").length).toBeGreaterThanOrEqual(25);
  });

  test("gets the lease alone among several", async () => {
    const all = ["a", "b", "c"].map((identity) => elector(identity));
    await pass(30_000);
    expect(all.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    expect(log).toHaveLength(1);
  });

  test("takes another's lease only after it did not change for its whole duration, whatever its clock says", async () => {
    const spec = {
      holderIdentity: "z",
      leaseDurationSeconds: 20,
      renewTime: "1999-01-01T00:00:00.000000Z",
      leaseTransitions: 4,
    };
    server.world.put({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: ref, ...{ spec } });
    const b = elector("b");
    await pass(19_000);
    expect(b.isLeader).toBe(false);
    await pass(6_000);
    expect(b.isLeader).toBe(true);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "b", leaseTransitions: 5 } });
  });

  test("leaves a deleted lease to its holder, which creates it again and keeps leading", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const b = elector("b", { retryPeriodMs: 300 });
    await pass(3_000);
    await client.delete(leases, ref);
    await pass(20_000);
    expect([a.isLeader, b.isLeader, log]).toEqual([true, false, ["a started"]]);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "a" } });
  });

  test("takes a lease deleted with its holder after its duration", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const b = elector("b");
    await pass(3_000);
    server.always = refuse(500, "InternalError");
    await a.stop();
    server.always = undefined;
    await client.delete(leases, ref);
    await pass(10_000);
    expect(b.isLeader).toBe(false);
    await pass(8_000);
    expect(b.isLeader).toBe(true);
  });

  test("never takes the lease while the holder renews", async () => {
    elector("a");
    await expect.poll(() => log).toEqual(["a started"]);
    elector("b");
    await pass(60_000);
    expect(log).toEqual(["a started"]);
  });
});

describe("a leader loses the lease", () => {
  test("when no renewal succeeds in time, before the lease's safe end", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.always = refuse(500, "InternalError");
    let stoppedAt = 0;
    const from = clock.now();
    for (let step = 0; step < 40 && stoppedAt === 0; step += 1) {
      await pass(500);
      if (log.includes("a stopped")) stoppedAt = clock.now() - from;
    }
    expect(stoppedAt).toBeGreaterThanOrEqual(10_000);
    expect(stoppedAt).toBeLessThan(14_000);
    expect([a.isLeader, a.leftMs()]).toEqual([false, 0]);
    await a.finished();
  });

  test("when another holds the lease", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const stolen = await lease();
    server.world.put({ ...stolen, ...{ spec: { ...stolen?.spec, holderIdentity: "thief" } } });
    server.always = only("write", refuse(409, "Conflict"));
    // Known to whoever asks, before the next renewal finds out.
    expect([await a.confirm(new AbortController().signal), a.isLeader]).toEqual([false, true]);
    await pass(6_000);
    expect(log).toEqual(["a started", "a stopped"]);
    server.always = undefined;
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "thief" } });
  });

  test("when another has held the lease meanwhile, although it released it", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const held = await lease();
    server.world.put({ ...held, ...{ spec: { ...held?.spec, holderIdentity: "", leaseTransitions: 2 } } });
    server.faults.push(only("write", refuse(409, "Conflict")));
    await pass(6_000);
    expect(a.isLeader).toBe(false);
    expect(log).toEqual(["a started", "a stopped"]);
  });

  test("when the cluster was restored from a backup in which the same process leads", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    await pass(10_000);
    const restore = server.world.backUp();
    await pass(30_000);
    const { signal } = new AbortController();
    expect(await a.confirm(signal)).toBe(true);
    restore();
    // Known to whoever asks, before the next renewal finds out.
    expect([await a.confirm(signal), a.isLeader]).toEqual([false, true]);
    await pass(6_000);
    expect(log).toEqual(["a started", "a stopped"]);
    // Whoever leads next notes the time in which nobody led.
    await pass(120_000);
    elector("b");
    await pass(40_000);
    expect(log).toEqual(["a started", "a stopped", "b started"]);
    expect((await lease())?.metadata?.annotations?.[LEADERLESS_ANNOTATION]).toMatch(/^2024-01-01T00:01:\d\d/);
  });

  test("does not happen for a few failed or lost renewals", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.faults.push(
      only("write", refuse(500, "InternalError")),
      only("write", cut),
      only("write", refuse(409, "Conflict")),
    );
    await pass(20_000);
    expect(server.faults).toEqual([]);
    expect(log).toEqual(["a started"]);
  });

  test("is detected at once after a conflict", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const stolen = await lease();
    server.world.put({ ...stolen, ...{ spec: { ...stolen?.spec, holderIdentity: "thief" } } });
    server.faults.push(only("write", refuse(409, "Conflict")));
    await pass(2_000);
    expect([a.leftMs(), log]).toEqual([0, ["a started", "a stopped"]]);
  });

  test("is possible after a conflict: nothing is written until the Lease was read", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.faults.push(only("write", refuse(409, "Conflict")));
    server.always = only("read", refuse(500, "InternalError"));
    await pass(4_000);
    expect([a.leftMs(), a.isLeader, log]).toEqual([0, false, ["a started"]]);
    server.always = undefined;
    await pass(2_000);
    expect([a.isLeader, log]).toEqual([true, ["a started"]]);
    expect(a.leftMs()).toBeGreaterThan(11_000);
  });

  test("does not extend the safe end after a renewal with a lost response", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const until = clock.now() + (a.leftMs() ?? 0);
    server.always = only("write", cut);
    await pass(5_000);
    expect(clock.now() + (a.leftMs() ?? 0)).toBe(until);
  });

  /** A client whose renewals do as they are told, with the deadline that they have, before the host hears of them. */
  function renewing(before: (timeoutMs: number) => Promise<void>): ClusterClient {
    return fakeClient({
      find: (...of) => client.find(...of),
      create: (...of) => client.create(...of),
      replace: async (resource, object, options) => {
        await before(options?.timeoutMs ?? 0);
        return client.replace(resource, object, options);
      },
    });
  }

  test("counts the safe end from when a renewal was sent", async () => {
    const a = elector("a", { client: renewing(() => clock.sleep(3_000)) });
    await expect.poll(() => a.isLeader).toBe(true);
    await pass(6_000);
    const lefts: number[] = [];
    for (let moments = 0; moments < 20; moments += 1) {
      await pass(500);
      lefts.push(a.leftMs() ?? 0);
    }
    expect(Math.max(...lefts)).toBeLessThanOrEqual(11_000);
    expect(Math.min(...lefts)).toBeGreaterThan(0);
    const stopped = a.stop();
    await pass(10_000);
    await stopped;
  });

  test("leaves time for a second renewal after one without a response", async () => {
    let silent = 1;
    const hang = async (timeoutMs: number): Promise<void> => {
      if (silent === 0) return;
      silent -= 1;
      await clock.sleep(timeoutMs);
      throw kubeError("AnswerLost", "no answer", { cluster: "host", verb: "update", resource: "leases" });
    };
    const a = elector("a", { client: renewing(hang) });
    await expect.poll(() => a.isLeader).toBe(true);
    await pass(20_000);
    expect([silent, a.isLeader, log]).toEqual([0, true, ["a started"]]);
  });
});

const HOUR_MS = 3_600_000;

describe("when the machine's clock is set", () => {
  test.each([
    ["on by an hour", HOUR_MS],
    ["back by an hour", -HOUR_MS],
  ])("%s, a leader keeps leading, and no other takes its lease", async (_, jump) => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const b = elector("b");
    await pass(10_000);
    clock.jump(jump);
    await pass(30_000);
    expect([a.isLeader, b.isLeader]).toEqual([true, false]);
    expect(log).toEqual(["a started"]);
  });

  test("back by an hour, a leader that cannot renew stops in time, and the next one leads", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.always = only("write", refuse(500, "InternalError"));
    clock.jump(-HOUR_MS);
    await pass(14_000);
    expect([a.isLeader, log]).toEqual([false, ["a started", "a stopped"]]);
    server.always = undefined;
    const b = elector("b");
    await pass(18_000);
    expect(b.isLeader).toBe(true);
  });

  test("forward by a suspend, a leader writes nothing before its next renewal", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.always = only("write", cut);
    clock.jump(15_000);
    expect(a.leftMs()).toBeLessThan(0);
    await pass(2_000);
    expect(a.isLeader).toBe(false);
    server.always = undefined;
    await pass(2_500);
    expect(a.isLeader).toBe(true);
  });
});

describe("a clean stop", () => {
  test("ends leading, then releases the lease, and another takes over within a retry period", async () => {
    const steps: string[] = [];
    const a = elector("a", {
      onStoppedLeading: async () => {
        await realTurns();
        steps.push((await lease())?.spec?.holderIdentity ?? "nobody");
      },
    });
    await expect.poll(() => a.isLeader).toBe(true);
    const b = elector("b");
    await realTurns();
    await a.stop();
    expect(steps).toEqual(["a"]);
    expect(a.isLeader).toBe(false);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "" } });
    await pass(3_000);
    expect(b.isLeader).toBe(true);
  });

  test("releases the lease although it cut a renewal", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    let stopping: Promise<void> | undefined;
    server.faults.push(
      only("write", () => {
        stopping = a.stop();
        return true;
      }),
    );
    await pass(3_000);
    await stopping;
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "" } });
  });

  test("releases the lease although the cut renewal succeeds late", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    let stopping: Promise<void> | undefined;
    let renewal: Lease | undefined;
    server.faults.push(
      only("write", ({ body }) => {
        renewal = JSON.parse(body);
        stopping = a.stop();
        return true;
      }),
      only("write", (request, response) => {
        if (renewal !== undefined) server.world.put(renewal);
        return refuse(409, "Conflict")(request, response);
      }),
    );
    await pass(3_000);
    await stopping;
    expect(server.faults).toEqual([]);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "" } });
  });

  test("releases a lease whose takeover it cut", async () => {
    let stopping: Promise<void> | undefined;
    server.faults.push(
      only("write", ({ body }) => {
        server.world.put(JSON.parse(body));
        stopping = a.stop();
        return true;
      }),
    );
    const a = elector("a");
    await pass(1_000);
    await stopping;
    expect(server.faults).toEqual([]);
    expect(log).toEqual([]);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "" } });
  });

  test("releases the lease despite a lost response", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.faults.push(only("write", cut), only("read", cut));
    await a.stop();
    expect(server.faults).toEqual([]);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "" } });
  });

  test("does not touch a lease that another holds by then", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const stolen = await lease();
    server.world.put({ ...stolen, ...{ spec: { ...stolen?.spec, holderIdentity: "thief" } } });
    await a.stop();
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "thief" } });
  });

  test("ends without any response", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    server.always = refuse(500, "InternalError");
    await a.stop();
    server.always = undefined;
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "a" } });
  });

  test("keeps the lease when leading did not end cleanly", async () => {
    const a = elector("a", { onStoppedLeading: () => Promise.reject(new Error("still writing")) });
    await expect.poll(() => a.isLeader).toBe(true);
    await a.stop();
    expect([a.isLeader, a.leftMs()]).toEqual([false, 0]);
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "a" } });
  });

  test("of a follower changes nothing", async () => {
    const a = elector("a");
    await expect.poll(() => a.isLeader).toBe(true);
    const b = elector("b");
    await realTurns();
    await b.stop();
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "a" } });
    expect(log).toEqual(["a started"]);
  });
});

test("rejects periods that cannot work", () => {
  expect(() => elector("a", { renewDeadlineMs: 14_000 })).toThrow(RangeError);
  expect(() => elector("a", { retryPeriodMs: 10_000 })).toThrow(RangeError);
});

test("records a leaderless interval in the takeover write", async () => {
  const first = elector("a");
  await pass(500);
  await first.stop();
  const released = await lease();
  const renewTime = new Date(clock.now() - 3_600_000).toISOString().replace("Z", "000Z");
  const restored: Lease = { ...released, spec: { ...released?.spec, renewTime } };
  server.world.put(restored);
  const second = elector("b");
  await pass(500);
  expect(log.at(-1)).toBe("b started");
  expect(second.leaderless).toHaveLength(1);
  const [[from, to] = [0, 0]] = second.leaderless;
  expect(to - from).toBeGreaterThan(3_500_000);
  const writes = server.requests.filter(({ method }) => method === "PUT");
  expect(writes.at(-1)?.body).toContain(LEADERLESS_ANNOTATION);
  await pass(4_000);
  expect(second.leaderless).toHaveLength(1);
});

describe("a candidate that shares Leases out", () => {
  test("leaves a free Lease alone until it may take it", async () => {
    let may = false;
    elector("a", { mayTake: () => may });
    await pass(4_000);
    expect(await lease()).toBeUndefined();
    may = true;
    await pass(4_000);
    expect(log).toEqual(["a started"]);
  });

  test("keeps a Lease that it may not take any more", async () => {
    let may = true;
    const a = elector("a", { mayTake: () => may });
    await pass(500);
    may = false;
    await pass(20_000);
    expect(a.isLeader).toBe(true);
  });
});

describe("annotations of a holder", () => {
  const shards = (count: string | undefined): Partial<LeaderElectorOptions> => ({ annotations: { shards: count } });

  test("replace those of the one before, and stay with the released Lease", async () => {
    const first = elector("a", shards("4"));
    await pass(500);
    expect((await lease())?.metadata?.annotations).toEqual({ shards: "4" });
    await first.stop();
    expect((await lease())?.metadata?.annotations).toEqual({ shards: "4" });
    elector("b", shards(undefined));
    await pass(500);
    expect(log.at(-1)).toBe("b started");
    expect((await lease())?.metadata?.annotations).toEqual({});
  });

  test("of another kind make the time since the last renewal no leaderless interval: other Leases were held then", async () => {
    const first = elector("a", shards("4"));
    await pass(500);
    await first.stop();
    const released = await lease();
    const renewTime = new Date(clock.now() - 3_600_000).toISOString().replace("Z", "000Z");
    server.world.put({ ...released, spec: { ...released?.spec, renewTime } });
    const second = elector("b", shards("2"));
    await pass(500);
    expect(log.at(-1)).toBe("b started");
    expect(second.leaderless).toEqual([]);
  });
});
