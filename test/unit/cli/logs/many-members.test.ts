import { afterEach, beforeEach, expect, test } from "vitest";
import { followPods } from "../../../../src/cli/logs/follow.ts";
import { LinePrinter } from "../../../../src/cli/logs/lines.ts";
import { selectedPods } from "../../../../src/cli/logs/show.ts";
import type { LogSource } from "../../../../src/cli/logs/sources.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const SELECTION = { namespace: "shop", labelSelector: "app=web" };
const NO_PODS = { items: [], resourceVersion: "1", size: 0 };

let asked: PromiseWithResolvers<typeof NO_PODS>[];
let sources: readonly LogSource[];
let clock: FakeClock;
let stop: AbortController;
let output: Parameters<typeof selectedPods>[2];
beforeEach(() => {
  asked = [];
  sources = Array.from({ length: 200 }, (_, index) => {
    const list = (): Promise<typeof NO_PODS> => {
      const answer = Promise.withResolvers<typeof NO_PODS>();
      asked.push(answer);
      return answer.promise;
    };
    const name = `member-${index}`;
    const watch = async function* (): AsyncGenerator<never> {
      await Promise.withResolvers<never>().promise;
      yield* [];
    };
    return { name, client: fakeClient({ cluster: name, list, watch }), isHost: false };
  });
  clock = new FakeClock();
  stop = new AbortController();
  const gaps = new Gaps(() => undefined);
  output = { printer: new LinePrinter(() => undefined), gaps, clock, signal: stop.signal };
});
afterEach(() => stop.abort(new Error("the test is over")));

test.each([
  ["-l", () => selectedPods(SELECTION, sources, output)],
  [
    "-l -f",
    () => followPods(SELECTION, sources, { all: false, timestamps: false, maxStreams: 10, isSingle: false }, output),
  ],
])("%s asks 64 of 200 members at a time, and others in place of those that answer or are late", async (_flags, run) => {
  void run().catch(() => undefined);
  await clock.advance(0);
  expect(asked).toHaveLength(64);
  for (const answer of asked.slice(0, 2)) answer.resolve(NO_PODS);
  await clock.advance(0);
  expect(asked).toHaveLength(66);
  await clock.advance(2_000);
  expect(asked).toHaveLength(66 + 64);
});
