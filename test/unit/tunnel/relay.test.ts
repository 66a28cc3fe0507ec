import { describe, expect, test, vi } from "vitest";
import { RELAY_NAME, relayDial } from "../../../src/tunnel/relay.ts";
import { hubClient, identityOf, memberClient, runAgent, startHub, startMember } from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const access = { cluster: RELAY_NAME, uid: RELAY_NAME };
const never = new AbortController().signal;

/** Starts a hub and, unless it stays away, the agent of west. */
async function startRelay({ agent = true } = {}) {
  const relayRefusals = new Map<string, string>();
  // The controller refuses an agent of a Cluster that has not joined.
  const refusal = ({ cluster }: { readonly cluster: string }): string | undefined =>
    cluster === "west" ? undefined : `Cluster ${cluster} has not joined`;
  const rig = await startHub({ gatekeeper: { refusal, relayRefusal: (name) => relayRefusals.get(name) } });
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

  test("passes on the reason why a member's agent is not there", async () => {
    const { url } = await startRelay({ agent: false });
    const dial = relayDial(hubClient(url, await identityOf(access)), "west");
    await expect(dial(never)).rejects.toThrow("no agent of west has connected to this controller");
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
