import { expect, test } from "vitest";
import { Choice } from "../../../src/relay/affinity.ts";
import type { RelayPod } from "../../../src/relay/endpoints.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function pod(name: string): RelayPod {
  return { uid: name, name, namespace: "team", address: "10.1.0.1", port: 80, cluster: "west" };
}

const PODS = ["a", "b", "c", "d"].map(pod);
const AFFINITY_MS = 10_000;

function choose(choice: Choice, pods: readonly RelayPod[], client = "10.0.0.9"): string | undefined {
  const [first] = choice.order({ pods, affinityMs: AFFINITY_MS }, "team/web", client);
  if (first !== undefined) choice.taken(first, AFFINITY_MS, "team/web", client);
  return first?.name;
}

test("tries every pod once, in any order", () => {
  const choice = new Choice(new FakeClock());
  const seen = new Set<string>();
  for (let turn = 0; turn < 200; turn += 1) {
    const order = choice.order({ pods: PODS, affinityMs: undefined }, "team/web", "").map(({ name }) => name);
    expect(order.toSorted()).toEqual(["a", "b", "c", "d"]);
    seen.add(order[0] ?? "");
  }
  expect(seen.size).toBe(4);
});

test("gives a client its pod again, also when others come, until the time is over", async () => {
  const clock = new FakeClock();
  const choice = new Choice(clock);
  const given = choose(choice, PODS.slice(0, 2));
  for (const pods of [PODS, PODS.toReversed()]) expect(choose(choice, pods)).toBe(given);
  await clock.advance(AFFINITY_MS + 1);
  expect(choose(choice, PODS)).toBe(choose(new Choice(clock), PODS));
});

test("gives a client another pod when its own is gone", () => {
  const choice = new Choice(new FakeClock());
  const given = choose(choice, PODS);
  expect(
    choose(
      choice,
      PODS.filter(({ name }) => name !== given),
    ),
  ).not.toBe(given);
});

test("gives a client the same pod as another replica does, and different clients different ones", () => {
  const clients = Array.from({ length: 50 }, (_, index) => `10.0.0.${index}`);
  const by = (choice: Choice): (string | undefined)[] => clients.map((client) => choose(choice, PODS, client));
  const first = by(new Choice(new FakeClock()));
  expect(by(new Choice(new FakeClock()))).toEqual(first);
  expect(new Set(first).size).toBe(4);
});
