import { Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { WatchOptions } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const MINUTE = 60_000;
const LEVELS = new Map([
  [20, "debug"],
  [30, "info"],
  [40, "warn"],
]);
const line = z.object({ level: z.number(), msg: z.string() });

/** A reflector whose watch fails for what `reason` says, and lasts a minute when that says nothing; what it logs. */
function failing(clock: FakeClock, reason: () => string | undefined): string[] {
  const logged: string[] = [];
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      const { level, msg } = line.parse(JSON.parse(String(chunk)));
      logged.push(`${LEVELS.get(level)} ${msg}`);
      done();
    },
  });
  const reflector = new Reflector({
    client: fakeClient({
      cluster: "west",
      list: async () => ({ items: [], resourceVersion: "1", size: 0 }),
      watch: async function* (_resource: unknown, { signal, onOpen }: WatchOptions) {
        const problem = reason();
        if (problem !== undefined) throw kubeError("NotSent", problem, { verb: "watch" });
        onOpen?.();
        yield { type: "BOOKMARK", resourceVersion: "1" };
        await clock.sleep(MINUTE, signal);
      },
    }),
    resource: pods,
    clock,
    log: createLogger({ level: "debug", destination }),
  });
  onTestFinished(() => reflector.stop());
  reflector.start();
  return logged;
}

function toldOf(logged: readonly string[]): string[] {
  return logged.filter((text) => !text.startsWith("debug"));
}

test("logs an outage at its start, hourly, and at its end", async () => {
  const clock = new FakeClock();
  let away: string | undefined = "no connection";
  const logged = failing(clock, () => away);
  for (let minute = 0; minute < 150; minute += 1) await clock.advance(MINUTE);
  const warning = "warn west: watch pods: no connection";
  expect(toldOf(logged)).toEqual([warning, warning, warning]);
  expect(logged.length).toBeGreaterThan(900);

  away = undefined;
  await clock.advance(MINUTE);
  expect(toldOf(logged).slice(3)).toEqual(["info pods of west are followed again"]);
});

test("logs alternating reasons once each", async () => {
  const clock = new FakeClock();
  const reasons = ["timed out", "refused"];
  const logged = failing(clock, () => {
    reasons.reverse();
    return reasons[0];
  });
  await clock.advance(10 * MINUTE);
  expect(toldOf(logged)).toEqual(["warn west: watch pods: refused", "warn west: watch pods: timed out"]);
});

test("logs at most eleven of ever-changing reasons", async () => {
  const clock = new FakeClock();
  let attempts = 0;
  const logged = failing(clock, () => {
    attempts += 1;
    return `attempt ${attempts}`;
  });
  await clock.advance(30 * MINUTE);
  expect(attempts).toBeGreaterThan(150);
  expect(toldOf(logged)).toHaveLength(11);
});

test("logs a failure again after a working watch", async () => {
  const clock = new FakeClock();
  const reasons = ["reset", undefined, "reset"];
  const logged = failing(clock, () => reasons.shift());
  await clock.advance(3 * MINUTE);
  const once = ["warn west: watch pods: reset", "info pods of west are followed again"];
  expect(toldOf(logged)).toEqual([...once, ...once]);
});
