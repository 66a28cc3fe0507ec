import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../../../src/api/kubernetes.ts";
import type { KubeError, KubeErrorCode } from "../../../src/kube/errors.ts";
import { EventRecorder, type NewEvent } from "../../../src/runtime/event-recorder.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

const POD = { namespace: "team", name: "web-0", uid: "uid-1" };
const EVENT: NewEvent = { reason: "NotPlaced", message: "no member has room" };

/**
 * A host that answers the creation of events with these first, and takes them then; `hangs`: it answers none; `exists`: it
 * has each event already that it is asked for.
 */
function recording(answers: readonly (KubeErrorCode | Error)[] = [], { hangs = false, exists = false } = {}) {
  const remaining = [...answers];
  const sent: KubeEvent[] = [];
  const lines: { readonly msg: string; readonly reason: string; readonly object: string }[] = [];
  const clock = new FakeClock();
  const signals: AbortSignal[] = [];
  const create = async (_resource: unknown, event: KubeEvent, { signal }: { signal: AbortSignal }): Promise<object> => {
    sent.push(event);
    signals.push(signal);
    if (hangs) {
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(failure("Aborted")), { once: true });
      });
    }
    const answer = remaining.shift();
    if (answer instanceof Error) throw answer;
    if (answer !== undefined) throw failure(answer);
    return event;
  };
  const log = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const source = { component: "legation", reportingComponent: "legation.dev/controller" };
  const asked: { readonly ref: object; readonly body: unknown }[] = [];
  const patch = async (_resource: unknown, ref: object, { body }: { body: unknown }): Promise<object> => {
    asked.push({ ref, body });
    if (exists) return {};
    throw failure("NotFound");
  };
  const client = fakeClient({ create: create, patch: patch });
  const recorder = new EventRecorder({ client, source, clock, log });
  return { recorder, sent, asked, lines, clock, signals };
}

function failure(code: KubeErrorCode, retryAfterMs?: number): KubeError {
  const fields = { cluster: "host", resource: "events", namespace: "team" };
  return kubeError(code, "not here", retryAfterMs === undefined ? fields : { ...fields, retryAfterMs });
}

