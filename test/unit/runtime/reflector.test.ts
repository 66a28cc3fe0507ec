import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { objectKey } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { ResponseTooLarge } from "../../../src/kube/errors.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import { pods } from "../../../src/kube/resources.ts";
import {
  Reflector,
  type ReflectorEvent,
  type ReflectorOptions,
  type ReflectorState,
} from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { connect } from "../../support/fault-server/connect.ts";
import { FaultServer, line } from "../../support/fault-server/fault-server.ts";
import { cut, only, refuse, silence, stream } from "../../support/fault-server/faults.ts";

let server: FaultServer;
let client: ClusterClient;
let clock: FakeClock;
let events: string[];
let states: ReflectorState[];
let reflector: Reflector<Pod>;

beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server, { limits: { timeoutMs: 2_000 } });
  clock = new FakeClock();
  events = [];
  states = [];
  reflector = reflect();
});
afterEach(async () => {
  await reflector.stop();
  await client.close();
  await server.stop();
});

function reflect(options: Partial<ReflectorOptions<Pod>> = {}): Reflector<Pod> {
  return new Reflector<Pod>({
    client,
    resource: pods,
    clock,
    log: createLogger({ level: "silent" }),
    onEvent: (event) => events.push(shortForm(event)),
    onState: (state) => states.push(state),
    ...options,
  });
}

/** `updated a@3 from 2` or `deleted a@5 (uid 1)`. */
function shortForm(event: ReflectorEvent<Pod>): string {
  const { name, resourceVersion } = event.object.metadata;
  const from = event.type === "updated" ? ` from ${event.previous.metadata.resourceVersion}` : "";
  return `${event.type} ${name}@${resourceVersion}${from}`;
}

const pod = (name: string, more: Partial<Pod> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  ...more,
  metadata: { namespace: "default", name, ...more.metadata },
});
const put = (name: string, more: Partial<Pod> = {}): string =>
  `${name}@${server.world.put(pod(name, more)).metadata.resourceVersion}`;
const remove = (name: string): string => `${name}@${server.world.remove(pod(name))?.metadata.resourceVersion}`;
const inStore = (): string[] =>
  reflector.store
    .list()
    .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)
    .sort();
const watching = (): Promise<void> => expect.poll(() => [reflector.state, server.openWatches]).toEqual(["watching", 1]);
const listsOf = (limit: number): number =>
  server.requests.filter(({ kind, query }) => kind === "list" && query.get("limit") === String(limit)).length;
const listCount = (): number => listsOf(500);

async function started(): Promise<void> {
  reflector.start();
  await watching();
}

/** Passes the time of one backoff, however long it has become. */
async function backOff(): Promise<void> {
  await expect.poll(() => clock.pending).toBe(1);
  expect(reflector.state).toBe("backing-off");
  await clock.fireNext();
}

/** Passes as many backoffs as it takes. */
async function untilWatching(): Promise<void> {
  await expect
    .poll(async () => {
      if (reflector.state === "backing-off") await clock.fireNext();
      return [reflector.state, server.openWatches];
    })
    .toEqual(["watching", 1]);
}

