import { afterEach, expect, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../src/api/keys.ts";
import { ClaimController } from "../../../../src/controllers/claims/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { claim, HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { quietClient } from "../quiet-client.ts";

const CREATION_MS = 10_000;

let running: { readonly claims: ClaimController; readonly clock: FakeClock } | undefined;

afterEach(async () => {
  const stopped = running?.claims.stop();
  await running?.clock.advance(CREATION_MS);
  await stopped;
});

/** Returns a controller whose member fails each create of a claim after ten seconds with this message, and its events. */
function failing(words: (attempt: number) => string) {
  const clock = new FakeClock();
  const happened = { creations: 0, told: [] as (string | undefined)[] };
  const create = async (): Promise<never> => {
    happened.creations += 1;
    const detail = words(happened.creations);
    await clock.sleep(CREATION_MS);
    throw kubeError("AnswerLost", detail, { resource: "claims" });
  };
  const west = {
    name: "west",
    reachable: true,
    reachableSince: 0,
    cluster: { spec: {} },
    client: quietClient([], { create: create as never }),
    memory: new ByteBudget(1e6),
    watches: new Set(),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const proxy = proxyPod({ metadata: { namespace: "team" }, spec: { volumes } });
  const events = new Events<ControllerEvents>();
  events.on("needs", () => {
    const needs = claims.needs(proxy);
    const preparation = needs?.state === "there" ? needs.in("west") : undefined;
    if (typeof preparation === "object") happened.told.push(preparation.refused);
  });
  const claims = new ClaimController({
    host: quietClient([claim({ metadata: { annotations: { [CLUSTER_ANNOTATION]: "west" } } })]),
    identity: HOST,
    registry: { members: () => [west], member: () => west },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    proxies: { get: () => proxy },
    events,
    clock,
    log: createLogger({ level: "silent" }),
  } as never);
  running = { claims, clock };
  claims.onMembers();
  claims.onProxy({ type: "added", object: proxy });
  return { clock, happened };
}

const TEN_MINUTES = 10 * 60_000;

test("asks a member with growing pauses whether it has created a claim, whatever its message", async () => {
  const { clock, happened } = failing((attempt) => `lost by server-${"abc"[attempt % 3]}`);
  await clock.advance(TEN_MINUTES);
  // Attempts of ten seconds each, with up to thirty in between.
  expect(happened.creations).toBeGreaterThan(10);
  expect(happened.creations).toBeLessThan(30);
});

test("wakes a pod that waits for such a claim after another message, and not after other amounts", async () => {
  const { clock, happened } = failing((attempt) => `lost${attempt < 9 ? "" : " again"} after ${attempt} ms`);
  await clock.advance(TEN_MINUTES);
  const what = "its API server refused PersistentVolumeClaim data, which the pod needs:";
  expect(happened.told.filter((words, index) => words !== happened.told[index - 1])).toEqual([
    `${what} lost after 2 ms`,
    `${what} lost again after 9 ms`,
  ]);
});
