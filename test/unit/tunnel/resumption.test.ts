import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { issueAuthority, issueClient, issueServing } from "../../../src/certificates/issue.ts";
import type { RequestIdentity } from "../../../src/kube/credentials.ts";
import { CONTROL_PATH, CONTROL_PROTOCOL } from "../../../src/tunnel/messages.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import {
  type HubRig,
  hubAuthority,
  identityOf,
  memberClient,
  runAgent,
  startHub,
  startMember,
} from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const HOUR_MS = 3_600_000;

interface Answered {
  readonly socket: TLSSocket;
  readonly text: string;
}

/** Asks the hub for a control connection. Resolves to the first part of its answer. */
async function control({ port }: HubRig, identity: RequestIdentity, session?: Buffer): Promise<Answered> {
  const socket = connect({ host: "127.0.0.1", port, ...identity, ...(session && { session }) });
  socket.on("error", () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, "secureConnect");
  socket.write(
    `GET ${CONTROL_PATH} HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: ${CONTROL_PROTOCOL}\r\n\r\n`,
  );
  const [bytes] = await once(socket, "data");
  return { socket, text: String(bytes) };
}

/** Connects as an agent does first. Resolves to the session that its next connections resume. */
async function firstSession(rig: HubRig, identity: RequestIdentity): Promise<Buffer> {
  const { socket } = await control(rig, identity);
  // Tickets arrive before the first byte of an answer.
  const session = socket.getSession();
  if (session === undefined) throw new Error("the hub gave no session");
  return session;
}

describe("an agent that resumes a TLS session", () => {
  test("is the agent of its first handshake", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const session = await firstSession(rig, identity);
    const again = await control(rig, identity, session);
    expect(again.socket.isSessionReused()).toBe(true);
    expect(again.text).toContain("101 Switching Protocols");
    expect(rig.hub.state("west").connections).toBe(2);
  });

  test("is refused once its Cluster has left", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const session = await firstSession(rig, identity);
    rig.refusals.set("west", "Cluster west has not joined");
    rig.hub.recheck("west");
    const again = await control(rig, identity, session);
    expect(again.socket.isSessionReused()).toBe(true);
    expect(again.text).toContain("403 Forbidden");
    expect(again.text).toContain("Cluster west has not joined");
  });

  test("is refused once its certificate has expired", async () => {
    const clock = new FakeClock(Date.now());
    const rig = await startHub({ clock });
    const identity = await identityOf(west, { lifetimeMs: HOUR_MS });
    const session = await firstSession(rig, identity);
    clock.jump(HOUR_MS);
    const again = await control(rig, identity, session);
    expect(again.socket.isSessionReused()).toBe(true);
    expect(again.text).toContain("the client certificate is not accepted (CERT_HAS_EXPIRED)");
  });

  test("has to show its certificate again once the hub trusts other authorities", async () => {
    const rig = await startHub();
    const identity = await identityOf(west);
    const session = await firstSession(rig, identity);
    const other = await issueAuthority("other", { now: Date.now(), lifetimeMs: HOUR_MS });
    const serving = await issueServing(await hubAuthority, ["127.0.0.1"], { now: Date.now(), lifetimeMs: HOUR_MS });
    rig.hub.renew({ ...serving, authorities: other.cert });
    const again = await control(rig, identity, session);
    expect(again.socket.isSessionReused()).toBe(false);
    expect(again.text).toContain("the client certificate is not accepted");
  });
});

test("takes agents of earlier versions, whose keys are RSA", async () => {
  const { hub, url } = await startHub();
  const { target } = await startMember();
  const { privateKey: key, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const authority = await hubAuthority;
  const options = { now: Date.now(), lifetimeMs: HOUR_MS };
  const cert = issueClient(authority, publicKey, { name: "west", uid: "1" }, options);
  const { agent } = runAgent(url, { ca: authority.cert, cert, key }, target);
  await vi.waitFor(() => expect(agent.connected).toBe(true), { timeout: 5_000 });
  const client = await memberClient(hub, "west");
  await expect(client.raw({ method: "GET", path: "/version" })).resolves.toEqual({ path: "/version" });
});
