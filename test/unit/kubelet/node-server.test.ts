import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ServedNode, STREAM } from "./served-node.ts";

let node: ServedNode;
beforeEach(async () => {
  node = await ServedNode.create();
});

/** An accepted connection that sends nothing. */
async function stranger(): Promise<Socket> {
  const socket = connectTcp({ port: node.port, host: "127.0.0.1" });
  socket.on("error", () => {});
  await once(socket, "connect");
  // The connection has been accepted once a later one was answered.
  await node.ask();
  return socket;
}

test("leaves no waiting listener behind when ports are taken", async () => {
  await node.serve(undefined);
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const next = node.nodeServer(undefined);
  onTestFinished(() => next.close());
  for (let attempt = 0; attempt < 12; attempt += 1) {
    await expect(next.listen("127.0.0.1", node.port)).rejects.toMatchObject({ code: "EADDRINUSE" });
  }
  expect(await next.listen("127.0.0.1", 0)).not.toBe(node.port);
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});

describe("a virtual node's server", () => {
  test("asks the host once for repeated requests", async () => {
    await node.serve(node.authority.pem);
    for (let index = 0; index < 5; index += 1) await node.ask({ certificate: node.caller });
    for (let index = 0; index < 5; index += 1) await node.ask({ token: "nonsense" });
    expect(node.reviews).toHaveLength(2);
  });

  test("admits a user within half a minute of a grant, and refuses one within five minutes of a revocation", async () => {
    await node.serve(node.authority.pem);
    const states: number[] = [];
    for (const [allowed, afterMs] of [
      [false, 0],
      [true, 29_000],
      [true, 2_000],
      [false, 299_000],
      [false, 2_000],
    ] as const) {
      node.isAllowed = allowed;
      await node.clock.advance(afterMs);
      states.push(await node.ask({ certificate: node.caller }));
    }
    expect(states).toEqual([403, 403, 200, 200, 403]);
  });

  test.each<[string, boolean, boolean, number]>([
    ["nobody known", false, true, 401],
    ["a user without the right", true, false, 403],
    ["a user with the right to a pod that is not there", true, true, 404],
  ])("refuses a stream of %s", async (_who, known, allowed, expected) => {
    await node.serve(node.authority.pem);
    node.isAllowed = allowed;
    expect(await node.ask({ ...STREAM, ...(known ? { certificate: node.caller } : {}) })).toBe(expected);
  });

  test("accepts addresses as long as commands may be", async () => {
    await node.serve(node.authority.pem);
    const path = `/healthz?command=${"x".repeat(200_000)}`;
    expect(await node.ask({ certificate: node.caller, path })).toBe(200);
  });
});

describe("a server that is closed", () => {
  /** Resolves when the server has closed; time passes meanwhile. */
  async function closing(): Promise<void> {
    const closed = node.server?.close();
    await node.clock.advance(10_000);
    await closed;
  }

  test("does not wait for a refused caller that keeps its side open", async () => {
    await node.serve(node.authority.pem);
    const options = { port: node.port, host: "127.0.0.1", rejectUnauthorized: false, allowHalfOpen: true };
    const socket = connectTls(options);
    socket.on("error", () => {});
    const refused = once(socket, "end");
    socket.write("GET /exec/a/b/c HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.resume();
    await refused;
    await closing();
    socket.destroy();
  });

  test("does not wait for a connection that sends nothing", async () => {
    await node.serve(node.authority.pem);
    const socket = await stranger();
    await closing();
    socket.destroy();
  });
});

test("does not finish a handshake that began before the authority changed", async () => {
  await node.serve(node.authority.pem);
  const socket = await stranger();
  node.server?.renew({ certificate: node.serving, clientAuthority: node.other.pem });
  // Long before the server gives up silent connections.
  await expect.poll(() => socket.closed, { timeout: 5_000 }).toBe(true);
});
