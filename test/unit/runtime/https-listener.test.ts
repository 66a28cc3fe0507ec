import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { HttpsListener, type HttpsListenerOptions } from "../../../src/runtime/https-listener.ts";
import { Authority } from "../../support/clusters/pki.ts";

const LOOPBACK = "127.0.0.1";
const authority = await Authority.create("first");
const subject = { commonName: "server", usage: "serverAuth", addresses: [LOOPBACK] } as const;
const { key, certificate: cert } = await authority.issue(subject);

/** Listens, and answers each request with nothing. */
async function listening(options: Partial<HttpsListenerOptions> = {}) {
  const listener = new HttpsListener(
    { key, cert },
    {
      limits: {},
      onRequest: (_request, response) => void response.end(),
      onUpgrade: (_request, socket) => void socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
      onError: () => {},
      ...options,
    },
  );
  const port = await listener.listen(LOOPBACK, 0);
  onTestFinished(() => listener.closeAll());
  return { listener, port };
}

/** Connects without the handshake. */
async function connecting(port: number, localPort?: number): Promise<Socket> {
  const from = localPort === undefined ? {} : { localAddress: LOOPBACK, localPort };
  const socket = connect({ host: LOOPBACK, port, ...from });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Ends a connection, and returns another one from its port. */
async function connectingAfter(port: number): Promise<Socket> {
  const first = await connecting(port);
  await seen();
  const { localPort } = first;
  first.resetAndDestroy();
  await once(first, "close");
  // Another process of the machine may have taken the port meanwhile.
  return connecting(port, localPort).catch(() => connectingAfter(port));
}

async function secured(port: number, ca: string = authority.pem): Promise<TLSSocket> {
  const socket = connectTls({ host: LOOPBACK, port, ca });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

/** Waits until the server has seen what clients did before. */
async function seen(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await setImmediate();
}

// A connection that is overlooked ends by itself after the time for a handshake, ten seconds.
const AT_ONCE_MS = 5_000;

test("stops at once beside clients that never shake hands", { timeout: AT_ONCE_MS }, async () => {
  const { listener, port } = await listening();
  const socket = await connecting(port);
  await seen();
  await Promise.all([once(socket, "close"), listener.stopListening()]);
});

test("stops at once beside one that came from the port of another that had just ended", {
  timeout: AT_ONCE_MS,
}, async () => {
  const { listener, port } = await listening();
  // Accepted in the same turn in which the server hears of the first one's end.
  const second = await connectingAfter(port);
  await seen();
  await Promise.all([once(second, "close"), listener.stopListening()]);
});

test("leaves upgraded streams to themselves when it closes, and cuts them in the end", async () => {
  const { listener, port } = await listening();
  const [idle, upgraded] = [await secured(port), await secured(port)];
  upgraded.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  await once(upgraded, "data");
  const closed = listener.close();
  await once(idle, "close");
  expect([...listener.sockets]).toHaveLength(1);
  await Promise.all([once(upgraded, "close"), listener.closeAll(), closed]);
});

test("serves new connections by a new certificate, and keeps the open ones", async () => {
  const { listener, port } = await listening();
  const before = await secured(port);
  const second = await Authority.create("second");
  const renewed = await second.issue(subject);
  listener.renew({ key: renewed.key, cert: renewed.certificate });
  await secured(port, second.pem);
  before.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(String((await once(before, "data"))[0])).toMatch(/^HTTP\/1\.1 200/);
  expect(() => listener.renew({ key, cert: renewed.certificate })).toThrow(/key/i);
});

test("rejects for a port that is taken", async () => {
  const { port } = await listening();
  const other = new HttpsListener(
    { key, cert },
    { limits: {}, onRequest: () => {}, onUpgrade: () => {}, onError: () => {} },
  );
  await expect(other.listen(LOOPBACK, port)).rejects.toThrow("EADDRINUSE");
});