describe("the first list", () => {
  test("fills the store before any event is delivered, then starts the watch", async () => {
    const [a, b] = [put("a"), put("b")];
    const sizes: number[] = [];
    reflector = reflect({ onEvent: () => sizes.push(reflector.store.size) });
    expect([reflector.state, reflector.store.synced]).toEqual(["idle", false]);
    reflector.start();
    await reflector.whenSynced();
    expect(reflector.store.synced).toBe(true);
    expect(sizes).toEqual([2, 2]);
    expect(inStore()).toEqual([a, b]);
    await watching();
    expect(states).toEqual(["listing", "watching"]);
  });

  test("yields to timers and sockets while it delivers many events", async () => {
    const all = Array.from({ length: 20 }, (_, index) => put(`pod-${index}`));
    const toldBefore: number[] = [];
    let told = 0;
    let looking = true;
    const look = (): void => {
      if (told > 0 && !reflector.store.synced) toldBefore.push(told);
      if (looking) setTimeout(look, 0);
    };
    reflector = reflect({
      onEvent: () => {
        told += 1;
        const until = performance.now() + 5;
        while (performance.now() < until);
      },
    });
    look();
    reflector.start();
    await reflector.whenSynced();
    looking = false;
    expect(told).toBe(20);
    expect(inStore()).toEqual(all.sort());
    expect(new Set(toldBefore).size).toBeGreaterThan(3);
    await watching();
  });

  test("stops in the middle of its events", async () => {
    for (let index = 0; index < 20; index += 1) put(`pod-${index}`);
    let told = 0;
    reflector = reflect({
      onEvent: () => {
        told += 1;
        const until = performance.now() + 5;
        while (performance.now() < until);
      },
    });
    reflector.start();
    await expect.poll(() => told, { interval: 1 }).toBeGreaterThan(0);
    await reflector.stop();
    const toldThen = told;
    expect(toldThen).toBeLessThan(20);
    expect(reflector.store.synced).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(told).toBe(toldThen);
  });

  test("is read in pages and as a consistent read", async () => {
    for (let index = 0; index < 1_201; index += 1) put(`p${index}`);
    await started();
    const lists = server.requests.filter(({ kind }) => kind === "list");
    expect(lists.map(({ query }) => query.get("limit"))).toEqual(["500", "500", "500"]);
    expect(lists.map(({ query }) => query.has("resourceVersion"))).toEqual([false, false, false]);
    expect(reflector.store.size).toBe(1_201);
    expect(events).toHaveLength(1_201);
  });

  test("adds the kind that list items lack", async () => {
    put("a");
    await started();
    expect(reflector.store.list()[0]).toMatchObject({ apiVersion: "v1", kind: "Pod" });
  });

  test("drops managedFields and nothing else", async () => {
    const extra = { "x-unknown": { deep: [1, null] } };
    put("a", { ...extra, metadata: { managedFields: [{ manager: "kubectl" }], labels: { a: "b" } } });
    await started();
    put("b", { ...extra, metadata: { managedFields: [{ manager: "kubectl" }] } });
    await expect.poll(() => reflector.store.size).toBe(2);
    for (const object of reflector.store.list()) {
      expect(object).toMatchObject(extra);
      expect(object.metadata).not.toHaveProperty("managedFields");
    }
  });

  test("is retried with backoff after a failure", async () => {
    server.faults.push(refuse(500, "InternalError"), refuse(503, "ServiceUnavailable"));
    put("a");
    reflector.start();
    await backOff();
    await backOff();
    await watching();
    expect(states).toEqual(["listing", "backing-off", "listing", "backing-off", "listing", "watching"]);
  });

  test("is read without paging after its continue token expired", async () => {
    for (let index = 0; index < 700; index += 1) put(`p${index}`);
    server.always = (request) => {
      if (request.query.has("continue")) server.expireContinueTokens();
      return false;
    };
    reflector.start();
    await backOff();
    await watching();
    expect(server.requests.filter(({ kind }) => kind === "list").map(({ query }) => query.get("limit"))).toEqual([
      "500",
      "500",
      null,
    ]);
    expect(reflector.store.size).toBe(700);
  });
});

describe("while watching", () => {
  test("passes every change to the store and then to the handler", async () => {
    await started();
    const steps = [put("a"), put("a"), put("b"), remove("a")];
    await expect.poll(() => events).toHaveLength(4);
    expect(events).toEqual([
      `added ${steps[0]}`,
      `updated ${steps[1]} from ${steps[0]?.split("@")[1]}`,
      `added ${steps[2]}`,
      `deleted ${steps[3]}`,
    ]);
    expect(inStore()).toEqual([steps[2]]);
  });

  test("reports a deletion with the last state that the server sent", async () => {
    let last: Stored<Pod> | undefined;
    reflector = reflect({ onEvent: ({ type, object }) => (last = type === "deleted" ? object : last) });
    put("a");
    await started();
    const object = server.world.put(pod("a", { status: { phase: "Running" } }));
    server.writeToWatches(line("DELETED", { ...object, status: { phase: "Succeeded" } }));
    await expect.poll(() => last?.status?.phase).toBe("Succeeded");
  });

  test("reports another uid under the same name as a deletion and an addition", async () => {
    const before = put("a");
    await started();
    server.writeToWatches(line("MODIFIED", pod("a", { metadata: { uid: "other", resourceVersion: "99" } })));
    await expect.poll(() => events).toEqual([`added ${before}`, `deleted ${before}`, "added a@99"]);
  });

  test("does not report a known version again", async () => {
    const object = server.world.put(pod("a"));
    await started();
    server.writeToWatches(line("ADDED", object) + line("MODIFIED", object));
    put("b");
    await expect.poll(() => events).toHaveLength(2);
  });

  test("survives a handler that throws", async () => {
    const seen: string[] = [];
    reflector = reflect({
      onEvent: (event) => {
        seen.push(shortForm(event));
        throw new Error("a defect");
      },
      onState: () => {
        throw new Error("another");
      },
    });
    const [a] = [put("a")];
    await started();
    const b = put("b");
    await expect.poll(() => seen).toEqual([`added ${a}`, `added ${b}`]);
  });

  test("starts the next watch at the last bookmark", async () => {
    await started();
    // Changes of objects that our selector does not match: only a bookmark tells of their versions.
    server.writeToWatches(line("BOOKMARK", { metadata: { resourceVersion: "50" } }));
    await clock.advance(20_000);
    server.endWatches();
    await expect.poll(() => server.requests.at(-1)?.query.get("resourceVersion")).toBe("50");
    expect(listCount()).toBe(1);
  });

  test("stays healthy with only bookmarks for hours", async () => {
    await started();
    for (let hour = 0; hour < 5; hour += 1) {
      await clock.advance(3_600_000);
      server.bookmark();
      await expect.poll(() => reflector.lastContactMs).toBe(clock.now());
    }
    expect(states).toEqual(["listing", "watching"]);
  });
});

