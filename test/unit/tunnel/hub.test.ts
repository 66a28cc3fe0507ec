import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import type { RequestIdentity } from "../../../src/kube/credentials.ts";
import type { AgentIdentity } from "../../../src/tunnel/agent-session.ts";
import { AgentRefusal } from "../../../src/tunnel/hub.ts";
import {
  CERTIFICATE_PATH,
  CLUSTER_HEADER,
  CONTROL_PATH,
  CONTROL_PROTOCOL,
  STREAM_PATH,
  STREAM_PROTOCOL,
} from "../../../src/tunnel/messages.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { type HubRig, hubAuthority, identityOf, startHub } from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const east = { cluster: "east", uid: "2" };

/** A connection to the hub that the test speaks on, instead of an agent. */
class HandMadeAgent {
  readonly socket: TLSSocket;
  readonly #lines: string[] = [];
  #text = "";

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      this.#text += bytes.toString("utf8");
      const lines = this.#text.split("\n");
      this.#text = lines.pop() ?? "";
      this.#lines.push(...lines.filter((line) => line.startsWith("{")));
    });
  }

  /** Sends an upgrade request. Resolves to the connection, and the hub's answer up to the end of its head or body. */
  static async upgrade(
    { port }: Pick<HubRig, "port">,
    path: string,
    protocol: string,
    identity: Partial<RequestIdentity> & { readonly allowHalfOpen?: boolean } = {},
  ): Promise<{ readonly status: number; readonly text: string; readonly agent: HandMadeAgent }> {
    const socket = connect({ host: "127.0.0.1", port, ca: (await hubAuthority).cert, ...identity });
    socket.on("error", () => {});
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, "secureConnect");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
    const [bytes] = (await once(socket, "data")) as [Buffer];
    const text = bytes.toString("utf8");
    const agent = new HandMadeAgent(socket);
    const end = text.indexOf("\r\n\r\n") + 4;
    if (end < bytes.length) socket.emit("data", bytes.subarray(end));
    return { status: Number(text.split(" ")[1]), text, agent };
  }

  /** Resolves to the ids that the hub asked for, once there are as many. */
  async dialled(count: number): Promise<string[]> {
    return await vi.waitFor(() => {
      const ids = this.#lines.flatMap((line) => (JSON.parse(line) as { id?: string }).id ?? []);
      expect(ids).toHaveLength(count);
      return ids;
    });
  }

  send(message: object): void {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }
}

async function control(rig: HubRig, identity: RequestIdentity): Promise<HandMadeAgent> {
  const { status, agent } = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, identity);
  expect(status).toBe(101);
  return agent;
}

const stream = (rig: HubRig, id: string, identity: RequestIdentity) =>
  HandMadeAgent.upgrade(rig, `${STREAM_PATH}${id}`, STREAM_PROTOCOL, identity);

const never = new AbortController().signal;

