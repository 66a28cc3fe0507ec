import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { exchange, Rig, requestOf, WEST } from "./rig.ts";

const CLOSE = "Connection: close";
let rig: Rig;
beforeEach(async () => {
  rig = await Rig.start();
});
afterEach(() => rig.close());

/** Waits until a number has not grown for a while. */
async function expectStill(read: () => number): Promise<void> {
  let before = -1;
  while (before !== read()) {
    before = read();
    await sleep(300);
  }
}

describe("who is believed", () => {
  test("keeps the connections of a serving certificate that was replaced by one beside the same authority", async () => {
    const [busy, idle] = [await rig.connect(), await rig.connect()];
    const answering = Promise.withResolvers<ServerResponse>();
    rig.member.onRequest = (_request, response) => answering.resolve(response);
    busy.write(requestOf(`${WEST}/api`));
    const response = await answering.promise;
    const made = await rig.authority.issue({ commonName: "access", usage: "serverAuth", addresses: ["127.0.0.1"] });
    const certificate = { cert: made.certificate, key: made.key };
    rig.server.renew({ certificate, clientAuthority: rig.authority.pem });
    response.end("first");
    await once(busy, "data");
    rig.member.onRequest = (request, later) => request.resume().once("end", () => later.end("later"));
    const create = `${requestOf(`${WEST}/api`, ["Content-Length: 2", CLOSE], "POST")}{}`;
    for (const socket of [busy, idle]) expect(await exchange(socket, create)).toMatch(/HTTP\/1\.1 200 [\s\S]*later$/);
    expect((await rig.connect()).getPeerX509Certificate()?.serialNumber).toBe(
      new X509Certificate(made.certificate).serialNumber,
    );
  });
});

describe("what a member is asked", () => {
  test("is not more than one request for one, if its length is told in two ways", async () => {
    const lines = ["Content-Length: 4", "Transfer-Encoding: chunked"];
    const smuggled = `0\r\n\r\n${requestOf(`${WEST}/smuggled`)}`;
    const answer = await exchange(await rig.connect(), requestOf(`${WEST}/api`, lines, "POST") + smuggled);
    expect(answer).toMatch(/^HTTP\/1\.1 400/);
    expect(rig.member.requests).toEqual([]);
  });
});

describe("a refused request", () => {
  test("has the status 503 where the member refuses Legation, since the user's own credentials are good", async () => {
    rig.member.onRequest = (_request, response) => void response.writeHead(401).end("Unauthorized");
    const answer = await exchange(await rig.connect(), requestOf(`${WEST}/version`, [CLOSE]));
    expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*legation join west --access/);
  });

  test("has the status 503 where the member cannot be reached", async () => {
    rig.member.server.closeAllConnections();
    rig.member.server.close();
    const answer = await exchange(await rig.connect(), requestOf(`${WEST}/version`, [CLOSE]));
    expect(answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*Cluster west cannot be reached/);
  });

  test.each([
    ["with a body", ["Connection: Upgrade", "Upgrade: websocket", "Content-Length: 5"], "hello"],
    ["to another protocol than streams have", ["Connection: Upgrade", "Upgrade: h2c"], ""],
  ])("is an upgrade %s", async (_, lines, body) => {
    expect(await rig.statusOf(`${requestOf(`${WEST}/api`, lines, "POST")}${body}`)).toBe(400);
    expect(rig.member.requests).toEqual([]);
  });
});

