import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { WayPending } from "../../../src/kube/errors.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { RELAY_NAME, RELAY_PATH, RELAY_PROTOCOL, relayDial } from "../../../src/tunnel/relay.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { hubClient, identityOf, memberClient, runAgent, startHub, startMember } from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const access = { cluster: RELAY_NAME, uid: RELAY_NAME };
const never = new AbortController().signal;

/** Starts a hub and, unless it stays away, the agent of west. */
async function startRelay({ agent = true, clock = realClock } = {}) {
  const relayRefusals = new Map<string, string>();
  // The controller refuses an agent of a Cluster that has not joined.
  const refusal = ({ cluster }: { readonly cluster: string }): string | undefined =>
    cluster === "west" ? undefined : `Cluster ${cluster} has not joined`;
  const rig = await startHub({ clock, gatekeeper: { refusal, relayRefusal: (name) => relayRefusals.get(name) } });
  const { server, target } = await startMember();
  if (agent) {
    runAgent(rig.url, await identityOf(west), target);
    await vi.waitUntil(() => rig.hub.state("west").connected, { timeout: 10_000 });
  }
  return { ...rig, relayRefusals, server };
}

describe("the relay of legation access", () => {
  test("reaches a member's API server through the hub and the member's agent, with TLS end to end", async () => {
    const { hub, url } = await startRelay();
    const dial = relayDial(hubClient(url, await identityOf(access)), "west");
    const client = await memberClient(hub, "west", dial);
    expect(await client.raw({ method: "GET", path: "/version" })).toEqual({ path: "/version" });
  });

  test("passes on why a member's agent is not there, and whether it may still come", async () => {
    const clock = new FakeClock();
    const { url } = await startRelay({ agent: false, clock });
    const dial = relayDial(hubClient(url, await identityOf(access)), "west");
    const message = "no agent of west has connected to this controller";
    const early = expect(dial(never)).rejects.toEqual(new WayPending(message));
    await vi.waitUntil(() => clock.pending > 0);
    await clock.advance(1_400);
    await early;
    await clock.advance(20_000);
    await expect(dial(never)).rejects.toEqual(new Error(message));
  });

  test("is refused for a member that takes no requests of users", async () => {
    const { url, relayRefusals } = await startRelay();
    relayRefusals.set("west", "Cluster west takes no requests of users");
    const dial = relayDial(hubClient(url, await identityOf(access)), "west");
    await expect(dial(never)).rejects.toThrow("Cluster west takes no requests of users");
  });

  test("is not open to an agent's certificate, nor to none", async () => {
    const { url } = await startRelay();
    const agents = await identityOf(west);
    await expect(relayDial(hubClient(url, agents), "west")(never)).rejects.toThrow(
      "the hub has no /relay/v1/clusters/west",
    );
    const { ca = "" } = agents;
    await expect(relayDial(hubClient(url, { ca }), "west")(never)).rejects.toThrow(
      "no client certificate was presented",
    );
  });

  test("has a certificate that makes no agent", async () => {
    const { hub, url } = await startRelay({ agent: false });
    const { target } = await startMember();
    const { logged } = runAgent(url, await identityOf(access), target);
    await vi.waitUntil(() => logged.some((line) => line.includes("has not joined")));
    expect(hub.state(RELAY_NAME).connected).toBe(false);
  });

  test("loses no byte that arrives together with the request", async () => {
    const { hub, url, port } = await startHub({ gatekeeper: { relayRefusal: () => undefined } });
    const echo = createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(0, "127.0.0.1");
    onTestFinished(() => void echo.close());
    await once(echo, "listening");
    runAgent(url, await identityOf(west), { host: "127.0.0.1", port: (echo.address() as AddressInfo).port });
    await vi.waitUntil(() => hub.state("west").connected, { timeout: 10_000 });
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...(await identityOf(access)) });
    onTestFinished(() => void socket.destroy());
    let answered = "";
    socket.on("data", (chunk) => {
      answered += String(chunk);
    });
    const headers = ["Host: hub", "Connection: Upgrade", `Upgrade: ${RELAY_PROTOCOL}`].join("\r\n");
    socket.write(`GET ${RELAY_PATH}west HTTP/1.1\r\n${headers}\r\n\r\nearly `);
    await vi.waitUntil(() => answered.includes("\r\n\r\n"), { timeout: 10_000 });
    socket.write("late");
    await vi.waitUntil(() => answered.endsWith("late"), { timeout: 10_000 });
    expect(answered).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nearly late$/);
  });

  test("ends its connection to the member with the user's", async () => {
    const { hub, url, server } = await startRelay();
    const socket = await relayDial(hubClient(url, await identityOf(access)), "west")(never);
    await vi.waitUntil(() => hub.state("west").streams === 1);
    socket.destroy();
    await vi.waitUntil(() => hub.state("west").streams === 0);
    const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));
    expect(open).toBeLessThanOrEqual(1);
  });
});
