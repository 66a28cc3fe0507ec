import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import type { AgentIdentity } from "../../../src/tunnel/agent-session.ts";
import { CERTIFICATE_PATH, CLUSTER_HEADER, CONTROL_PATH, CONTROL_PROTOCOL } from "../../../src/tunnel/messages.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { hubAuthority, identityOf, startHub } from "../../support/tunnel/rig.ts";
import { closed, connection, control, east, HandMadeAgent, never, stream, west } from "./hand-made-agent.ts";

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
