import { createServer } from "node:http";
import { connect as connectTcp, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { Streams, type StreamTarget } from "../../../src/kubelet/streams.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { anonymous } from "../../support/fault-server/connect.ts";
import { readAll } from "../../support/streams/socket-pair.ts";
import { accept, refuse, UpgradeServer } from "../kube/upgrade-server.ts";

const REQUEST = "POST /exec/shop/web/main?command=cat&input=1&output=1 HTTP/1.1\r\n";
const HEADERS = "Host: kubelet\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n";

let member: UpgradeServer;
let client: ClusterClient;
let streams: Streams;
let clock: FakeClock;
let target: StreamTarget;
let front: ReturnType<typeof createServer>;
let port: number;
const dialled: Socket[] = [];
beforeEach(async () => {
  member = await UpgradeServer.start();
  client = createClusterClient({ cluster: "west", credentials: anonymous(member.url) });
  clock = new FakeClock();
  streams = new Streams({ clock, log: createLogger({ level: "silent" }) });
  target = {
    member: { name: "west", client, probed: { reachable: true } },
    ref: { namespace: "shop", name: "web" },
    proxyUid: "uid-of-web",
    container: "main",
  };
  front = createServer();
  front.on("upgrade", (request, socket, head) => void streams.handleUpgrade(request, socket, head, target));
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const address = front.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
});
afterEach(async () => {
  for (const socket of dialled.splice(0)) socket.destroy();
  await streams.close();
  await client.close();
  await new Promise((resolve) => front.close(resolve));
  await member[Symbol.asyncDispose]();
});

/** Requests a stream as a host's API server does. */
function ask(more = "", options: { readonly allowHalfOpen?: boolean } = {}): Socket {
  const socket = connectTcp({ port, host: "127.0.0.1", ...options });
  socket.on("error", () => {});
  socket.write(REQUEST + HEADERS + more);
  dialled.push(socket);
  return socket;
}

function next(socket: Socket): Promise<string> {
  return new Promise((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
}

/** Returns status, headers and body of a response that is no upgrade. */
async function answer(socket: Socket): Promise<{ status: number; head: string; body: string }> {
  const [head = "", body = ""] = String(await readAll(socket)).split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), head: head.toLowerCase(), body };
}

function echo(socket: Duplex): void {
  accept(socket);
  socket.pipe(socket);
}

describe("a stream", () => {
  test("carries the member's answer and then bytes, early ones included", async () => {
    member.onUpgrade = (_request, socket) => echo(socket);
    const socket = ask("early ");
    expect(await next(socket)).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n.*upgrade: SPDY\/3\.1\r\n.*\r\n\r\n$/is);
    expect(member.requests[0]?.url).toBe(
      "/api/v1/namespaces/shop/pods/web/exec?container=main&command=cat&stdin=true&stdout=true",
    );
    expect(await next(socket)).toBe("early ");
    socket.write("late");
    expect(await next(socket)).toBe("late");
    expect(streams.size).toBe(1);
    socket.end();
    await expect.poll(() => streams.size).toBe(0);
  });

  test("ends in the member if the client goes before it is open", async () => {
    const arrived = Promise.withResolvers<Duplex>();
    member.onUpgrade = (_request, socket) => arrived.resolve(socket);
    const socket = ask();
    await arrived.promise;
    socket.resetAndDestroy();
    await expect.poll(() => member.sockets.size).toBe(0);
    expect(streams.size).toBe(0);
  });

  test("ends normally for the client when the member's connection is given up", async () => {
    member.onUpgrade = (_request, socket) => accept(socket, "so far");
    const all = readAll(ask());
    await expect.poll(() => streams.size).toBe(1);
    await client.close();
    expect(String(await all)).toMatch(/so far$/);
    await expect.poll(() => streams.size).toBe(0);
  });

  test("ends on both sides when Legation stops, and is not opened afterwards", async () => {
    const open = readAll(ask());
    await expect.poll(() => streams.size).toBe(1);
    const silent = Promise.withResolvers<void>();
    member.onUpgrade = () => silent.resolve();
    const opening = answer(ask());
    await silent.promise;
    const closed = streams.close();
    expect(String(await open)).toMatch(/^HTTP\/1\.1 101/);
    expect(await opening).toMatchObject({ status: 503, body: expect.stringContaining("is stopping: try again") });
    await closed;
    await expect.poll(() => member.sockets.size).toBe(0);
    expect(await answer(ask())).toMatchObject({ status: 503 });
    expect(member.requests).toHaveLength(2);
  });
});