/** Opens a connection over TLS that the test writes on. */
async function connection({ port }: HubRig, identity: Partial<RequestIdentity> = {}): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca: (await hubAuthority).cert, ...identity });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Asks for a certificate. Resolves to the status of the answer. */
async function requestCertificate(rig: HubRig, identity: RequestIdentity): Promise<number> {
  const socket = await connection(rig, identity);
  const body = JSON.stringify({ request: "PEM" });
  socket.write(`POST ${CERTIFICATE_PATH} HTTP/1.1\r\nHost: hub\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  return Number(answer.toString("utf8").split(" ")[1]);
}

async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await once(socket, "close");
}

describe("a hub", () => {
  test.each([
    ["no certificate", async () => ({}), "no client certificate was presented"],
    [
      "a certificate of another authority",
      async () => identityOf(west, { authority: await issueAuthority("hub", { now: Date.now(), lifetimeMs: 1e6 }) }),
      "the client certificate is not accepted",
    ],
    ["an expired certificate", () => identityOf(west, { lifetimeMs: -1_000 }), "CERT_HAS_EXPIRED"],
  ])("refuses an agent with %s", async (_name, identity, reason) => {
    const rig = await startHub();
    const { status, text } = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, await identity());
    expect(status).toBe(403);
    expect(text).toContain(reason);
    expect(rig.hub.state("west").connected).toBe(false);
  });

  test("closes a refused connection that the other side keeps open", async () => {
    const clock = new FakeClock();
    const rig = await startHub({ clock });
    const { status, agent } = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, { allowHalfOpen: true });
    expect(status).toBe(403);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    await clock.advance(5_000);
    await vi.waitFor(() => {
      agent.socket.write("x");
      expect(agent.socket.closed).toBe(true);
    });
  });

  test("ends an agent's control connection and streams at once when it may not connect any more", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const agent = await control(rig, identity);
    const dialled = rig.hub.dial("west", never);
    const [id = ""] = await agent.dialled(1);
    const { status, agent: dialledBack } = await stream(rig, id, identity);
    expect(status).toBe(101);
    const socket = await dialled;
    rig.refusals.set("west", "Cluster west has not joined");
    rig.hub.recheck("west");
    await Promise.all([closed(agent.socket), closed(dialledBack.socket), closed(socket)]);
    expect(rig.hub.state("west")).toMatchObject({ connected: false, streams: 0 });
    const absence = /^the agent of west left at \d{4}-\d{2}-\d{2}T[\d:.]+Z: Cluster west has not joined$/;
    await expect(rig.hub.dial("west", AbortSignal.timeout(20))).rejects.toThrow(absence);
    const again = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, identity);
    expect(again.status).toBe(403);
    expect(again.text).toContain("Cluster west has not joined");
  });

  test("knows nothing of the agents of a Cluster that has left when a later one of the name joins", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    rig.refusals.set("west", "Cluster west has not joined");
    rig.hub.forget("west");
    await closed(agent.socket);
    rig.refusals.clear();
    const dialled = rig.hub.dial("west", AbortSignal.timeout(20));
    await expect(dialled).rejects.toThrow("no agent of west has connected to this controller");
  });

  test("gives the same reason for as long as no agent comes, so that statuses with it are not written again", async () => {
    const clock = new FakeClock();
    const rig = await startHub({ clock });
    const agent = await control(rig, await identityOf(west));
    agent.socket.destroy();
    await vi.waitFor(() => expect(rig.hub.state("west")).toMatchObject({ connected: false }));
    const reasons: unknown[] = [];
    for (let probe = 0; probe < 2; probe += 1) {
      await clock.advance(60_000);
      reasons.push(await rig.hub.dial("west", never).catch((error: Error) => error.message));
    }
    expect(reasons[0]).toContain("the agent of west left at ");
    expect(reasons[1]).toBe(reasons[0]);
  });

  test("tells its owner the join that the agent's certificate names", async () => {
    const asked = new Set<string | undefined>();
    const refusal = ({ join }: AgentIdentity): undefined => void asked.add(join);
    const rig = await startHub({ gatekeeper: { refusal } });
    await control(rig, await identityOf({ ...west, join: "f".repeat(64) }));
    await control(rig, await identityOf(west));
    expect([...asked]).toEqual(["f".repeat(64), undefined]);
  });

  test("leaves agents of other Clusters connected when one is refused", async () => {
    const rig = await startHub();
    await control(rig, await identityOf(west));
    await control(rig, await identityOf(east));
    rig.refusals.set("west", "gone");
    rig.hub.recheck("west");
    rig.hub.recheck("east");
    expect([rig.hub.state("west").connected, rig.hub.state("east").connected]).toEqual([false, true]);
  });

  test("refuses a stream that it has not asked for", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    await control(rig, identity);
    const { status, text } = await stream(rig, "0".repeat(32), identity);
    expect(status).toBe(404);
    expect(text).toContain("not awaited");
  });

  test("takes a stream once", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const agent = await control(rig, identity);
    const dialled = rig.hub.dial("west", never);
    const [id = ""] = await agent.dialled(1);
    const statuses = [(await stream(rig, id, identity)).status, (await stream(rig, id, identity)).status];
    expect(statuses).toEqual([101, 404]);
    await dialled;
    expect(rig.hub.state("west").streams).toBe(1);
  });

  test("refuses another Cluster's agent the stream of one", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const thief = await identityOf(east);
    const agent = await control(rig, identity);
    await control(rig, thief);
    const dialled = rig.hub.dial("west", never);
    const [id = ""] = await agent.dialled(1);
    expect((await stream(rig, id, thief)).status).toBe(404);
    expect((await stream(rig, id, identity)).status).toBe(101);
    await dialled;
  });

  test("refuses the connection of an agent that dials back after the caller gave up", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const agent = await control(rig, identity);
    const giveUp = new AbortController();
    const dialled = rig.hub.dial("west", giveUp.signal);
    const [id = ""] = await agent.dialled(1);
    giveUp.abort();
    await expect(dialled).rejects.toThrow("did not dial back in time");
    const late = await stream(rig, id, identity);
    expect(late.status).toBe(404);
    await closed(late.agent.socket);
    expect(rig.hub.state("west").streams).toBe(0);
  });

  test("asks no agent for a caller that gave up before", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    await expect(rig.hub.dial("west", AbortSignal.abort())).rejects.toThrow("did not dial back in time");
    const giveUp = new AbortController();
    const dialled = rig.hub.dial("west", giveUp.signal);
    await agent.dialled(1);
    giveUp.abort();
    await expect(dialled).rejects.toThrow();
  });

  test("tells the caller why the agent cannot connect", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    const dialled = rig.hub.dial("west", never);
    dialled.catch(() => {});
    const [id = ""] = await agent.dialled(1);
    agent.send({ type: "refused", id: "0".repeat(32), message: "another" });
    agent.send({ type: "refused", id, message: "connect ECONNREFUSED 10.0.0.1:6443" });
    await expect(dialled).rejects.toThrow("the agent of west cannot connect: connect ECONNREFUSED 10.0.0.1:6443");
  });

  test("keeps at most 1,000 connections that an agent leaves undialled", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    const dialled = Array.from({ length: 1_001 }, () => rig.hub.dial("west", never));
    const results = Promise.allSettled(dialled);
    await expect(dialled[1_000]).rejects.toThrow("leaves 1000 connections undialled");
    agent.socket.destroy();
    expect((await results).map(({ status }) => status)).not.toContain("fulfilled");
  });

  test("uses the agent that connected last, and the other one when it leaves", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const first = await control(rig, identity);
    const second = await control(rig, identity);
    const dialled = rig.hub.dial("west", never);
    await second.dialled(1);
    await first.dialled(0);
    second.socket.destroy();
    const [id = ""] = await first.dialled(1);
    expect((await stream(rig, id, identity)).status).toBe(101);
    await dialled;
    expect(rig.hub.state("west")).toMatchObject({ connected: true, connections: 2 });
  });

  test("waits for an agent that may still come after the hub opened, or come back", async () => {
    const rig = await startHub({ clock: new FakeClock() });
    const identity = await identityOf(west);
    for (let connection = 0; connection < 2; connection += 1) {
      const dialled = rig.hub.dial("west", never);
      const agent = await control(rig, identity);
      const [id = ""] = await agent.dialled(1);
      expect((await stream(rig, id, identity)).status).toBe(101);
      await dialled;
      agent.socket.destroy();
      await vi.waitFor(() => expect(rig.hub.state("west").connected).toBe(false));
    }
  });

  test("waits no longer than the caller for an agent, nor than 1.4 s, and not once none came within 20 s", async () => {
    const clock = new FakeClock();
    const rig = await startHub({ clock });
    await expect(rig.hub.dial("west", AbortSignal.timeout(20))).rejects.toThrow("no agent of west has connected");
    expect(clock.pending).toBe(0);
    const dialled = rig.hub.dial("west", never);
    const agent = await control(rig, await identityOf(east));
    const refused = expect(dialled).rejects.toThrow("no agent of west has connected");
    await clock.advance(1_400);
    await refused;
    await clock.advance(18_600);
    await expect(rig.hub.dial("west", never)).rejects.toThrow("no agent of west has connected");
    agent.socket.destroy();
  });

  test("asks another agent when one cannot connect, and that one first from then on", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const first = await control(rig, identity);
    const second = await control(rig, identity);
    const dialled = rig.hub.dial("west", never);
    const [refusedId = ""] = await second.dialled(1);
    second.send({ type: "refused", id: refusedId, message: "connect EHOSTUNREACH 10.0.0.1:6443" });
    const [id = ""] = await first.dialled(1);
    expect((await stream(rig, id, identity)).status).toBe(101);
    await dialled;
    const next = rig.hub.dial("west", never);
    await first.dialled(2);
    await second.dialled(1);
    next.catch(() => {});
  });

  test("tells why the agent that was asked first cannot connect, when none can", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const agents = [await control(rig, identity), await control(rig, identity)];
    const dialled = rig.hub.dial("west", never);
    dialled.catch(() => {});
    for (const [index, agent] of agents.toReversed().entries()) {
      const [id = ""] = await agent.dialled(1);
      agent.send({ type: "refused", id, message: `reason ${index}` });
    }
    await expect(dialled).rejects.toThrow("the agent of west cannot connect: reason 0");
  });

  test("takes no credentials that it has not asked for", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    const credentials = { server: "https://10.0.0.1", token: "t", expires: "", certificateAuthority: "" };
    rig.hub.askForCredentials("west", "host");
    for (let sent = 0; sent < 3; sent += 1) agent.send({ type: "credentials", account: "host", credentials });
    const dialled = rig.hub.dial("west", never);
    dialled.catch(() => {});
    const [id = ""] = await agent.dialled(1);
    agent.send({ type: "refused", id, message: "done" });
    await expect(dialled).rejects.toThrow("done");
    expect(rig.credentials).toHaveLength(1);
  });

  test("logs nothing of a stranger that ends its request for a certificate early", async () => {
    const rig = await startHub();
    const head = `POST ${CERTIFICATE_PATH} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer x\r\n${CLUSTER_HEADER}: west\r\n`;
    const stranger = await connection(rig);
    stranger.end(`${head}Content-Length: 100\r\n\r\n{`);
    await closed(stranger);
    const agent = await connection(rig);
    const body = JSON.stringify({ request: "PEM" });
    agent.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    const [answer] = (await once(agent, "data")) as [Buffer];
    expect(answer.toString("utf8")).toContain("500 Internal Server Error");
    expect(rig.logged.map((line) => (JSON.parse(line) as { err: { message: string } }).err.message)).toEqual([
      "not in this test",
    ]);
  });

  test("counts connections among those of strangers until they are an agent's, whatever their certificate", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const { socket: known } = await control(rig, identity);
    const idle = await connection(rig, identity);
    const strangers: Socket[] = [];
    onTestFinished(() => {
      for (const socket of strangers) socket.destroy();
    });
    while (strangers.length < 2_000) {
      // Fewer than the kernel keeps for a server that has not taken them yet.
      const some = Array.from({ length: 400 }, () => connectTcp(rig.port, "127.0.0.1").on("error", () => {}));
      strangers.push(...some);
      await Promise.all(some.map((socket) => once(socket, "connect")));
      await connection(rig);
    }
    let answer = "";
    idle.on("data", (bytes: Buffer) => {
      answer += bytes.toString("utf8");
    });
    idle.end("GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n");
    await closed(idle);
    expect(answer).toBe("");
    expect([known.closed, rig.hub.state("west").connected]).toEqual([false, true]);
  });

  test("refuses agents of a Cluster that connect or ask for certificates more than 60 times a minute", async () => {
    const clock = new FakeClock(Date.now());
    const rig = await startHub({
      clock,
      gatekeeper: { certify: async () => ({ certificate: "c", authorities: "a" }) },
    });
    const identity = await identityOf(west);
    for (let turn = 1; turn <= 30; turn += 1) {
      const agent = await control(rig, identity);
      agent.socket.destroy();
      expect(await requestCertificate(rig, identity)).toBe(200);
    }
    const refused = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, identity);
    expect([refused.status, await requestCertificate(rig, identity)]).toEqual([429, 429]);
    expect(refused.text).toContain("agents of west connect or ask for certificates more than 60 times a minute");
    await control(rig, await identityOf(east));
    await clock.advance(60_000);
    await control(rig, identity);
  });

  test("does not count those of a refused agent, so that it keeps no other out", async () => {
    const refusal = ({ join }: AgentIdentity): string | undefined => (join === "old" ? "joined anew" : undefined);
    const certify = () => Promise.reject(new AgentRefusal("joined anew"));
    const rig = await startHub({ gatekeeper: { refusal, certify } });
    const old = await identityOf({ ...west, join: "old" });
    for (let turn = 1; turn <= 60; turn += 1) {
      expect(await requestCertificate(rig, old)).toBe(403);
    }
    expect((await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, old)).status).toBe(403);
    await control(rig, await identityOf({ ...west, join: "new" }));
  });

  test("leaves no connection when it closes, not even one without a handshake", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    const { port } = rig;
    const silent = connectTcp(port, "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    const idle = connect({ host: "127.0.0.1", port, ca: (await hubAuthority).cert });
    idle.on("error", () => {});
    await once(idle, "secureConnect");
    const sockets = [silent, idle, agent.socket];
    const all = Promise.all(sockets.map(closed));
    const before = performance.now();
    await rig.hub.close();
    await all;
    expect(performance.now() - before).toBeLessThan(5_000);
    const refused = connectTcp(port, "127.0.0.1");
    await expect(once(refused, "connect")).rejects.toThrow("ECONNREFUSED");
  });
});
