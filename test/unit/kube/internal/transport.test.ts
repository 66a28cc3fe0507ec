import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { isLate, type KubeError } from "../../../../src/kube/errors.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";
import { nodes, pods } from "../../../../src/kube/resources.ts";
import { anonymous, connect, kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { answerJson, answerStatus, type Fault, FaultServer } from "../../../support/fault-server/fault-server.ts";
import { cut, refuse, silence } from "../../../support/fault-server/faults.ts";

const web: Pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "default", name: "web" } };
const ref = { namespace: "default", name: "web" };
// To connect and to send on a machine that is busy: what has not been sent by then ends otherwise.
const ENOUGH_TO_SEND_MS = 1_000;
let server: FaultServer;
let client: ClusterClient;
beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server);
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

describe("429", () => {
  test.each(["header", "details"])(
    "is repeated after the server's Retry-After in the %s, for writes too",
    async (place) => {
      server.faults.push((_request, response) => {
        const details = place === "details" ? { retryAfterSeconds: 1 } : {};
        const body = { kind: "Status", code: 429, reason: "TooManyRequests", message: "slow down", details };
        answerJson(response, 429, body, place === "header" ? { "retry-after": "1" } : {});
        return true;
      });
      const startedAt = performance.now();
      await client.create(pods, web);
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
      expect(server.requests).toHaveLength(2);
    },
  );

  test("is final without Retry-After, as for an eviction that a PodDisruptionBudget blocks", async () => {
    server.always = refuse(429, "TooManyRequests");
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("TooManyRequests");
    expect(server.requests).toHaveLength(1);
  });

  test("rejects when Retry-After is beyond the deadline", async () => {
    server.faults.push(refuse(429, "TooManyRequests", { "retry-after": "7" }));
    const error = await kubeErrorOf(client.create(pods, web, { timeoutMs: 2_000 }));
    expect(error).toMatchObject({ code: "TooManyRequests", retryAfterMs: 7_000 });
    expect(server.requests).toHaveLength(1);
  });

  test("frees its slot while it waits", async () => {
    const narrow = connect(server, { limits: { concurrency: 1 } });
    server.faults.push(refuse(429, "TooManyRequests", { "retry-after": "5" }));
    const waiting = narrow.create(pods, web).catch(() => undefined);
    await expect(narrow.list(pods, { timeoutMs: 2_000 })).resolves.toBeDefined();
    await narrow.close();
    await waiting;
  });
});

describe("403 of a starting server", () => {
  const starting = (message: string): Fault => {
    return (_request, response) => {
      answerStatus(response, 403, "Forbidden", message);
      return true;
    };
  };
  const noRight =
    'pods is forbidden: User "legation" cannot create resource "pods" in API group "" in the namespace "a"';

  test.each([noRight, 'pods "web" is forbidden: not yet ready to handle request'])(
    "is no verdict: %s",
    async (message) => {
      server.faults.push(starting(message), starting(message));
      await expect(client.create(pods, web)).resolves.toBeDefined();
      expect(server.requests).toHaveLength(3);
      server.faults.push(starting(message));
      await expect(client.get(pods, ref)).resolves.toBeDefined();
      expect(server.requests).toHaveLength(5);
    },
  );

  test("is final when it persists", async () => {
    server.always = starting(noRight);
    const startedAt = performance.now();
    expect(await kubeErrorOf(client.create(pods, web))).toMatchObject({ code: "Forbidden", detail: noRight });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_990);
    expect(server.requests).toHaveLength(4);
  });

  test("rejects at once for a list, and at the deadline", async () => {
    server.always = starting(noRight);
    expect((await kubeErrorOf(client.list(pods))).code).toBe("Forbidden");
    expect(server.requests).toHaveLength(1);
    expect((await kubeErrorOf(client.create(pods, web, { timeoutMs: 1_800 }))).code).toBe("Forbidden");
    // The third pause would be too long.
    expect(server.requests).toHaveLength(1 + 3);
  });
});