describe("a reflector whose watch ends", () => {
  test("starts the next one where it ended, without delay or list, after a healthy while", async () => {
    await started();
    const a = put("a");
    await expect.poll(() => events).toEqual([`added ${a}`]);
    await clock.advance(20_000);
    server.endWatches();
    await expect.poll(() => server.requests.filter(({ kind }) => kind === "watch")).toHaveLength(2);
    const b = put("b");
    await expect.poll(() => events).toEqual([`added ${a}`, `added ${b}`]);
    expect(states).toEqual(["listing", "watching"]);
    expect(listCount()).toBe(1);
  });

  test("backs off longer each time when it ends at once", async () => {
    server.always = (request, response) => (request.kind === "watch" ? stream("", "end")(request, response) : false);
    reflector.start();
    const pauses: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      const from = clock.now();
      await backOff();
      pauses.push(clock.now() - from);
    }
    expect(pauses[0]).toBeLessThanOrEqual(200);
    expect(pauses.slice(-2).every((pause) => pause >= 5_000 && pause <= 10_000)).toBe(true);
    expect(listCount()).toBe(1);
  });

  test("loses nothing of an event in whose middle it ends", async () => {
    const object = server.world.put(pod("a"));
    server.faults.push(only("watch", stream(line("ADDED", { ...object, x: "y".repeat(100) }).slice(0, 60), "cut")));
    reflector.start();
    await backOff();
    const b = put("b");
    await expect.poll(inStore).toEqual([`a@${object.metadata.resourceVersion}`, b]);
    expect(listCount()).toBe(1);
  });

  test("lists again after a 410 in its middle, and finds what it missed", async () => {
    const [a, b] = [put("a"), put("b")];
    server.faults.push(
      only("watch", (request, response) => {
        remove("a");
        put("c");
        server.world.compact();
        const expired = { kind: "Status", code: 410, reason: "Expired", message: "too old" };
        return stream(line("ERROR", expired), "end")(request, response);
      }),
    );
    reflector.start();
    await backOff();
    await watching();
    expect(events).toEqual([`added ${a}`, `added ${b}`, `deleted ${a}`, "added c@5"]);
    expect(listCount()).toBe(2);
  });

  test("lists again at once after a 410 that follows a healthy while", async () => {
    await started();
    await clock.advance(20_000);
    server.writeToWatches(line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" }));
    await expect.poll(listCount).toBe(2);
  });

  test("resumes where it was after an outage", async () => {
    const a = put("a");
    await started();
    await server.stop();
    for (let attempt = 0; attempt < 4; attempt += 1) await backOff();
    const b = put("b");
    await server.listen();
    await untilWatching();
    await expect.poll(() => events).toEqual([`added ${a}`, `added ${b}`]);
    expect(listCount()).toBe(1);
    // The reflector has asked once whether the server went back.
    expect(listsOf(1)).toBe(1);
  });

  test("drops objects that the server lost when it was restored from a backup", async () => {
    const a = put("a");
    await started();
    const restore = server.world.backUp();
    const [b, changed] = [put("b"), put("a", { metadata: { labels: { of: "the future" } } })];
    await expect.poll(() => events).toEqual([`added ${a}`, `added ${b}`, `updated ${changed} from ${a.split("@")[1]}`]);
    await server.stop();
    await backOff();
    restore();
    await server.listen();
    await untilWatching();
    expect(inStore()).toEqual([a]);
    expect(events.slice(3)).toEqual([`deleted ${b}`, `updated ${a} from ${changed.split("@")[1]}`]);
    const c = put("c");
    await expect.poll(inStore).toEqual([a, c]);
  });

  describe("for longer than a minute", () => {
    /** The server is set back, and then does more than it had done before. */
    async function overtaken(awayMs: number, lost: () => Promise<void> = async () => {}): Promise<string> {
      const a = put("a");
      await started();
      const restore = server.world.backUp();
      put("ghost");
      await expect.poll(() => events).toHaveLength(2);
      await lost();
      await server.stop();
      await expect.poll(() => reflector.state).toBe("backing-off");
      restore();
      for (let count = 0; count < 5; count += 1) put("b");
      await clock.advance(awayMs);
      await server.listen();
      await untilWatching();
      return a;
    }

    test("lists once, because a restored server may have passed the old version", async () => {
      const a = await overtaken(61_000);
      expect(inStore()).toEqual([a, "b@7"]);
      expect(listCount()).toBe(2);
      await server.stop();
      await backOff();
      await server.listen();
      await untilWatching();
      expect(listCount()).toBe(2);
    });

    test("does not list again after each further failure", async () => {
      for (let count = 0; count < 3; count += 1) {
        server.faults.push((request, response) => {
          const isResumed = listCount() > 1;
          return isResumed && only("watch", refuse(429, "TooManyRequests"))(request, response);
        });
      }
      await overtaken(61_000);
      expect(server.faults).toEqual([]);
      expect(listCount()).toBe(2);
    });

    test("also lists after a connection that vanished silently", async () => {
      const a = await overtaken(1_000, async () => {
        server.bookmark();
        // An event that comes after it: it has been read.
        put("c");
        await expect.poll(() => events).toHaveLength(3);
        await clock.advance(150_000);
      });
      expect(inStore()).toEqual([a, "b@7"]);
    });

    test("does not mistake the silence of a server without bookmarks for an outage", async () => {
      await overtaken(1_000, () => clock.advance(150_000));
      expect(listCount()).toBe(1);
    });
  });

  test("ends its backoff when retry is called", async () => {
    await started();
    await server.stop();
    await expect.poll(() => reflector.state).toBe("backing-off");
    await server.listen();
    reflector.retry();
    await watching();
    expect(clock.now()).toBe(Date.UTC(2024, 0, 1));
  });

  test("lists again after an unreadable event", async () => {
    server.faults.push(only("watch", stream("{nonsense}\n", "end")));
    reflector.start();
    await backOff();
    await watching();
    expect(listCount()).toBe(2);
  });

  test("lists again when the server refuses its version three times", async () => {
    put("a");
    for (let count = 0; count < 3; count += 1) server.faults.push(only("watch", refuse(504, "Timeout")));
    reflector.start();
    for (let count = 0; count < 3; count += 1) await backOff();
    await watching();
    expect(listCount()).toBe(2);
  });

  test("waits as long as Retry-After says", async () => {
    server.faults.push(only("watch", refuse(429, "TooManyRequests", { "retry-after": "60" })));
    reflector.start();
    await expect.poll(() => reflector.state).toBe("backing-off");
    await clock.advance(59_000);
    expect(server.openWatches).toBe(0);
    await clock.advance(2_000);
    await watching();
  });

  test.each([
    ["never answers", silence],
    ["cuts the connection", cut],
  ])("tries again when the server %s", async (_case, fault) => {
    server.faults.push(only("watch", fault));
    reflector.start();
    await backOff();
    const a = put("a");
    await expect.poll(() => events).toEqual([`added ${a}`]);
    expect(listCount()).toBe(1);
  });
});

