import { Agent } from "node:https";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ServedNode, STREAM } from "./served-node.ts";

let node: ServedNode;
beforeEach(async () => {
  node = await ServedNode.create();
});

describe("who asks a virtual node", () => {
  test("reads name and groups from a certificate of the host's authority", async () => {
    await node.serve(node.authority.pem);
    expect(await node.ask({ certificate: node.caller })).toBe(200);
    expect(node.reviews).toMatchObject([
      {
        spec: {
          user: "api-server",
          groups: ["trusted", "system:authenticated"],
          resourceAttributes: { verb: "get", resource: "nodes", subresource: "healthz", name: "legation-west" },
        },
      },
    ]);
  });

  test.each<[string, object, number]>([
    ["that the host knows", { authenticated: true, user: { username: "robot" } }, 200],
    [
      "that the host does not vouch for, though it names a user",
      { authenticated: false, user: { username: "robot" } },
      401,
    ],
    ["of which the host says nothing but a user", { user: { username: "robot" } }, 401],
    ["without a user's name", { authenticated: true, user: { username: "" } }, 401],
  ])("answers a token %s", async (_which, status, expected) => {
    await node.serve(undefined);
    node.tokenStatus = status;
    expect(await node.ask({ token: "token" })).toBe(expected);
  });

  test("refuses a server certificate, and any certificate while the host publishes no authority", async () => {
    await node.serve(node.authority.pem);
    const ofServer = await node.authority.issue({ commonName: "system:admin", usage: "serverAuth" });
    expect(await node.ask({ certificate: ofServer })).toBe(401);
    node.server?.renew({ certificate: node.serving, clientAuthority: undefined });
    expect(await node.ask({ certificate: node.caller })).toBe(401);
  });

  test("accepts certificates once an authority is published, on earlier connections too", async () => {
    await node.serve(undefined);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await node.ask({ certificate: node.caller, agent })).toBe(401);
    node.server?.renew({ certificate: node.serving, clientAuthority: node.authority.pem });
    await expect.poll(() => node.ask({ certificate: node.caller, agent }).catch(() => 0)).toBe(200);
  });

  test("forgets a connection whose authority is gone", async () => {
    await node.serve(node.authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await node.ask({ certificate: node.caller, agent })).toBe(200);
    node.server?.renew({ certificate: node.serving, clientAuthority: node.other.pem });
    await expect.poll(() => node.ask({ certificate: node.caller, agent }).catch(() => 0)).toBe(401);
  });

  test.each<[string, object]>([
    ["request", {}],
    ["stream", STREAM],
  ])("serves no further %s on a connection whose authority went while it was in use", async (_what, next) => {
    await node.serve(node.authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const answered = Promise.withResolvers<void>();
    node.hostsWait = answered.promise;
    const underWay = node.ask({ certificate: node.caller, agent });
    await expect.poll(() => node.reviews.length).toBe(1);
    node.server?.renew({ certificate: node.serving, clientAuthority: node.other.pem });
    answered.resolve();
    expect(await underWay).toBe(200);
    expect(await node.ask({ certificate: node.caller, agent, ...next }).catch(() => 0)).toBe(0);
    expect(await node.ask({ certificate: node.caller, agent, ...next })).toBe(401);
  });

  test("forgets an expired certificate, also on an earlier connection", async () => {
    await node.serve(node.authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await node.ask({ certificate: node.caller, agent })).toBe(200);
    await node.clock.advance(31 * 24 * 60 * 60_000);
    expect(await node.ask({ certificate: node.caller, agent })).toBe(401);
  });

  test("serves no caller while the host cannot be asked, and does not cache that", async () => {
    await node.serve(node.authority.pem);
    node.hostAnswers = false;
    expect(await node.ask({ certificate: node.caller })).toBe(500);
    expect(await node.ask({ token: "any" })).toBe(500);
    node.hostAnswers = true;
    expect(await node.ask({ certificate: node.caller })).toBe(200);
  });
});
