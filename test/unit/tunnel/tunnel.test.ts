import { describe, expect, test, vi } from "vitest";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { identityOf, memberClient, runAgent, startHub, startMember } from "../../support/tunnel/rig.ts";

describe("a tunnel", () => {
  test("carries requests to the API server of the agent's cluster", async () => {
    const { hub, url } = await startHub();
    const { target } = await startMember();
    const { agent } = runAgent(url, await identityOf({ cluster: "west", uid: "1" }), target);
    await vi.waitFor(() => expect(agent.connected).toBe(true), { timeout: 5_000 });
    const client = await memberClient(hub, "west");
    await expect(client.raw({ method: "GET", path: "/version" })).resolves.toEqual({ path: "/version" });
    expect(hub.state("west")).toMatchObject({ connected: true, connections: 1, streams: 1 });
  });

  test("says so when no agent is connected", async () => {
    const clock = new FakeClock();
    const { hub } = await startHub({ clock });
    await clock.advance(20_000);
    const client = await memberClient(hub, "west");
    await expect(client.raw({ method: "GET", path: "/" })).rejects.toThrow(
      "no agent of west has connected to this controller",
    );
  });
});