describe("sent and unsent requests", () => {
  test("reject with NotSent when the connection is refused: a write at once, a read after two more tries", async () => {
    await server.stop();
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("NotSent");
    const startedAt = performance.now();
    expect((await kubeErrorOf(client.get(pods, ref))).code).toBe("NotSent");
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(290);
    await server.listen();
  });

  test("repeat a read across a short restart", async () => {
    server.world.put(web);
    await client.get(pods, ref);
    await server.stop();
    const reading = client.get(pods, ref);
    await server.listen();
    expect((await reading).metadata.name).toBe("web");
  });

  test("reject a write with AnswerLost when it is cut before the response, and do not repeat it", async () => {
    server.faults.push(cut);
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("AnswerLost");
    expect(server.requests).toHaveLength(1);
  });

  test("reject a write with AnswerLost when a keep-alive connection is cut", async () => {
    await client.list(pods);
    server.faults.push(cut);
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("AnswerLost");
    expect(server.requests).toHaveLength(2);
  });

  test("reject a write with AnswerLost when it is cut inside the response", async () => {
    server.faults.push((_request, response) => {
      response.writeHead(201, { "content-length": "1000" });
      response.write('{"kind":', () => response.socket?.destroy());
      return true;
    });
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("AnswerLost");
  });

  test("repeat a read whose connection was cut", async () => {
    server.world.put(web);
    server.faults.push(cut);
    expect((await client.get(pods, ref)).metadata.name).toBe("web");
    expect(server.requests).toHaveLength(2);
  });

  test("reject with AnswerLost when a server is silent until the deadline, and close the connection", async () => {
    server.faults.push(silence);
    const error = await kubeErrorOf(client.create(pods, web, { timeoutMs: ENOUGH_TO_SEND_MS }));
    expect(error).toMatchObject({ code: "AnswerLost", detail: `no answer within ${ENOUGH_TO_SEND_MS} ms` });
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test.each([
    ["whose bytes keep arriving takes longer than the deadline", 4, true],
    ["that stops in the middle is late", 1, false],
  ])("a list %s", async (_, pieces, isWhole) => {
    const text = JSON.stringify({ kind: "PodList", metadata: { resourceVersion: "1" }, items: [] });
    const size = Math.ceil(text.length / 4);
    server.faults.push((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      for (let piece = 0; piece < pieces; piece += 1) {
        const sent = (): void => void response.write(text.slice(piece * size, (piece + 1) * size));
        setTimeout(piece === 3 ? () => response.end(text.slice(3 * size)) : sent, piece * 0.6 * ENOUGH_TO_SEND_MS);
      }
      return true;
    });
    const listed = client.list(pods, { timeoutMs: ENOUGH_TO_SEND_MS });
    if (isWhole) return expect((await listed).items).toEqual([]);
    const error = await kubeErrorOf(listed);
    expect(error.detail).toBe(`no whole answer within ${ENOUGH_TO_SEND_MS} ms`);
    expect(isLate(error)).toBe(true);
  });

  test("reject with NotSent when a TLS handshake outlasts the connect timeout", async () => {
    const mute = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => mute.once("listening", resolve));
    const address = mute.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const credentials = anonymous(`https://127.0.0.1:${port}`);
    const tls = createClusterClient({ cluster: "west", credentials, limits: { connectTimeoutMs: 200 } });
    expect((await kubeErrorOf(tls.create(pods, web))).code).toBe("NotSent");
    await tls.close();
    mute.close();
  });

  test("reject with NotSent when no slot is free until the deadline; a silent server holds the limit at most", async () => {
    // A single namespace has three quarters of them.
    const narrow = connect(server, { limits: { concurrency: 4 } });
    server.always = silence;
    const create = (timeoutMs: number): Promise<KubeError> => kubeErrorOf(narrow.create(pods, web, { timeoutMs }));
    const [first, later] = [ENOUGH_TO_SEND_MS, ENOUGH_TO_SEND_MS / 4];
    const errors = await Promise.all([first, first, first, later, later, later, later].map(create));
    expect(server.requests).toHaveLength(3);
    expect(errors.map(({ code }) => code)).toEqual([...Array(3).fill("AnswerLost"), ...Array(4).fill("NotSent")]);
    await narrow.close();
  });

  test("work off a queue that is longer than the deadline", async () => {
    const narrow = connect(server, {
      limits: { concurrency: 1, timeoutMs: ENOUGH_TO_SEND_MS, queueTimeoutMs: 10_000 },
    });
    server.always = (_request, response) => {
      setTimeout(() => answerStatus(response, 404, "NotFound", "slowly"), 150);
      return true;
    };
    const errors = await Promise.all(Array.from({ length: 8 }, () => kubeErrorOf(narrow.get(pods, ref))));
    expect(errors.map(({ code }) => code)).toEqual(Array(8).fill("NotFound"));
    await narrow.close();
  });

  test("leave slots for others while those of one namespace hang", async () => {
    const narrow = connect(server, { limits: { concurrency: 8, timeoutMs: 60_000, queueTimeoutMs: 60_000 } });
    server.always = ({ path }, response) => {
      if (!path.includes("/namespaces/stuck/")) answerStatus(response, 404, "NotFound", "at once");
      return true;
    };
    const abort = new AbortController();
    const { signal } = abort;
    const stuck = Array.from({ length: 40 }, (_, nth) =>
      kubeErrorOf(narrow.get(pods, { namespace: "stuck", name: `web-${nth}` }, { signal })),
    );
    const others = ["a", "b", "c"].map((namespace) => kubeErrorOf(narrow.get(pods, { namespace, name: "web" })));
    const errors = await Promise.all([...others, kubeErrorOf(narrow.list(pods))]);
    expect(errors.map(({ code }) => code)).toEqual(Array(4).fill("NotFound"));
    expect(server.requests.filter(({ path }) => path.includes("/namespaces/stuck/"))).toHaveLength(6);
    abort.abort();
    await Promise.all(stuck);
    await narrow.close();
  });

  test("let a list of all namespaces overtake other requests without a namespace", async () => {
    const narrow = connect(server, { limits: { concurrency: 2 } });
    server.always = ({ path }, response) => {
      setTimeout(() => answerStatus(response, 404, "NotFound", path), 10);
      return true;
    };
    const others = Array.from({ length: 20 }, (_, nth) => kubeErrorOf(narrow.get(nodes, { name: `node-${nth}` })));
    await kubeErrorOf(narrow.list(pods));
    expect(server.requests.length).toBeLessThan(5);
    await Promise.all(others);
    await narrow.close();
  });

  test("reject after the longest wait in the queue", async () => {
    const narrow = connect(server, { limits: { concurrency: 1, timeoutMs: ENOUGH_TO_SEND_MS, queueTimeoutMs: 100 } });
    server.always = silence;
    const [first, second] = [kubeErrorOf(narrow.create(pods, web)), kubeErrorOf(narrow.create(pods, web))];
    expect((await second).message).toContain("no free slot within 100 ms");
    expect((await first).code).toBe("AnswerLost");
    await narrow.close();
  });

  test("leave the queue when their caller aborts, and the others keep their place", async () => {
    const narrow = connect(server, { limits: { concurrency: 1 } });
    server.faults.push(silence);
    const stuck = kubeErrorOf(narrow.create(pods, web, { timeoutMs: ENOUGH_TO_SEND_MS }));
    const abort = new AbortController();
    const abandoned = kubeErrorOf(narrow.create(pods, web, { signal: abort.signal }));
    const patient = narrow.create(pods, web);
    abort.abort();
    expect((await abandoned).code).toBe("Aborted");
    expect((await stuck).code).toBe("AnswerLost");
    await expect(patient).resolves.toMatchObject({ kind: "Pod" });
    expect(server.requests).toHaveLength(2);
    await narrow.close();
  });

  test("skip the queue when they are out of turn, and take no slot", async () => {
    const narrow = connect(server, { limits: { concurrency: 1, perSecond: 0.001, burst: 1 } });
    server.faults.push(silence);
    const stuck = kubeErrorOf(narrow.create(pods, web, { timeoutMs: ENOUGH_TO_SEND_MS }));
    const errors = await Promise.all([1, 2].map(() => kubeErrorOf(narrow.list(pods, { timeoutMs: 100 }))));
    expect(errors.map(({ code }) => code)).toEqual(["NotSent", "NotSent"]);
    for (let round = 0; round < 3; round += 1) {
      await expect(narrow.raw({ method: "GET", path: "/api/v1/pods", outOfTurn: true })).resolves.toBeDefined();
    }
    expect((await stuck).code).toBe("AnswerLost");
    await narrow.close();
  });

  test("free their slots after the deadlines of a silent server", async () => {
    const narrow = connect(server, { limits: { concurrency: 3 } });
    server.faults.push(silence, silence);
    // The third must have given up before the first two make room for it.
    const silent = ENOUGH_TO_SEND_MS;
    await Promise.all(
      [silent, silent, silent / 4].map((timeoutMs) => kubeErrorOf(narrow.create(pods, web, { timeoutMs }))),
    );
    await expect(narrow.create(pods, web)).resolves.toMatchObject({ kind: "Pod" });
    await narrow.close();
  });

  test("keep the request rate, and reject a wait beyond the deadline with NotSent", async () => {
    const slow = connect(server, { limits: { perSecond: 10, burst: 2 } });
    const startedAt = performance.now();
    await Promise.all([1, 2, 3].map(() => slow.list(pods)));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(90);
    await slow.close();
    const slower = connect(server, { limits: { perSecond: 0.1, burst: 1 } });
    await slower.list(pods);
    expect((await kubeErrorOf(slower.create(pods, web, { timeoutMs: 20 }))).code).toBe("NotSent");
    await slower.close();
  });

  test("are not sent by a closed client", async () => {
    await client.close();
    expect((await kubeErrorOf(client.create(pods, web))).code).toBe("NotSent");
    expect(server.requests).toHaveLength(0);
  });
});

describe("the caller's signal", () => {
  test("aborts before the request, and nothing is sent", async () => {
    expect((await kubeErrorOf(client.create(pods, web, { signal: AbortSignal.abort() }))).code).toBe("Aborted");
    expect(server.requests).toHaveLength(0);
  });

  test.each([
    ["a read", "Aborted"],
    ["a write", "AnswerLost"],
  ])("during %s is %s", async (kind, code) => {
    const controller = new AbortController();
    server.always = () => {
      controller.abort();
      return true;
    };
    const options = { signal: controller.signal };
    const sent: Promise<unknown> =
      kind === "a read" ? client.get(pods, ref, options) : client.create(pods, web, options);
    expect((await kubeErrorOf(sent)).code).toBe(code);
  });

  test("aborts while waiting for Retry-After", async () => {
    const controller = new AbortController();
    server.faults.push((_request, response) => {
      answerStatus(response, 429, "TooManyRequests", "slow down", { "retry-after": "5" });
      setTimeout(() => controller.abort(), 20);
      return true;
    });
    expect((await kubeErrorOf(client.create(pods, web, { signal: controller.signal }))).code).toBe("Aborted");
  });
});

describe("the end of the leader's lease", () => {
  test("rejects later writes, and lets reads pass", async () => {
    const leader = connect(server, { leaseLeftMs: () => -1 });
    expect((await kubeErrorOf(leader.create(pods, web))).code).toBe("NotSent");
    expect((await kubeErrorOf(leader.delete(pods, ref))).code).toBe("NotSent");
    await expect(leader.list(pods)).resolves.toMatchObject({ items: [] });
    expect(server.requests.map(({ method }) => method)).toEqual(["GET"]);
    await leader.close();
  });

  test("cuts a write in flight", async () => {
    const end = Date.now() + ENOUGH_TO_SEND_MS;
    const leader = connect(server, { leaseLeftMs: () => end - Date.now() });
    server.faults.push(silence);
    expect((await kubeErrorOf(leader.create(pods, web))).code).toBe("AnswerLost");
    // The default would wait for half a minute.
    expect(Date.now() - end).toBeLessThan(5_000);
    await leader.close();
  });

  test("is checked again just before the first byte", async () => {
    let calls = 0;
    // The first answer lets the request begin; by the time a connection is there, the lease is lost.
    const leader = connect(server, { leaseLeftMs: () => (calls++ === 0 ? 10_000 : 0) });
    expect((await kubeErrorOf(leader.create(pods, web))).code).toBe("NotSent");
    expect(server.requests).toHaveLength(0);
    await leader.close();
  });
});

describe("requests to two clusters", () => {
  test("do not slow each other when one cluster is silent", async () => {
    const frozen = await FaultServer.start();
    frozen.always = silence;
    const stuck = connect(frozen);
    const abort = new AbortController();
    const options = { timeoutMs: 60_000, signal: abort.signal };
    const errors = Array.from({ length: 200 }, () => kubeErrorOf(stuck.create(pods, web, options)));
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 100 }, () => client.list(pods)));
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    abort.abort();
    await Promise.all(errors);
    await stuck.close();
    await frozen.stop();
  });
});