describe("a relist", () => {
  /** Lets the reflector miss everything that `changes` does. */
  async function missing(changes: () => void): Promise<void> {
    await started();
    events.length = 0;
    await server.stop();
    changes();
    server.world.compact();
    await expect.poll(() => reflector.state).toBe("backing-off");
    await server.listen();
    await untilWatching();
  }

  test("finds deletions, replacements under the same name, changes and additions, deletions first", async () => {
    const [a, b, c, d] = [put("a"), put("b"), put("c"), put("d")];
    let [b2, c2, e]: (string | undefined)[] = [];
    await missing(() => {
      remove("a");
      remove("b");
      b2 = put("b");
      c2 = put("c");
      e = put("e");
    });
    expect(events).toEqual([
      `deleted ${a}`,
      `deleted ${b}`,
      `added ${b2}`,
      `updated ${c2} from ${c?.split("@")[1]}`,
      `added ${e}`,
    ]);
    expect(inStore()).toEqual([b2, c2, d, e]);
  });

  test("keeps the objects that did not change", async () => {
    put("a");
    await started();
    const before = reflector.store.get(objectKey({ namespace: "default", name: "a" }));
    await server.stop();
    put("b");
    server.world.compact();
    await expect.poll(() => reflector.state).toBe("backing-off");
    await server.listen();
    await untilWatching();
    expect(reflector.store.get(objectKey({ namespace: "default", name: "a" }))).toBe(before);
  });
});

