import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Authority } from "../../support/clusters/pki.ts";
import { exchange, Rig, requestOf, WEST } from "./rig.ts";

const CLOSE = "Connection: close";
let rig: Rig;
beforeEach(async () => {
  rig = await Rig.start();
});
afterEach(() => rig.close());

function linesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

describe("who is believed", () => {
  test("is the host's API server, whose user the member is asked as", async () => {
    const lines = ["X-Remote-Uid: u1", "X-Remote-Extra-Acme.com%2Fteam: x", "Audit-ID: a1", CLOSE];
    expect(await rig.statusOf(requestOf(`${WEST}/api/v1/pods?limit=1`, lines))).toBe(200);
    const [request] = rig.member.requests;
    expect(request?.url).toBe("/api/v1/pods?limit=1");
    expect(request?.headers).toMatchObject({
      authorization: "Bearer legation-token",
      "impersonate-user": "legation:alice",
      "impersonate-group": "legation:a",
      "impersonate-uid": "u1",
      "impersonate-extra-acme.com%2fteam": "x",
      "audit-id": "a1",
    });
    expect(request?.rawHeaders.some((each) => /^x-remote-/i.test(each))).toBe(false);
    expect(rig.reviews).toEqual([
      expect.objectContaining({
        attributes: {
          verb: "get",
          group: "access.legation.dev",
          version: "v1",
          resource: "clusters",
          subresource: "proxy",
          name: "west",
        },
      }),
    ]);
  });

  test("refuses a caller without a certificate, with one of another authority, or with one that may not speak for users", async () => {
    const other = await Authority.create("other");
    const [foreign, wrongName] = await Promise.all([
      other.issue({ commonName: "front-proxy-client", usage: "clientAuth" }),
      rig.authority.issue({ commonName: "alice", usage: "clientAuth" }),
    ]);
    const asked = requestOf(`${WEST}/api`, ["Authorization: Bearer some", CLOSE]);
    expect(
      await Promise.all([rig.statusOf(asked, "none"), rig.statusOf(asked, foreign), rig.statusOf(asked, wrongName)]),
    ).toEqual([401, 401, 401]);
    expect(rig.reviews).toEqual([]);
    expect(rig.member.requests).toEqual([]);
  });

  test("refuses a certificate of an authority that was replaced", async () => {
    const socket = await rig.connect();
    const next = await Authority.create("next");
    const made = await next.issue({ commonName: "access", usage: "serverAuth", addresses: ["127.0.0.1"] });
    rig.server.renew({ certificate: { cert: made.certificate, key: made.key }, clientAuthority: next.pem });
    expect(await exchange(socket, requestOf(`${WEST}/api`))).toBe("");
    expect(rig.member.requests).toEqual([]);
  });
});

describe("what a member is asked", () => {
  test("is the user's own, whatever the bytes of a request are: never with the rights of Legation", async () => {
    const header = fc.oneof(
      fc.constantFrom(
        "Impersonate-User: admin",
        "Impersonate-Group: system:masters",
        "impersonate-extra-a: b",
        "Impersonate-User : admin",
        "Authorization: Bearer stolen",
        "X-Remote-Group: system:masters",
        "X-Remote-User: admin",
        "X-Remote-User:",
        "Connection: X-Remote-User, Impersonate-User",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Upgrade: h2c",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: identity, chunked",
        "Content-Length: 5",
        "Content-Length: 0",
        "Content-Length: +5",
        "Host: other",
        "Expect: 100-continue",
        " folded: line",
        "X\tY: z",
      ),
      fc.string({ maxLength: 20 }),
    );
    const rest = fc.constantFrom(
      "/api",
      "/../east/proxy/api",
      "/api%2f..",
      "//api",
      "?a=b",
      "/%00",
      "",
      "/api HTTP/1.1\r\nX: y\r\n",
    );
    const body = fc.constantFrom("", "hello", "5\r\nhello\r\n0\r\n\r\n", requestOf(`${WEST}/smuggled`));
    const method = fc.constantFrom("GET", "POST", "DELETE", "CONNECT", "TRACE", "get");
    rig.member.onUpgrade = (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    await fc.assert(
      fc.asyncProperty(method, rest, fc.array(header, { maxLength: 4 }), body, async (verb, path, headers, sent) => {
        rig.member.requests.length = 0;
        const socket = await rig.connect();
        const wait = exchange(socket, `${requestOf(`${WEST}${path}`, [...headers, CLOSE], verb)}${sent}`);
        await Promise.race([wait, sleep(300)]);
        socket.destroy();
        for (const request of rig.member.requests) {
          expect(linesOf(request, "impersonate-user")).toEqual(["legation:alice"]);
          expect(linesOf(request, "authorization")).toEqual(["Bearer legation-token"]);
          expect(linesOf(request, "impersonate-group").every((group) => group.startsWith("legation:"))).toBe(true);
          expect(request.headers["impersonate-extra-a"]).toBeUndefined();
          expect(request.url).not.toMatch(/\.\.|\/\/|%2f|%00/i);
        }
      }),
      { numRuns: 40 },
    );
  }, 60_000);
});

describe("a refused request", () => {
  test("reaches no member, and says why", async () => {
    rig.allowed = false;
    const denied = await exchange(await rig.connect(), requestOf(`${WEST}/version`, [CLOSE]));
    expect(denied).toMatch(/^HTTP\/1\.1 403 [\s\S]*User \\"alice\\" cannot get resource \\"clusters\/proxy\\"/);
    rig.allowed = true;
    rig.found = { reason: "Forbidden", message: "closed" };
    const closed = await exchange(await rig.connect(), requestOf(`${WEST}/version`, [CLOSE]));
    expect(closed).toMatch(/^HTTP\/1\.1 403 [\s\S]*"message":"closed"/);
    // kubectl shows the text of a failed discovery alone.
    const discovery = await exchange(await rig.connect(), requestOf(`${WEST}/api?timeout=1s`, [CLOSE]));
    expect(discovery).toMatch(/^HTTP\/1\.1 403 [\s\S]*text\/plain[\s\S]*\r\n\r\nclosed$/);
    rig.found = undefined;
    expect(await rig.statusOf(requestOf(`${WEST}/api/../x`, [CLOSE]))).toBe(400);
    expect(await rig.statusOf(requestOf("/apis/other/v1", [CLOSE]))).toBe(404);
    expect(rig.member.requests).toEqual([]);
  });
});
