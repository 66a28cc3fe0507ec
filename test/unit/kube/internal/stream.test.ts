import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";
import { namespaces, pods } from "../../../../src/kube/resources.ts";
import { anonymous } from "../../../support/fault-server/connect.ts";

const WEB = { namespace: "shop", name: "web" };
const MEBIBYTE = Buffer.alloc(2 ** 20, "x");

let answer: (request: IncomingMessage, response: ServerResponse) => void;
let server: ReturnType<typeof createServer>;
let client: ClusterClient;
const sockets = new Set<Socket>();
beforeEach(async () => {
  server = createServer((request, response) => answer(request, response));
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  client = createClusterClient({ cluster: "west", credentials: anonymous(`http://127.0.0.1:${port}`) });
});
afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function open(options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {}) {
  return client.stream(pods, WEB, "log", { query: new URLSearchParams({ container: "main" }), ...options });
}

describe("a stream of an API server", () => {
  test("delivers bytes as they arrive, to the end", async () => {
    const asked: (string | undefined)[] = [];
    answer = ({ url, headers }, response) => {
      asked.push(url, headers.accept);
      response.write("one ");
      setImmediate(() => response.end("two"));
    };
    const { body } = await open();
    expect(body && (await text(body))).toBe("one two");
    expect(asked).toEqual(["/api/v1/namespaces/shop/pods/web/log?container=main", "*/*"]);
  });

  test("returns a refusal as a response", async () => {
    answer = (_request, response) => response.writeHead(400).end('{"message":"is waiting to start"}');
    expect(await open()).toMatchObject({ status: 400, text: '{"message":"is waiting to start"}' });
  });

  test("makes the server wait for a reader that does not read", async () => {
    let sent = 0;
    answer = (_request, response) => {
      const write = (): void => {
        while (!response.destroyed && sent < 200 * MEBIBYTE.length) {
          sent += MEBIBYTE.length;
          if (!response.write(MEBIBYTE)) break;
        }
      };
      response.on("drain", write);
      write();
    };
    const { body } = await open();
    let before = -1;
    // Buffers of the two sockets fill up, and then nothing moves.
    await expect
      .poll(
        () => {
          const still = sent === before;
          before = sent;
          return still;
        },
        { interval: 300, timeout: 10_000 },
      )
      .toBe(true);
    expect(sent).toBeLessThan(50 * MEBIBYTE.length);
    body?.destroy();
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("loses no byte with a slow reader, in chunks of any size", async () => {
    const bytes = randomBytes(4 * 2 ** 20);
    answer = (_request, response) => {
      for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 9_973) {
        response.write(bytes.subarray(at, at + size));
      }
      response.end();
    };
    const { body } = await open();
    const pieces: Buffer[] = [];
    for await (const piece of body ?? []) {
      pieces.push(piece);
      if (pieces.length % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  });

  test("reports an error when it breaks off", async () => {
    answer = (_request, response) => {
      response.write("half");
      setImmediate(() => response.destroy());
    };
    const { body } = await open();
    await expect(body && text(body)).rejects.toThrow();
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ["before it is answered", () => {}],
    ["while it is read", (response) => response.write("so far")],
  ])("ends in the server when its caller gives up %s", async (_when, begin) => {
    const arrived = Promise.withResolvers<void>();
    answer = (_request, response) => {
      begin(response);
      arrived.resolve();
    };
    const abort = new AbortController();
    const opened = open({ signal: abort.signal }).then(
      ({ body }) => body,
      ({ code }: { code: string }) => code,
    );
    await arrived.promise;
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    const body = await opened;
    if (typeof body !== "string") await expect(body && text(body)).rejects.toThrow();
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("is given up at the deadline", async () => {
    answer = () => {};
    await expect(open({ timeoutMs: 1_000 })).rejects.toMatchObject({ code: "AnswerLost" });
    await expect.poll(() => sockets.size).toBe(0);
  });

  test("delays neither other streams nor requests while it has no response", async () => {
    answer = ({ url }, response) => {
      if (url?.startsWith("/api/v1/namespaces/shop/pods/web/log?container=main") === true) return;
      response.setHeader("content-type", "application/json");
      response.end('{"metadata":{"name":"shop","uid":"1","resourceVersion":"1"}}');
    };
    const abort = new AbortController();
    const silent = Array.from({ length: 200 }, () => open({ signal: abort.signal }).catch(() => "given up"));
    await expect.poll(() => sockets.size).toBe(200);
    expect((await client.get(namespaces, { name: "shop" })).metadata.name).toBe("shop");
    const { body } = await client.stream(pods, WEB, "log", { query: new URLSearchParams({ container: "other" }) });
    expect(body && (await text(body))).toContain("shop");
    abort.abort();
    expect(new Set(await Promise.all(silent))).toEqual(new Set(["given up"]));
  });

  test("ends when the client is closed", async () => {
    answer = (_request, response) => response.write("so far");
    const { body } = await open();
    const all = body && text(body);
    await client.close();
    await expect(all).rejects.toThrow();
  });
});
