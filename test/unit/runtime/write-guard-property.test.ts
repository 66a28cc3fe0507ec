import fc from "fast-check";
import { expect, test } from "vitest";
import { heldUntil } from "../../../src/runtime/held-writes.ts";
import { WriteGuard } from "../../../src/runtime/write-guard.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const HOLD_MS = 5 * 60_000;

/** The answer of an API server to a write, and what becomes of the write. */
const answer = fc.constantFrom("kept", "undone", "no effect", "refused");
const object = fc.constantFrom("web", "db");
const content = fc.constantFrom("1", "2");
const step = fc.record({
  object,
  content,
  answer,
  pauseMs: fc.constantFrom(0, 1, 1_000, 20_000, HOLD_MS / 2, HOLD_MS),
});

interface Sent {
  readonly object: string;
  readonly content: string;
  readonly answer: string;
  readonly at: number;
}

/** A controller that asks before each write. Returns the writes that it sent. */
async function run(steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]): Promise<Sent[]> {
  const clock = new FakeClock(0);
  const guard = new WriteGuard({ clock, holdMs: HOLD_MS });
  const sent: Sent[] = [];
  for (const { pauseMs, ...write } of steps) {
    await clock.advance(pauseMs);
    const at = clock.now();
    const held: ReturnType<typeof guard.of> = JSON.parse(JSON.stringify(guard.of(write.object) ?? {}));
    const query = { write: "spec", content: write.content, now: at };
    expect(heldUntil(held, query)).toBe(guard.heldUntil(write.object, "spec", write.content));
    if (!guard.mayWrite(write.object, "spec", write.content)) continue;
    sent.push({ ...write, at });
    const hold = { content: write.content };
    if (write.answer === "no effect") guard.hold(write.object, "spec", "NoEffect", hold);
    else if (write.answer === "refused") guard.refuse(write.object, "spec", { message: "no" }, hold);
    else guard.written(write.object, "spec", { spec: write.content }, hold);
  }
  return sent;
}

test("never repeats a write that was refused or had no effect before its hold ends", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const sent = await run(steps);
      for (const [index, write] of sent.entries()) {
        if (write.answer !== "refused" && write.answer !== "no effect") continue;
        const next = sent.slice(index + 1).find((other) => other.object === write.object);
        if (next?.content !== write.content) continue;
        expect(next.at - write.at).toBeGreaterThanOrEqual(HOLD_MS);
      }
    }),
  );
});

test("writes the same at most five times in a minute unless another write comes in between", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const sent = (await run(steps)).filter((write) => write.object === "web");
      for (const [index, first] of sent.entries()) {
        const end = sent.findIndex(
          (other, at) => at > index && (other.content !== first.content || other.at >= first.at + 60_000),
        );
        expect(sent.slice(index, end === -1 ? undefined : end).length).toBeLessThanOrEqual(5);
      }
    }),
  );
});

test("holds writes of one object apart from those of another", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const alone = steps.map((each) => (each.object === "web" ? each : { ...each, answer: "kept", content: "none" }));
      const only = (sent: readonly Sent[]): Sent[] => sent.filter((write) => write.object === "web");
      expect(only(await run(steps))).toEqual(only(await run(alone as typeof steps)));
    }),
  );
});
