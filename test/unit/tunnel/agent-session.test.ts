import { describe, expect, test } from "vitest";
import { identityOf, startHub } from "../../support/tunnel/rig.ts";
import { closed, control, never, stream, west } from "./hand-made-agent.ts";

describe("a hub", () => {
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

  test("keeps at most 1,000 connections that an agent leaves undialled", async () => {
    const rig = await startHub();
    const agent = await control(rig, await identityOf(west));
    const dialled = Array.from({ length: 1_001 }, () => rig.hub.dial("west", never));
    const results = Promise.allSettled(dialled);
    await expect(dialled[1_000]).rejects.toThrow("leaves 1000 connections undialled");
    agent.socket.destroy();
    expect((await results).map(({ status }) => status)).not.toContain("fulfilled");
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
});
