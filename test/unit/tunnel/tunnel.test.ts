import { describe, expect, test, vi } from "vitest";
import { type KubeError, WayPending } from "../../../src/kube/errors.ts";
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

  test("says so when no agent is connected, and that one may still come within 20 s of the hub's start", async () => {
    const clock = new FakeClock();
    const { hub } = await startHub({ clock });
    const client = await memberClient(hub, "west");
    const asked = client.raw({ method: "GET", path: "/" }).catch((error: KubeError) => error);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await vi.waitUntil(() => clock.pending > 0);
      await clock.advance(1_400);
    }
    const detail = "no agent of west has connected to this controller";
    expect(await asked).toMatchObject({ detail, cause: new WayPending(detail) });
    await clock.advance(20_000);
    const late = await client.raw({ method: "GET", path: "/" }).catch((error: KubeError) => error);
    expect(late).toMatchObject({ detail, cause: new Error(detail) });
  });
});
