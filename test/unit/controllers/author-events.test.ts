import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../../../src/api/kubernetes.ts";
import { AuthorEvents, type News } from "../../../src/controllers/author-events.ts";
import { KubeError, type KubeErrorCode } from "../../../src/kube/errors.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";
import { fakeClient } from "../cli/client.ts";

const POD = { namespace: "team", name: "web-0", uid: "uid-1" };
const NEWS: News = { reason: "NotPlaced", message: "no member has room" };

/** A host that answers the writes of events with these first, and takes them then; `hangs`: it answers none. */
function telling(answers: readonly (KubeErrorCode | Error)[] = [], hangs = false) {
  const remaining = [...answers];
  const sent: KubeEvent[] = [];
  const lines: { readonly msg: string; readonly reason: string; readonly object: string }[] = [];
  const clock = new FakeClock();
  const signals: AbortSignal[] = [];
  const create = async (
    _resource: unknown,
    event: KubeEvent,
    { signal }: { signal: AbortSignal },
  ): Promise<unknown> => {
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
  const events = new AuthorEvents({ host: fakeClient({ create: create as never }), clock, log });
  return { events, sent, lines, clock, signals };
}

function failure(code: KubeErrorCode, retryAfterMs?: number): KubeError {
  const fields = { code, cluster: "host", verb: "create", resource: "events team/" } as const;
  return new KubeError("not here", retryAfterMs === undefined ? fields : { ...fields, retryAfterMs });
}

describe("an event for an author", () => {
  test("that an API server denies which has just been started is told when it does", async () => {
    const detail =
      'events is forbidden: User "legation" cannot create resource "events" in API group "" in the namespace "team"';
    const denied = new KubeError(detail, {
      code: "Forbidden",
      cluster: "host",
      verb: "create",
      resource: "events team/",
    });
    const { events, sent, clock, lines } = telling([denied]);
    events.tell(POD, NEWS);
    await clock.advance(200);
    expect(sent).toHaveLength(2);
    expect(lines).toEqual([]);
  });

  test("that the host goes on denying is told of in its log after ten seconds, and later ones at once", async () => {
    const detail =
      'events is forbidden: User "legation" cannot create resource "events" in API group "" in the namespace "team"';
    const fields = { code: "Forbidden", cluster: "host", verb: "create", resource: "events team/" } as const;
    const { events, sent, clock, lines } = telling(Array.from({ length: 99 }, () => new KubeError(detail, fields)));
    events.tell(POD, NEWS);
    await clock.advance(30_000);
    expect(lines).toHaveLength(1);
    const before = sent.length;
    events.tell(POD, NEWS);
    await clock.advance(30_000);
    expect(sent).toHaveLength(before + 1);
    expect(lines).toHaveLength(2);
  });

  test.each([
    ["what several members say", "; ", / member-\d+: no room … \(all: legation status pod web-0 -n team\)$/],
    ["one long sentence", " ", / no room … \(all: legation status pod web-0 -n team\)$/],
  ])(
    "is as long as API servers take, and ends with a whole part of %s and where the rest is",
    async (_, between, end) => {
      const { events, sent, clock } = telling();
      const message = Array.from({ length: 100 }, (_each, index) => `member-${index}: no room`).join(between);
      events.tell(POD, { ...NEWS, message, all: "legation status pod web-0 -n team" });
      events.tell(POD, { ...NEWS, message });
      await clock.advance(0);
      expect(sent[0]?.message).toMatch(end);
      expect(sent[1]?.message).toMatch(/ no room …$/);
      for (const each of sent) {
        expect(each.message?.length).toBeLessThanOrEqual(1024);
        expect(each.message?.length).toBeGreaterThan(980);
      }
    },
  );

  test("says of what object it is, and has a name that no other has", async () => {
    const { events, sent, clock, lines } = telling();
    events.tell(POD, NEWS);
    events.tell({ ...POD, apiVersion: "v1", kind: "Service" }, { ...NEWS, type: "Normal" });
    await clock.advance(0);
    expect(sent).toMatchObject([
      { type: "Warning", ...NEWS, involvedObject: { ...POD, kind: "Pod" }, metadata: { namespace: "team" } },
      { type: "Normal", ...NEWS, involvedObject: { ...POD, kind: "Service" } },
    ]);
    const [first, second] = sent.map(({ metadata }) => metadata.name);
    expect(first).toMatch(/^web-0\.[0-9a-f]{16}$/);
    expect(second).not.toBe(first);
    expect(lines).toEqual([]);
  });

  test.each<KubeErrorCode>(["BadRequest", "Forbidden", "MethodNotAllowed", "NotFound", "TooLarge", "Unprocessable"])(
    "that is answered with %s is not told, which the log says",
    async (code) => {
      const { events, sent, clock, lines } = telling([code]);
      events.tell(POD, NEWS);
      await clock.advance(60 * 60_000);
      expect(sent).toHaveLength(1);
      const msg = "an event is not told: host: create events team/: not here";
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
  ])("that is answered with %s is sent again soon, as the same", async (code) => {
    const { events, sent, clock, lines } = telling([code, code]);
    events.tell(POD, NEWS);
    await clock.advance(1_000);
    expect(sent).toHaveLength(3);
    expect(new Set(sent).size).toBe(1);
    expect(lines).toEqual([]);
  });

  test("that is there already was told", async () => {
    const { events, sent, clock, lines } = telling(["AlreadyExists"]);
    events.tell(POD, { ...NEWS, suffix: "once" });
    await clock.advance(60_000);
    expect(sent.map(({ metadata }) => metadata)).toEqual([{ namespace: "team", name: "web-0.once" }]);
    expect(lines).toEqual([]);
  });

  test("is sent again when the API server has asked for it, and not before", async () => {
    const { events, sent, clock } = telling([failure("TooManyRequests", 5_000)]);
    events.tell(POD, NEWS);
    await clock.advance(4_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent).toHaveLength(2);
  });

  test("that is not taken for ten minutes is given up, which the log says once", async () => {
    const { events, sent, clock, lines } = telling(Array.from({ length: 100 }, () => "ServerError" as const));
    events.tell(POD, NEWS);
    await clock.advance(9 * 60_000);
    expect(lines).toEqual([]);
    expect(sent.length).toBeGreaterThan(20);
    await clock.advance(60 * 60_000);
    expect(sent.length).toBeLessThan(60);
    expect(lines).toHaveLength(1);
  });

  test("that fails in a way nobody has thought of is not told, and holds up no other", async () => {
    const { events, sent, clock, lines } = telling([new TypeError("a defect")]);
    events.tell(POD, NEWS);
    events.tell(POD, NEWS);
    await clock.advance(1_000);
    expect(sent).toHaveLength(2);
    expect(lines).toMatchObject([{ msg: "an event is not told", err: { message: "a defect" } }]);
  });
});

test("the name of an event is one that the API server takes, whatever that of its object is cut to", async () => {
  const { events, sent, clock } = telling();
  const name = `${"a".repeat(198)}.-${"b".repeat(50)}`;
  events.tell({ ...POD, name }, { ...NEWS, suffix: "once" });
  await clock.advance(0);
  expect(sent[0]?.metadata.name).toBe(`${"a".repeat(198)}.once`);
  expect(sent[0]?.involvedObject.name).toBe(name);
});

describe("an API server that does not answer", () => {
  test("has eight events at most before it, and holds nobody up who has more to tell", async () => {
    const { events, sent } = telling([], true);
    for (let count = 0; count < 100; count += 1) events.tell(POD, NEWS);
    await settle();
    expect(sent).toHaveLength(8);
    await events.stop();
  });

  test("has ten thousand kept for it", async () => {
    const { events, lines } = telling([], true);
    for (let count = 0; count < 10_003; count += 1) events.tell(POD, NEWS);
    expect(lines.map(({ msg }) => msg)).toEqual(
      Array.from({ length: 3 }, () => "an event is not told: too many others wait"),
    );
    await events.stop();
  });
});

test("nothing is told after the end, and nobody waits for an answer then", async () => {
  const { events, sent, clock, signals, lines } = telling([], true);
  events.tell(POD, NEWS);
  await events.stop();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  events.tell(POD, NEWS);
  await clock.advance(60_000);
  expect(sent).toHaveLength(1);
  expect(lines).toEqual([]);
  expect(clock.pending).toBe(0);
});

test("an event that rests when the end comes is not sent again", async () => {
  const { events, sent, clock } = telling(["ServerError"]);
  events.tell(POD, NEWS);
  await clock.advance(0);
  expect(clock.pending).toBe(1);
  await events.stop();
  expect(clock.pending).toBe(0);
  await clock.advance(60_000);
  expect(sent).toHaveLength(1);
});