describe("stop", () => {
  test("ends the watch, and delivers no further event", async () => {
    await started();
    await reflector.stop();
    put("a");
    await expect.poll(() => server.openWatches).toBe(0);
    expect([events, reflector.state]).toEqual([[], "stopped"]);
  });

  test("ends a backoff", async () => {
    server.always = refuse(500, "InternalError");
    reflector.start();
    await expect.poll(() => reflector.state).toBe("backing-off");
    await reflector.stop();
    expect(reflector.state).toBe("stopped");
  });

  test("is harmless before the start", async () => {
    await reflector.stop();
    reflector.start();
    expect(reflector.state).toBe("stopped");
    expect(server.requests).toEqual([]);
  });
});

test("rejects whenSynced with the reason of its signal", async () => {
  const abort = new AbortController();
  const waiting = reflector.whenSynced(abort.signal);
  abort.abort(new Error("no longer wanted"));
  await expect(waiting).rejects.toThrow("no longer wanted");
});

test("requests smaller pages after a response beyond the size limit", async () => {
  for (let index = 0; index < 20; index += 1) put(`pod-${index}`);
  const limits: (number | undefined)[] = [];
  const real = client;
  const list: ClusterClient["list"] = (resource, options = {}) => {
    const { limit = 0 } = options;
    limits.push(limit);
    if (limit <= 40) return real.list(resource, options);
    const cause = new ResponseTooLarge(7);
    return Promise.reject(kubeError("AnswerLost", cause.message, { verb: "list", cause }));
  };
  await reflector.stop();
  reflector = reflect({
    client: new Proxy(real, { get: (of, key) => (key === "list" ? list : Reflect.get(of, key, of)) }),
  });
  reflector.start();
  await expect
    .poll(async () => {
      await clock.advance(10_000);
      return inStore().length;
    })
    .toBe(20);
  expect(limits.slice(0, 5)).toEqual([500, 250, 125, 62, 31]);
});

test("charges objects by their size after `transform`", async () => {
  const large = (name: string): string => put(name, { metadata: { name, annotations: { note: "x".repeat(10_000) } } });
  const options: Partial<ReflectorOptions<Pod>> = {
    transform: ({ metadata: { annotations: _, ...metadata }, ...rest }) => ({ ...rest, metadata }),
    sizeOf: (object) => JSON.stringify(object).length,
  };
  const budget = new ByteBudget(2_000);
  await reflector.stop();
  reflector = reflect({ ...options, budget });
  large("a");
  reflector.start();
  await expect.poll(inStore).toHaveLength(1);
  large("b");
  await expect.poll(inStore).toHaveLength(2);
  expect(reflector.failing).toBeUndefined();
});

test("reports a new reason of a watch that keeps failing", async () => {
  const reasons: (string | undefined)[] = [];
  const real = client;
  const failures = ["reset", "reset", "pods is forbidden", "pods is forbidden"];
  const watch: ClusterClient["watch"] = () => {
    throw kubeError("NotSent", failures.shift() ?? "too often", { verb: "watch" });
  };
  await reflector.stop();
  reflector = reflect({
    client: { ...real, cluster: real.cluster, list: real.list.bind(real), watch } as ClusterClient,
    onState: (state) => state === "backing-off" && reasons.push(reflector.failing?.reason),
  });
  reflector.start();
  await expect
    .poll(async () => {
      await clock.advance(10_000);
      return failures.length;
    })
    .toBe(0);
  expect(reasons.slice(0, 2)).toEqual(["reset", "pods is forbidden"]);
});
