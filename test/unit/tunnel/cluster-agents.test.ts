import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { describe, expect, test, vi } from "vitest";
import type { RequestIdentity } from "../../../src/kube/credentials.ts";
import type { AgentIdentity } from "../../../src/tunnel/agent-session.ts";
import { AgentRefusal } from "../../../src/tunnel/hub.ts";
import { CERTIFICATE_PATH, CONTROL_PATH, CONTROL_PROTOCOL } from "../../../src/tunnel/messages.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { type HubRig, identityOf, startHub } from "../../support/tunnel/rig.ts";
import { connection, control, east, HandMadeAgent, never, stream, west } from "./hand-made-agent.ts";

/** Asks for a certificate. Resolves to the status of the answer. */
async function requestCertificate(rig: HubRig, identity: RequestIdentity): Promise<number> {
  const socket = await connection(rig, identity);
  const body = JSON.stringify({ request: "PEM" });
  socket.write(`POST ${CERTIFICATE_PATH} HTTP/1.1\r\nHost: hub\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  return Number(answer.toString("utf8").split(" ")[1]);
}

describe("a hub", () => {
  test("tells when the certificate of its agent expires, and of the next one once that is noted", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const expires = new X509Certificate(identity.cert ?? "").validToDate.getTime();
    await control(rig, identity);
    expect(rig.hub.agent("west")?.certificateExpires).toBe(expires);
    rig.hub.noteCertificate("west", expires + 1_000);
    expect(rig.hub.agent("west")?.certificateExpires).toBe(expires + 1_000);
    expect(rig.hub.state("west").certificateExpires).toBe(expires + 1_000);
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
});