describe("bytes", () => {
  const CHUNK = Buffer.alloc(256 * 1024, "x");

  test("of a body wait at the client while the member does not read", async () => {
    let arrived: IncomingMessage | undefined;
    rig.member.onRequest = (request) => {
      arrived = request;
    };
    const socket = await rig.connect();
    socket.write(requestOf(`${WEST}/api`, ["Transfer-Encoding: chunked"], "POST"));
    let sent = 0;
    const pump = (): void => {
      while (!socket.destroyed) {
        sent += CHUNK.length;
        const more = socket.write(
          Buffer.concat([Buffer.from(`${CHUNK.length.toString(16)}\r\n`), CHUNK, Buffer.from("\r\n")]),
        );
        if (!more) {
          socket.once("drain", pump);
          return;
        }
      }
    };
    pump();
    await expectStill(() => sent);
    // Buffers of the kernel for two connections, and little of this process.
    expect(sent).toBeLessThan(32 * 2 ** 20);
    expect(arrived?.headers["impersonate-user"]).toBe("legation:alice");
    socket.destroy();
  });

  test("of a response wait at the member while the client does not read, and come in full later", async () => {
    let sent = 0;
    const all = 64 * 2 ** 20;
    rig.member.onRequest = (_request, response) => {
      const pump = (): void => {
        while (sent < all) {
          sent += CHUNK.length;
          if (!response.write(CHUNK)) {
            response.once("drain", pump);
            return;
          }
        }
        response.end();
      };
      pump();
    };
    const socket = await rig.connect();
    socket.pause();
    socket.write(requestOf(`${WEST}/api`, [CLOSE]));
    await expectStill(() => sent);
    expect(sent).toBeLessThan(32 * 2 ** 20);
    let received = 0;
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    socket.resume();
    await once(socket, "close");
    expect(received).toBeGreaterThanOrEqual(all);
  });

  test("of a response that the member cuts end with a cut for the client, not with an end", async () => {
    rig.member.onRequest = (_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half", () => response.destroy());
    };
    const answer = await exchange(await rig.connect(), requestOf(`${WEST}/api`));
    const [head, body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(/content-length: 100/i);
    expect("half".startsWith(body)).toBe(true);
  });

  test("of an upgraded connection pass both ways as they are, those behind the request first", async () => {
    rig.member.onUpgrade = (_request, socket, head) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello");
      let heard = head.toString("latin1");
      socket.on("data", (chunk: Buffer) => {
        heard += chunk.toString("latin1");
        if (heard.endsWith("end")) socket.end(`heard ${heard}`);
      });
    };
    const lines = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
    const socket = await rig.connect();
    const answer = await exchange(
      socket,
      `${requestOf(`${WEST}/api/v1/namespaces/a/pods/b/exec`, lines, "POST")}first end`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 101 [\s\S]*hello[\s\S]*heard first end$/);
    expect(rig.member.requests[0]?.headers["impersonate-user"]).toBe("legation:alice");
  });

  test("end at the member when the client goes", async () => {
    const ended = Promise.withResolvers<void>();
    rig.member.onRequest = (_request, response) => {
      response.flushHeaders();
      response.once("close", () => ended.resolve());
    };
    const socket = await rig.connect();
    socket.write(requestOf(`${WEST}/api/v1/pods?watch=true`));
    await once(socket, "data");
    socket.destroy();
    await ended.promise;
  });

  test("of an upgrade that the member does not answer end there when the client ends its side", async () => {
    const asked = Promise.withResolvers<Duplex>();
    rig.member.onUpgrade = (_request, socket) => asked.resolve(socket);
    const socket = await rig.connect();
    const lines = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
    socket.write(requestOf(`${WEST}/api/v1/namespaces/a/pods/b/exec`, lines, "POST"));
    const member = await asked.promise;
    member.resume();
    socket.end();
    await once(member, "end");
    await once(socket, "close");
  });
});

describe("the redirect of a proxy's path to the same with a slash", () => {
  const PROXY = "/api/v1/namespaces/team/pods/web:8080/proxy";
  const answer = async (method: string, query: string): Promise<string> =>
    await exchange(await rig.connect(), requestOf(`${WEST}${PROXY}${query}`, [CLOSE], method));
  const asked = (): unknown[] => rig.member.requests.map(({ url, headers }) => [url, headers["impersonate-user"]]);

  test.each(["", "?a=b", "?a=b?c=d"])("is followed for the user, with the query %j", async (query) => {
    rig.member.onRequest = ({ url = "" }, response) => {
      if (url === `${PROXY}/${query}`) response.end("from the pod");
      else response.writeHead(301, { location: `${PROXY}/${query}` }).end();
    };
    expect(await answer("GET", query)).toMatch(/^HTTP\/1\.1 200 [\s\S]*from the pod/);
    const user = "legation:alice";
    expect(asked()).toEqual([
      [`${PROXY}${query}`, user],
      [`${PROXY}/${query}`, user],
    ]);
  });

  test("is followed once, and for reads only", async () => {
    rig.member.onRequest = ({ url = "" }, response) => response.writeHead(301, { location: `${url}/` }).end();
    expect(await answer("GET", "")).toMatch(/^HTTP\/1\.1 503 [\s\S]*answered with a redirect/);
    expect(rig.member.requests).toHaveLength(2);
    expect(await answer("DELETE", "")).toMatch(/^HTTP\/1\.1 503 [\s\S]*answered with a redirect/);
    expect(rig.member.requests).toHaveLength(3);
  });

  test("is not followed with a body, which can be sent only once", async () => {
    rig.member.onRequest = ({ url = "" }, response) => {
      if (url.endsWith("/")) response.end("from the pod");
      else response.writeHead(301, { location: `${url}/` }).end();
    };
    const request = `${requestOf(`${WEST}${PROXY}`, [CLOSE, "Content-Length: 4"], "GET")}body`;
    expect(await exchange(await rig.connect(), request)).toMatch(/^HTTP\/1\.1 503 [\s\S]*answered with a redirect/);
    expect(rig.member.requests).toHaveLength(1);
  });

  const planted = requestOf(`${WEST}/api/v1/planted`, [CLOSE]);
  test.each([
    ["whole", `Content-Length: ${planted.length}`, planted],
    ["in part", `Content-Length: ${planted.length + 1_000}`, planted],
    ["in chunks", "Transfer-Encoding: chunked", `${planted.length.toString(16)}\r\n${planted}\r\n0\r\n\r\n`],
    ["in chunks without an end", "Transfer-Encoding: chunked", `fff\r\n${planted}`],
  ])("lets no body that was sent %s become a request", async (_, framing, body) => {
    rig.member.onRequest = ({ url = "" }, response) => response.writeHead(301, { location: `${url}/` }).end();
    const socket = await rig.connect();
    let answers = "";
    socket.on("data", (chunk) => {
      answers += String(chunk);
    });
    const closed = once(socket, "close");
    socket.write(`${requestOf(`${WEST}${PROXY}`, [framing], "GET")}${body}`);
    await vi.waitUntil(() => answers.includes("answered with a redirect"), { timeout: 10_000 });
    // The next request is answered as itself, or the connection was closed before.
    if (/connection: close/i.test(answers)) await closed;
    else {
      socket.write(requestOf(`${WEST}/api/v1/honest`, [CLOSE]));
      await closed;
    }
    expect(answers.match(/^HTTP\/1\.1 /gm)?.length).toBeLessThanOrEqual(2);
    expect(rig.member.requests.map(({ url }) => url)).not.toContain("/api/v1/planted");
  });
});

