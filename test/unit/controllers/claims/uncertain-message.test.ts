import { afterEach, expect, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import { ClaimController } from "../../../../src/controllers/claims/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { claim } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const CREATION_MS = 10_000;

let running: { readonly claims: ClaimController; readonly clock: FakeClock } | undefined;

afterEach(async () => {
  const stopped = running?.claims.stop();
  await running?.clock.advance(CREATION_MS);
  await stopped;
});

/** Returns a controller whose member fails each create of a claim after ten seconds with this message, and its events. */
async function failing(words: (attempt: number) => string) {
  const clock = new FakeClock();
  const happened = { creations: 0, told: [] as (string | undefined)[] };
  const create = async (): Promise<never> => {
    happened.creations += 1;
    const detail = words(happened.creations);
    await clock.sleep(CREATION_MS);
    throw kubeError("AnswerLost", detail, { resource: "claims" });
  };
  const west = member("west", quietClient([], { create }));
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const proxy = proxyPod({ metadata: { namespace: "team" }, spec: { volumes } });
  const events = new Events<ControllerEvents>();
  events.on("needs", () => {
    const needs = claims.needs(proxy);
    const preparation = needs?.state === "there" ? needs.in("west") : undefined;
    if (typeof preparation === "object") happened.told.push(preparation.refused);
  });
  const proxies = new Store<Pod>();
  proxies.set(proxy);
  const claims = new ClaimController({
    host: quietClient([claim({ metadata: { annotations: { [CLUSTER_ANNOTATION]: "west" } } })]),
    ...surroundings([west], clock),
    restoredHost: { keeps: () => false, confirm: async () => {} },
    proxies,
    events,
  });
  running = { claims, clock };
  claims.onMembers();
  await clock.advance(0);
  claims.onProxy({ type: "added", object: proxy });
  return { clock, happened };
}

const TEN_MINUTES = 10 * 60_000;

test("asks a member with growing pauses whether it has created a claim, whatever its message", async () => {
  const { clock, happened } = await failing((attempt) => `lost by server-${"abc"[attempt % 3]}`);
  await clock.advance(TEN_MINUTES);
  // Attempts of ten seconds each, with up to thirty in between.
  expect(happened.creations).toBeGreaterThan(10);
  expect(happened.creations).toBeLessThan(30);
});

test("wakes a pod that waits for such a claim after another message, and not after other amounts", async () => {
  const { clock, happened } = await failing((attempt) => `lost${attempt < 9 ? "" : " again"} after ${attempt} ms`);
  await clock.advance(TEN_MINUTES);
  const what = "its API server refused PersistentVolumeClaim data, which the pod needs:";
  expect(happened.told.filter((words, index) => words !== happened.told[index - 1])).toEqual([
    `${what} lost after 2 ms`,
    `${what} lost again after 9 ms`,
  ]);
});
