import { duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { ControlChannel } from "../../../src/tunnel/control-channel.ts";
import { type AgentMessage, agentMessage, type HubMessage } from "../../../src/tunnel/messages.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

function channelOn(clock = new FakeClock()) {
  const [own, peer] = duplexPair();
  const received: AgentMessage[] = [];
  const ends: string[] = [];
  const channel = new ControlChannel<HubMessage, AgentMessage>(own, {
    receives: agentMessage,
    onMessage: (message) => received.push(message),
    onClose: (reason) => ends.push(reason),
    clock,
  });
  return { channel, own, peer, received, ends, clock };
}

const id = "0".repeat(32);

describe("a control channel", () => {
  test("ends after 30 s in which it heard nothing", async () => {
    const { clock, ends, own } = channelOn();
    await clock.advance(29_999);
    expect(ends).toEqual([]);
    await clock.advance(1);
    expect(ends).toEqual(["nothing was heard for 30 s"]);
    expect(own.destroyed).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("ends 30 s after it last heard something, whenever that was", async () => {
    const { clock, ends, peer } = channelOn();
    await clock.advance(5_000);
    peer.write('{"type":"ping"}\n');
    await clock.advance(29_999);
    expect(ends).toEqual([]);
    await clock.advance(1);
    expect(ends).toEqual(["nothing was heard for 30 s"]);
  });

  test("stays while the other side pings", async () => {
    const { clock, ends, peer, received } = channelOn();
    for (let ping = 0; ping < 10; ping += 1) {
      await clock.advance(10_000);
      peer.write('{"type":"ping"}\n');
    }
    expect(ends).toEqual([]);
    expect(received).toEqual([]);
  });

  test("pings every 10 s", async () => {
    const { clock, peer } = channelOn();
    await clock.advance(20_000);
    expect(String(peer.read())).toBe('{"type":"ping"}\n{"type":"ping"}\n');
  });

  test.each([
    ["text that is not JSON", "GET / HTTP/1.1\n"],
    ["an empty line", "\n"],
    ["a type that is no text", '{"type":1}\n'],
    ["an object without a type", '{"host":"10.0.0.1"}\n'],
    ["an id of another form", '{"type":"refused","id":"../x","message":"no"}\n'],
    ["a message without a field", `{"type":"refused","id":"${id}"}\n`],
    ["JSON that is no object", "[]\n"],
  ])("ends on %s", async (_name, line) => {
    const { peer, ends, received } = channelOn();
    peer.write(`${line}{"type":"refused","id":"${id}","message":"after"}\n`);
    await settle();
    expect(ends).toEqual(["a message is not as expected"]);
    expect(received).toEqual([]);
  });

  test("passes over a message of a type that only newer versions know", async () => {
    const { peer, ends, received } = channelOn();
    peer.write(`{"type":"connect","host":"10.0.0.1"}\n{"type":"refused","id":"${id}","message":"after"}\n`);
    await settle();
    expect(ends).toEqual([]);
    expect(received).toEqual([{ type: "refused", id, message: "after" }]);
  });

  test("ends on a line without an end, of more than 256 KiB", async () => {
    const { peer, ends } = channelOn();
    for (let part = 0; part < 5 && ends.length === 0; part += 1) {
      peer.write("x".repeat(65_536));
      await settle();
    }
    expect(ends).toEqual(["a message is too long"]);
  });

  test("reads a line that arrives byte by byte, in time that grows with its length only", async () => {
    const { own, received, ends } = channelOn();
    const line = Buffer.from(`${" ".repeat(250_000)}{"type":"refused","id":"${id}","message":"é"}\n`);
    const before = process.cpuUsage();
    for (const byte of line) own.emit("data", Buffer.of(byte));
    const { user } = process.cpuUsage(before);
    expect(ends).toEqual([]);
    expect(received).toEqual([{ type: "refused", id, message: "é" }]);
    expect(user / 1_000).toBeLessThan(1_000);
  });

  test("ends when the other side does not read", async () => {
    const { channel, ends } = channelOn();
    for (let sent = 0; sent < 100 && ends.length === 0; sent += 1) {
      channel.send({ type: "welcome", authorities: "x".repeat(60_000) });
    }
    expect(ends).toEqual(["the other side does not read"]);
  });

  test("tells of its end once, and sends nothing after", async () => {
    const { channel, peer, ends, clock } = channelOn();
    channel.close("first");
    channel.close("second");
    channel.send({ type: "dial", id });
    await clock.advance(60_000);
    expect(ends).toEqual(["first"]);
    expect(peer.read()).toBeNull();
  });

  test("takes no message after its end", async () => {
    const { channel, own, received } = channelOn();
    channel.close("first");
    own.emit("data", Buffer.from(`{"type":"refused","id":"${id}","message":"late"}\n`));
    expect(received).toEqual([]);
  });
});
