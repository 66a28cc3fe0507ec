import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { Strangers } from "../../../src/runtime/strangers.ts";

let port = 1;

/** A socket of that address, as far as `Strangers` looks at it. */
function socketFrom(remoteAddress: string): Socket & { readonly cut: () => boolean } {
  let cut = false;
  const listeners: (() => void)[] = [];
  const socket = {
    remoteAddress,
    remotePort: port++,
    once: (_event: string, listener: () => void) => listeners.push(listener),
    destroy: () => {
      cut = true;
      for (const listener of listeners) listener();
    },
    cut: () => cut,
  };
  return socket as unknown as Socket & { readonly cut: () => boolean };
}

function cutOf(sockets: readonly { readonly cut: () => boolean }[]): boolean[] {
  return sockets.map(({ cut }) => cut());
}

describe("connections without a certificate", () => {
  test("are cut at the address with the most of them, the oldest first", () => {
    const strangers = new Strangers(4);
    const flood = Array.from({ length: 3 }, () => socketFrom("203.0.113.1"));
    const agents = ["198.51.100.1", "198.51.100.2", "::ffff:198.51.100.3"].map(socketFrom);
    for (const socket of [...flood, ...agents]) strangers.add(socket);
    expect(cutOf(flood)).toEqual([true, true, false]);
    expect(cutOf(agents)).toEqual([false, false, false]);
  });

  test("are cut at one address that floods alone, so that it gets no further", () => {
    const strangers = new Strangers(2);
    const flood = Array.from({ length: 4 }, () => socketFrom("203.0.113.1"));
    for (const socket of flood) strangers.add(socket);
    expect(cutOf(flood)).toEqual([true, true, false, false]);
  });

  test("count together for the addresses of one IPv6 network", () => {
    const strangers = new Strangers(3);
    const agent = socketFrom("2001:db8:1::1");
    const flood = ["2001:db8::1", "2001:db8:0:0:8::", "2001:db8::ffff:2"].map(socketFrom);
    for (const socket of [agent, ...flood]) strangers.add(socket);
    expect(cutOf([agent, ...flood])).toEqual([false, true, false, false]);
  });

  test("count no more once they have shown a certificate, or have ended", () => {
    const strangers = new Strangers(2);
    const [shown, ended, first, second] = Array.from({ length: 4 }, () => socketFrom("203.0.113.1"));
    if (shown === undefined || ended === undefined || first === undefined || second === undefined) throw new Error();
    strangers.add(shown);
    strangers.add(ended);
    strangers.verified(shown);
    ended.destroy();
    strangers.add(first);
    strangers.add(second);
    expect(cutOf([shown, first, second])).toEqual([false, false, false]);
  });

  test("count once when they come from a port whose earlier connection is not known to have ended", () => {
    const strangers = new Strangers(2);
    // Neither has an address: both were reset before they were accepted.
    const resets = Array.from({ length: 2 }, () => Object.assign(socketFrom(""), { remotePort: undefined }));
    for (const socket of resets) strangers.add(socket);
    for (const socket of resets) socket.destroy();
    const agents = ["198.51.100.1", "198.51.100.2"].map(socketFrom);
    for (const socket of agents) strangers.add(socket);
    expect(cutOf(agents)).toEqual([false, false]);
  });

  test("are closed for their clients when they are cut", async () => {
    const strangers = new Strangers(1);
    const server = createServer((socket) => strangers.add(socket.on("error", () => {}).resume()));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const listening = typeof address === "object" && address !== null ? address.port : 0;
    const clients = [connect(listening, "127.0.0.1"), connect(listening, "127.0.0.1")].map((client) =>
      client.on("error", () => {}).resume(),
    );
    onTestFinished(() => {
      for (const client of clients) client.destroy();
      server.close();
    });
    await Promise.race(clients.map((client) => once(client, "close")));
    expect(clients.filter(({ closed }) => closed)).toHaveLength(1);
  });
});