describe("an event", () => {
  test("is sent again after the denial of a starting API server", async () => {
    const detail =
      'events is forbidden: User "legation" cannot create resource "events" in API group "" in the namespace "team"';
    const denied = kubeError("Forbidden", detail, { cluster: "host", resource: "events", namespace: "team" });
    const { recorder, sent, clock, lines } = recording([denied]);
    recorder.record(POD, EVENT);
    await clock.advance(200);
    expect(sent).toHaveLength(2);
    expect(lines).toEqual([]);
  });

  test("is dropped with a log line once the right has been denied for ten seconds, and later events at once", async () => {
    const detail =
      'events is forbidden: User "legation" cannot create resource "events" in API group "" in the namespace "team"';
    const denied = kubeError("Forbidden", detail, { cluster: "host", resource: "events", namespace: "team" });
    const { recorder, sent, clock, lines } = recording(Array.from({ length: 99 }, () => denied));
    recorder.record(POD, EVENT);
    await clock.advance(30_000);
    expect(lines).toHaveLength(1);
    const before = sent.length;
    recorder.record(POD, EVENT);
    await clock.advance(30_000);
    expect(sent).toHaveLength(before + 1);
    expect(lines).toHaveLength(2);
  });

  test.each([
    ["several members' messages", "; ", / member-\d+: no room … \(all: legation status pod web-0 -n team\)$/],
    ["one long sentence", " ", / no room … \(all: legation status pod web-0 -n team\)$/],
  ])(
    "is cut to the longest valid message after a whole part of %s, with the command that shows the rest",
    async (_, between, end) => {
      const { recorder, sent, clock } = recording();
      const message = Array.from({ length: 100 }, (_each, index) => `member-${index}: no room`).join(between);
      recorder.record(POD, { ...EVENT, message, seeAlso: "legation status pod web-0 -n team" });
      recorder.record(POD, { ...EVENT, message });
      await clock.advance(0);
      expect(sent[0]?.message).toMatch(end);
      expect(sent[1]?.message).toMatch(/ no room …$/);
      for (const each of sent) {
        expect(each.message?.length).toBeLessThanOrEqual(1024);
        expect(each.message?.length).toBeGreaterThan(980);
      }
    },
  );

  test("names its object, and has a name of its own", async () => {
    const { recorder, sent, clock, lines } = recording();
    recorder.record(POD, EVENT);
    recorder.record({ ...POD, apiVersion: "v1", kind: "Service" }, { ...EVENT, type: "Normal" });
    await clock.advance(0);
    expect(sent).toMatchObject([
      { type: "Warning", ...EVENT, involvedObject: { ...POD, kind: "Pod" }, metadata: { namespace: "team" } },
      { type: "Normal", ...EVENT, involvedObject: { ...POD, kind: "Service" } },
    ]);
    const [first, second] = sent.map(({ metadata }) => metadata.name);
    expect(first).toMatch(/^web-0\.[0-9a-f]{16}$/);
    expect(second).not.toBe(first);
    expect(lines).toEqual([]);
  });

  test.each<KubeErrorCode>(["BadRequest", "Forbidden", "MethodNotAllowed", "NotFound", "TooLarge", "Unprocessable"])(
    "is dropped with a log line after %s",
    async (code) => {
      const { recorder, sent, clock, lines } = recording([code]);
      recorder.record(POD, EVENT);
      await clock.advance(60 * 60_000);
      expect(sent).toHaveLength(1);
      const msg = "an event is dropped: host: create events in team: not here";
      expect(lines).toMatchObject([{ msg, reason: "NotPlaced", object: "team/web-0" }]);
    },
  );

  test.each<KubeErrorCode>([
    "AnswerLost",
    "BadAnswer",
    "BadCredentials",
    "Conflict",
    "Gone",
    "NotSent",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
  ])("is sent again under the same name after %s", async (code) => {
    const { recorder, sent, clock, lines } = recording([code, code]);
    recorder.record(POD, EVENT);
    await clock.advance(1_000);
    expect(sent).toHaveLength(3);
    expect(new Set(sent).size).toBe(1);
    expect(lines).toEqual([]);
  });

  test("counts as recorded when it exists already", async () => {
    const { recorder, sent, clock, lines } = recording(["AlreadyExists"]);
    recorder.record(POD, { ...EVENT, suffix: "once" });
    await clock.advance(60_000);
    expect(sent.map(({ metadata }) => metadata)).toEqual([{ namespace: "team", name: "web-0.once" }]);
    expect(lines).toEqual([]);
  });

  test.each([
    ["exists", true, []],
    ["does not exist", false, ["web-0.once"]],
  ])(
    "that an earlier leader may have recorded, and that %s on the host, is created only where it is missing",
    async (_, exists, created) => {
      const { recorder, sent, asked, clock } = recording([], { exists });
      recorder.record(POD, { ...EVENT, suffix: "once", mayExist: true });
      await clock.advance(60_000);
      expect(asked).toEqual([{ ref: { namespace: "team", name: "web-0.once" }, body: {} }]);
      expect(sent.map(({ metadata }) => metadata.name)).toEqual(created);
    },
  );

  test("is sent again when the API server's Retry-After is over", async () => {
    const { recorder, sent, clock } = recording([failure("TooManyRequests", 5_000)]);
    recorder.record(POD, EVENT);
    await clock.advance(4_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent).toHaveLength(2);
  });

  test("is dropped with one log line after ten minutes of failures", async () => {
    const { recorder, sent, clock, lines } = recording(Array.from({ length: 100 }, () => "ServerError" as const));
    recorder.record(POD, EVENT);
    await clock.advance(9 * 60_000);
    expect(lines).toEqual([]);
    expect(sent.length).toBeGreaterThan(20);
    await clock.advance(60 * 60_000);
    expect(sent.length).toBeLessThan(60);
    expect(lines).toHaveLength(1);
  });

  test("is dropped after an unexpected error, and blocks no other", async () => {
    const { recorder, sent, clock, lines } = recording([new TypeError("a defect")]);
    recorder.record(POD, EVENT);
    recorder.record(POD, EVENT);
    await clock.advance(1_000);
    expect(sent).toHaveLength(2);
    expect(lines).toMatchObject([{ msg: "an event is dropped", err: { message: "a defect" } }]);
  });
});