describe("a refused stream", () => {
  test("ends soon, whether the client ends its side or not", async () => {
    member.onUpgrade = (_request, socket) => refuse(socket, 500, "no");
    const socket = ask("", { allowHalfOpen: true });
    expect(await next(socket)).toMatch(/^HTTP\/1\.1 500/);
    const open = (): Promise<number> =>
      new Promise((resolve) => front.getConnections((_error, count) => resolve(count)));
    expect(await open()).toBe(1);
    await clock.advance(5_000);
    await expect.poll(open).toBe(0);
  });

  test("has the words of the member's kubelet", async () => {
    member.onUpgrade = (_request, socket) => refuse(socket, 500, 'container not found ("main")');
    const { status, head, body } = await answer(ask());
    expect({ status, body }).toEqual({ status: 500, body: 'container not found ("main")' });
    expect(head).toContain("\r\ncontent-type: text/plain\r\n");
    expect(head).toContain("\r\nx-reason: told\r\n");
    expect(head).toContain("\r\ncontent-length: 28");
  });

  test.each([
    [401, "Unauthorized", "InternalError", /cluster west refuses Legation \(401\): .*`legation join west` again/],
    [
      403,
      'pods "web" is forbidden: User "system:serviceaccount:legation-system:host" cannot create resource "pods/exec"',
      "InternalError",
      /cluster west refuses Legation \(403\)/,
    ],
    [403, 'pods "web" is forbidden: no exec into privileged containers', "Forbidden", /no exec into privileged/],
    [404, 'pods "web" not found', "NotFound", /pods "web" not found/],
  ])("of the member's API server with %i %s is %s", async (code, message, reason, expected) => {
    member.onUpgrade = (_request, socket) => {
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", message, code, reason };
      refuse(socket, code, JSON.stringify(status));
    };
    expect(JSON.parse((await answer(ask())).body)).toMatchObject({
      kind: "Status",
      reason,
      message: expect.stringMatching(expected),
    });
  });

  test.each([
    [401, "Unauthorized"],
    [403, "Forbidden (user=kube-apiserver-kubelet-client, verb=create, resource=nodes, subresource(s)=[proxy])"],
  ])("reports a kubelet that refuses its own API server (%i)", async (code, words) => {
    member.onUpgrade = (_request, socket) => refuse(socket, code, words);
    expect(JSON.parse((await answer(ask())).body)).toMatchObject({
      reason: "InternalError",
      message: `cluster west: its API server may not ask the kubelet there: ${words}`,
    });
  });

  test("is refused at once if its member is known to be unreachable", async () => {
    target = { ...target, member: { ...target.member, probed: { reachable: false, message: "timed out" } } };
    const { status, body } = await answer(ask());
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({
      reason: "ServiceUnavailable",
      message: "cluster west cannot be reached: timed out",
    });
    expect(member.requests).toEqual([]);
  });

  test.each<[string, number, RegExp, () => void]>([
    [
      "cannot be reached",
      503,
      /cluster west cannot be reached: .*ECONNREFUSED/,
      () => {
        const gone = createClusterClient({ cluster: "west", credentials: anonymous("http://127.0.0.1:1") });
        target = { ...target, member: { ...target.member, client: gone } };
      },
    ],
    [
      "cuts the connection",
      504,
      /cluster west did not answer: /,
      () => {
        member.onUpgrade = (_request, socket) => socket.destroy();
      },
    ],
  ])("has the reason if its member %s", async (_case, status, message, arrange) => {
    arrange();
    const refusal = await answer(ask());
    expect(refusal.status).toBe(status);
    expect(JSON.parse(refusal.body)).toMatchObject({ kind: "Status", message: expect.stringMatching(message) });
  });
});