describe("the Audit-ID of a response", () => {
  const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket"];
  const answer = async (lines: readonly string[]): Promise<string> =>
    await exchange(await rig.connect(), requestOf(`${WEST}/api/v1/pods`, lines));

  test("is left to the host's API server, which adds the headers of a response to its own", async () => {
    rig.member.onRequest = (_request, response) => response.writeHead(200, { "Audit-Id": "a1", "X-Kept": "yes" }).end();
    const answered = await answer([CLOSE]);
    expect(answered).toContain("X-Kept: yes\r\n");
    expect(answered).not.toMatch(/audit-id/i);
  });

  test.each([["101 Switching Protocols"], ["403 Forbidden"]])(
    "stays with the %s of an upgrade, which the host's API server passes on as it is",
    async (status) => {
      const lines = [`HTTP/1.1 ${status}`, ...(status.startsWith("101") ? UPGRADE : ["Content-Length: 0"])];
      rig.member.onUpgrade = (_request, socket) => socket.end([...lines, "Audit-Id: a1", "", ""].join("\r\n"));
      const answered = await answer(UPGRADE);
      expect(answered.slice(0, 13)).toBe(`HTTP/1.1 ${status.slice(0, 3)} `);
      expect(answered).toMatch(/audit-id: a1\r\n/i);
    },
  );
});

test("refuses a request of a user who has too many in flight, and of all users when they have, until one ends", async () => {
  rig.member.onRequest = (_request, response) => response.flushHeaders();
  const watch = async (user: string): Promise<TLSSocket> => {
    const socket = await rig.connect();
    socket.write(requestOf(`${WEST}/api/v1/pods?watch=true`, [], "GET", user));
    await once(socket, "data");
    return socket;
  };
  const asked = (user: string): Promise<string> =>
    rig.connect().then((socket) => exchange(socket, requestOf(`${WEST}/version`, [CLOSE], "GET", user)));
  const [first] = [await watch("alice"), await watch("alice"), await watch("alice")];
  expect(await asked("alice")).toMatch(/^HTTP\/1\.1 429 [\s\S]*retry-after: 1/i);
  await watch("bob");
  expect(await asked("carol")).toMatch(/^HTTP\/1\.1 429 /);
  first?.destroy();
  rig.member.onRequest = (_request, response) => void response.end("{}");
  for (let answer = ""; !answer.startsWith("HTTP/1.1 200"); ) answer = await asked("carol");
});