test("gives an event a valid name, wherever the name of its object is cut", async () => {
  const { recorder, sent, clock } = recording();
  const name = `${"a".repeat(198)}.-${"b".repeat(50)}`;
  recorder.record({ ...POD, name }, { ...EVENT, suffix: "once" });
  await clock.advance(0);
  expect(sent[0]?.metadata.name).toBe(`${"a".repeat(198)}.once`);
  expect(sent[0]?.involvedObject.name).toBe(name);
});

describe("an API server that does not answer", () => {
  test("gets eight requests at most, and blocks no caller", async () => {
    const { recorder, sent } = recording([], { hangs: true });
    for (let count = 0; count < 100; count += 1) recorder.record(POD, EVENT);
    await settle();
    expect(sent).toHaveLength(8);
    await recorder.stop();
  });

  test("has ten thousand events pending at most", async () => {
    const { recorder, lines } = recording([], { hangs: true });
    for (let count = 0; count < 10_003; count += 1) recorder.record(POD, EVENT);
    expect(lines.map(({ msg }) => msg)).toEqual(
      Array.from({ length: 3 }, () => "an event is dropped: too many others are pending"),
    );
    await recorder.stop();
  });
});

test("sends nothing after it was stopped, and aborts the requests in flight", async () => {
  const { recorder, sent, clock, signals, lines } = recording([], { hangs: true });
  recorder.record(POD, EVENT);
  await recorder.stop();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  recorder.record(POD, EVENT);
  await clock.advance(60_000);
  expect(sent).toHaveLength(1);
  expect(lines).toEqual([]);
  expect(clock.pending).toBe(0);
});

test("does not send an event that backs off after it was stopped", async () => {
  const { recorder, sent, clock } = recording(["ServerError"]);
  recorder.record(POD, EVENT);
  await clock.advance(0);
  expect(clock.pending).toBe(1);
  await recorder.stop();
  expect(clock.pending).toBe(0);
  await clock.advance(60_000);
  expect(sent).toHaveLength(1);
});

describe("an event with a dedupe key", () => {
  const once = { ...EVENT, dedupe: "NotPlaced web-0" };

  test("is recorded once in fifty minutes", async () => {
    const { recorder, sent, clock } = recording();
    expect(recorder.isRecorded(once.dedupe)).toBe(false);
    recorder.record(POD, once);
    recorder.record(POD, { ...once, message: "other words" });
    recorder.record(POD, EVENT);
    expect(recorder.isRecorded(once.dedupe)).toBe(true);
    await clock.advance(50 * 60_000 - 1);
    recorder.record(POD, once);
    expect(sent).toHaveLength(2);
    await clock.advance(1);
    recorder.record(POD, once);
    expect(sent).toHaveLength(3);
  });

  test("is remembered among ten thousand others at most", async () => {
    const { recorder, clock } = recording();
    for (let nth = 0; nth <= 10_000; nth += 1) {
      recorder.record(POD, { ...EVENT, dedupe: `key ${nth}` });
      if (nth % 1_000 === 0) await clock.advance(0);
    }
    expect([0, 1, 10_000].map((nth) => recorder.isRecorded(`key ${nth}`))).toEqual([false, true, true]);
  });
});
