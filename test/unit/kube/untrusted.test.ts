import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { KubeError } from "../../../src/kube/errors.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import { pods } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector, type ReflectorState } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { connect, kubeErrorOf } from "../../support/fault-server/connect.ts";
import { answerStatus, FaultServer } from "../../support/fault-server/fault-server.ts";
import { flood, refuse, stream } from "../../support/fault-server/faults.ts";

const MEBIBYTE = 2 ** 20;
const web: Pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "default", name: "web" } };
let server: FaultServer;
let client: ClusterClient;
const abort = new AbortController();
beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server, { untrusted: true });
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

async function watched(): Promise<void> {
  for await (const _event of client.watch(pods, { resourceVersion: "1", signal: abort.signal }));
}

function large(name: string): Pod {
  return { ...web, metadata: { namespace: "default", name, annotations: { note: "x".repeat(900) } } };
}

function follow(
  budget: ByteBudget,
  pageSize?: number,
): { readonly states: ReflectorState[]; readonly reflector: Reflector<Pod> } {
  const states: ReflectorState[] = [];
  const log = createLogger({ level: "silent" });
  const reflector = new Reflector<Pod>({
    client,
    resource: pods,
    budget,
    ...(pageSize === undefined ? {} : { pageSize }),
    clock: realClock,
    log,
    onState: (state) => states.push(state),
  });
  reflector.start();
  return { states, reflector };
}

describe("an untrusted server that sends without end", () => {
  test("is cut off within one event of a watch", async () => {
    const { taken } = flood(server, "x".repeat(MEBIBYTE));
    const error = await kubeErrorOf(watched());
    expect(error).toMatchObject({ code: "AnswerLost", detail: `an event of more than ${16 * MEBIBYTE} bytes` });
    expect(taken()).toBeLessThan(32 * MEBIBYTE);
  });

  test("is cut off within the incomplete events of its watches together", { timeout: 90_000 }, async () => {
    const begun = "x".repeat(15 * MEBIBYTE);
    server.faults.push(...Array.from({ length: 5 }, () => stream(begun, "silence")));
    const cut: KubeError[] = [];
    const watches = Array.from({ length: 5 }, async () => cut.push(await kubeErrorOf(watched())));
    await expect.poll(() => cut, { timeout: 60_000 }).toHaveLength(1);
    expect(cut[0]).toMatchObject({
      code: "AnswerLost",
      detail: expect.stringContaining(`larger than ${64 * MEBIBYTE}`),
    });
    // No room for an answer, either, until they have ended.
    const large = (): Promise<unknown> => client.raw({ method: "GET", path: "/large", timeoutMs: 60_000 });
    server.always = ({ path }, response) => {
      if (path !== "/large") return false;
      response.end("x".repeat(60 * MEBIBYTE));
      return true;
    };
    expect(await kubeErrorOf(large())).toMatchObject({ code: "AnswerLost" });
    server.cutConnections();
    await Promise.all(watches);
    expect(await large()).toHaveLength(60 * MEBIBYTE);
  });

  test("is cut off when its lists exceed the store's budget", async () => {
    for (let number = 0; number < 20; number += 1) server.world.put(large(`pod-${number}`));
    const { states, reflector } = follow(new ByteBudget(15_000));
    await expect.poll(() => states).toContain("backing-off");
    expect(reflector.store.size).toBe(0);
    expect(reflector.store.synced).toBe(false);
    await reflector.stop();
  });

  test("is cut off at the page beyond the budget that its reflectors share", async () => {
    for (let number = 0; number < 40; number += 1) server.world.put(large(`pod-${number}`));
    const budget = new ByteBudget(15_000);
    expect(budget.hold(10_000)).toBe(true);
    const { states, reflector } = follow(budget, 1);
    await expect.poll(() => states).toContain("backing-off");
    await reflector.stop();
    expect(server.requests.length).toBeLessThan(6);
    expect(budget.hold(5_000)).toBe(true);
  });

  test("is listed again without further budget for unchanged objects", async () => {
    for (let number = 0; number < 9; number += 1) server.world.put(large(`pod-${number}`));
    const budget = new ByteBudget(15_000);
    const { states, reflector } = follow(budget, 2);
    await expect.poll(() => states).toEqual(["listing", "watching"]);
    server.world.put(large("pod-0"));
    server.writeToWatches("nonsense\n");
    await expect.poll(() => states).toEqual(["listing", "watching", "backing-off", "listing", "watching"]);
    expect(reflector.store.size).toBe(9);
    await reflector.stop();
    expect(budget.hold(15_000)).toBe(true);
  });

  test("is cut off when its watch exceeds the store's budget, and is read again later", async () => {
    const budget = new ByteBudget(15_000);
    const { states, reflector } = follow(budget);
    await expect.poll(() => states).toContain("watching");
    for (let number = 0; number < 20; number += 1) server.world.put(large(`pod-${number}`));
    await expect.poll(() => states).toContain("backing-off");
    expect(reflector.store.size).toBeLessThan(16);
    for (let number = 5; number < 20; number += 1) server.world.remove(large(`pod-${number}`));
    await expect.poll(() => reflector.store.size, { timeout: 5_000 }).toBe(5);
    await reflector.stop();
    expect(budget.hold(15_000)).toBe(true);
  });

  test("is not cut off for short-lived pods", async () => {
    const { states, reflector } = follow(new ByteBudget(15_000));
    await expect.poll(() => states).toContain("watching");
    for (let number = 0; number < 40; number += 1) {
      server.world.put(large(`pod-${number}`));
      server.world.remove(large(`pod-${number}`));
    }
    server.world.put(large("last"));
    await expect.poll(() => reflector.store.list().map(({ metadata }) => metadata.name)).toEqual(["last"]);
    expect(states).toEqual(["listing", "watching"]);
    await reflector.stop();
  });
});

describe("an untrusted server with invalid responses", () => {
  test("delays a caller by a minute at most", async () => {
    server.faults.push(refuse(429, "TooManyRequests", { "retry-after": "99999999" }));
    expect((await kubeErrorOf(client.list(pods))).retryAfterMs).toBe(60_000);
    server.faults.push(refuse(503, "ServiceUnavailable", { "retry-after": new Date(8e15).toUTCString() }));
    expect((await kubeErrorOf(client.list(pods))).retryAfterMs).toBe(60_000);
  });

  test("cannot control a terminal", async () => {
    server.faults.push((_request, response) => {
      answerStatus(response, 403, "Forbidden", "\u001b]0;owned\u0007no\u009b2J\nway");
      return true;
    });
    expect((await kubeErrorOf(client.list(pods))).detail).toBe("]0;ownedno2J\nway");
  });

  test("gets only a few lines into messages", async () => {
    server.faults.push((_request, response) => {
      answerStatus(response, 403, "Forbidden", "x".repeat(MEBIBYTE / 2));
      return true;
    });
    expect((await kubeErrorOf(client.list(pods))).detail).toHaveLength(4_096);
  });
});