test("counts a request before the host has said whether its user may", async () => {
  const deciding = Promise.withResolvers<void>();
  rig.deciding = deciding.promise;
  const asked = async (): Promise<string> => exchange(await rig.connect(), requestOf(`${WEST}/version`, [CLOSE]));
  const waiting = [asked(), asked(), asked()];
  while (rig.reviews.length < waiting.length) await sleep(5);
  const [refused, upgrade] = await Promise.all([asked(), rig.connect()]);
  expect(refused).toMatch(/^HTTP\/1\.1 429 /);
  const lines = ["Connection: Upgrade", "Upgrade: websocket"];
  expect(await exchange(upgrade, requestOf(`${WEST}/api`, lines))).toMatch(/^HTTP\/1\.1 429 /);
  expect(rig.reviews).toHaveLength(waiting.length);
  rig.allowed = false;
  deciding.resolve();
  for (const answer of await Promise.all(waiting)) expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  // Refused requests have ended, too.
  rig.allowed = true;
  expect(await asked()).toMatch(/^HTTP\/1\.1 200 /);
});

test("cuts the oldest connection without a certificate when there are too many, and none of the host's API server", async () => {
  const small = await Rig.start({ mostStrangers: 3 });
  onTestFinished(() => small.close());
  const known = [await small.connect(), await small.connect(), await small.connect(), await small.connect()];
  const strangers = [await small.connect("none"), await small.connect("none"), await small.connect("none")];
  const cut = once(strangers[0] as TLSSocket, "close");
  await small.connect("none");
  await cut;
  for (const socket of known) {
    expect(await exchange(socket, requestOf(`${WEST}/version`, [CLOSE]))).toMatch(/^HTTP\/1\.1 200 /);
  }
  const health = await exchange(strangers[2] as TLSSocket, `GET /livez HTTP/1.1\r\nHost: access\r\n${CLOSE}\r\n\r\n`);
  expect(health).toMatch(/^HTTP\/1\.1 200 /);
});

test.each([
  ["GET", "Cluster west cannot be reached: it has not answered since 10:00"],
  ["POST", "Cluster west did not answer; what was asked may have been done: it has not answered since 10:00"],
])("gives a %s up that the member does not answer, with the reason that the controller knows", async (method, told) => {
  const clock = new FakeClock(Date.now());
  const slow = await Rig.start({ clock });
  onTestFinished(async () => {
    let isClosed = false;
    void slow.close().then(() => {
      isClosed = true;
    });
    while (!isClosed) {
      await clock.advance(1_000);
      await sleep(10);
    }
  });
  slow.member.onRequest = () => {};
  const asked = Promise.withResolvers<void>();
  slow.member.server.once("request", () => asked.resolve());
  const answer = exchange(await slow.connect(), requestOf(`${WEST}/version`, [CLOSE], method));
  await asked.promise;
  await clock.advance(60_000);
  slow.trouble = "it has not answered since 10:00";
  await clock.advance(10_000);
  const [head, body = ""] = (await answer).split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 503 /);
  expect(JSON.parse(body)).toMatchObject({ message: told });
});

test("counts no request in flight whose client has gone before it was decided on", async () => {
  for (let gone = 0; gone < 3; gone += 1) {
    const deciding = Promise.withResolvers<void>();
    rig.deciding = deciding.promise;
    const asked = rig.reviews.length;
    const socket = await rig.connect();
    socket.write(requestOf(`${WEST}/api/v1/pods`));
    while (rig.reviews.length === asked) await sleep(5);
    socket.destroy();
    // A later connection is answered once the end of this one was seen.
    await exchange(await rig.connect("none"), `GET /livez HTTP/1.1\r\nHost: access\r\n${CLOSE}\r\n\r\n`);
    deciding.resolve();
    await sleep(20);
  }
  rig.deciding = undefined;
  expect(await rig.statusOf(requestOf(`${WEST}/version`, [CLOSE]))).toBe(200);
  expect(rig.member.requests).toHaveLength(1);
});

test("lets a request end before it stops, and asks clients for other connections", async () => {
  const answering = Promise.withResolvers<ServerResponse>();
  rig.member.onRequest = (_request, response) => answering.resolve(response);
  const answer = exchange(await rig.connect(), requestOf(`${WEST}/version`));
  const response = await answering.promise;
  const closed = rig.server.close();
  const health = await exchange(await rig.connect("none"), "GET /readyz HTTP/1.1\r\nHost: access\r\n\r\n");
  expect(health).toMatch(/^HTTP\/1\.1 503 [\s\S]*it is about to end/);
  // Longer than a server waits for further requests.
  await sleep(700);
  response.end("{}");
  expect(await answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close/i);
  await closed;
});

test("answers discovery, also without any member", async () => {
  rig.found = { reason: "NotFound", message: "none" };
  const answer = await exchange(await rig.connect(), requestOf("/apis/access.legation.dev/v1", [CLOSE]));
  expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*"name":"clusters\/proxy"/);
});
