import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exchange, Rig, requestOf, WEST } from "./rig.ts";

const SECRETS = `${WEST}/api/v1/secrets`;
const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket"];
const NEXT = requestOf("/livez", ["Connection: close"]);

let rig: Rig;
beforeEach(async () => {
  rig = await Rig.start();
});
afterEach(() => rig.close());

/** Has the member answer every request with these lines, and nothing else. */
function answers(...lines: string[]): void {
  const text = lines.join("\r\n");
  rig.member.onRequest = ({ socket }) => socket.write(text);
  rig.member.onUpgrade = (_request, socket) => socket.write(text);
}

/** Returns the answer to an upgrade request. */
async function upgraded(): Promise<string> {
  return await exchange(await rig.connect(), requestOf(SECRETS, UPGRADE));
}

/** Returns the answer to a request. Expects that the next user on the connection of the host's API server gets their own. */
async function answered(): Promise<string> {
  const [before, first = "", next, ...rest] = (await exchange(await rig.connect(), requestOf(SECRETS) + NEXT)).split(
    /HTTP\/1\.1 (?=\d{3} )/,
  );
  expect({ before, rest }).toEqual({ before: "", rest: [] });
  expect(next).toMatch(/^200 OK\r\n[\s\S]*\r\n\r\nok$/);
  return first;
}

const ways = [
  ["a request", answered],
  ["an upgrade", upgraded],
] as const;

describe("a hostile member", () => {
  test.each(ways)("redirects no user who sends %s", async (_what, send) => {
    answers("HTTP/1.1 307 Temporary Redirect", "Location: https://evil.example/", "Content-Length: 0", "", "");
    const answer = await send();
    expect(answer).toMatch(/^(HTTP\/1\.1 )?503 [\s\S]*Cluster west answered with a redirect, which is not passed on/);
    expect(answer).not.toMatch(/location|evil/i);
  });

  test.each(ways)("asks no user who sends %s for other credentials", async (_what, send) => {
    answers("HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic", "Content-Length: 0", "", "");
    const answer = await send();
    expect(answer).toMatch(/^(HTTP\/1\.1 )?503 [\s\S]*refuses the credentials of legation access/);
    expect(answer).not.toMatch(/www-authenticate/i);
  });

  const ORDERS = [
    "Set-Cookie: session=evil",
    'Clear-Site-Data: "cookies"; evil',
    "Strict-Transport-Security: max-age=31536000; evil",
    'Alt-Svc: h2="evil.example:443"',
    "Refresh: 0; url=https://evil.example",
    "Service-Worker-Allowed: /evil",
    'Reporting-Endpoints: default="https://evil.example"',
  ];

  test.each(ways)("gives a browser no orders about the host, of a user who sends %s", async (_what, send) => {
    answers("HTTP/1.1 403 Forbidden", ...ORDERS, "X-Kept: yes", "Content-Length: 2", "", "no");
    const answer = await send();
    expect(answer).toMatch(/^(HTTP\/1\.1 )?403 [\s\S]*x-kept: yes\r\n[\s\S]*\r\n\r\nno$/i);
    expect(answer).not.toContain("evil");
  });

  test("gives a browser no orders about the host with an upgraded connection", async () => {
    rig.member.onUpgrade = (_request, socket) =>
      socket.end(["HTTP/1.1 101 Yes", ...UPGRADE, ...ORDERS, "", "bytes"].join("\r\n"));
    const answer = await upgraded();
    expect(answer).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nbytes$/);
    expect(answer).not.toContain("evil");
  });

  test("may answer that a document has not changed", async () => {
    answers("HTTP/1.1 304 Not Modified", 'ETag: "1"', "", "");
    expect(await answered()).toMatch(/^304 [\s\S]*ETag: "1"/);
  });

  const json = "Content-Type: application/json";
  // Bytes that the member wants the next user to get.
  const planted = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
  const chunk = `${planted.length.toString(16)}\r\n${planted}\r\n0\r\n\r\n`;
  test.each([
    ["headers without an end", ["HTTP/1.1 200 OK", `X-Long: ${"x".repeat(2 ** 20)}`]],
    ["headers without number", ["HTTP/1.1 200 OK", ...Array.from({ length: 2 ** 15 }, (_, n) => `X-${n}: x`)]],
    ["another protocol", ["HTTP/1.1 101 Switching Protocols", ...UPGRADE, "", planted]],
    ["an interim answer that was not asked for", ["HTTP/1.1 100 Continue", "", planted]],
    ["two lengths", ["HTTP/1.1 200 OK", json, "Content-Length: 0", `Content-Length: ${planted.length}`, "", planted]],
    ["chunks and a length", ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 0", "", chunk]],
    ["a length and chunks", ["HTTP/1.1 200 OK", "Content-Length: 0", "Transfer-Encoding: chunked", "", chunk]],
    ["a length and an unknown coding", ["HTTP/1.1 200 OK", "Content-Length: 0", "Transfer-Encoding: x", "", planted]],
    ["a control character in a header", ["HTTP/1.1 200 OK", "X-Bell: a\u0007b", "Content-Length: 0", "", ""]],
    ["a bare line feed in a header", ["HTTP/1.1 200 OK", `X-Split: a\n${planted}`, "", ""]],
    ["no HTTP at all", ["220 mail.example ESMTP", "", ""]],
  ])("plants nothing for this user or the next one with %s", async (_what, lines) => {
    answers(...lines);
    expect(await answered()).toMatch(/^503 [\s\S]*"message":"Cluster west did not answer/);
  });

  test("plants nothing for the next user with more body than it announces", async () => {
    answers("HTTP/1.1 200 OK", "Content-Length: 2", "", `ok${planted}`);
    expect(await answered()).toMatch(/^200 [\s\S]*\r\n\r\nok$/);
  });

  test("keeps no connection of a user who has gone, whatever it goes on sending", async () => {
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(100);
    const flooding = new Promise<NodeJS.EventEmitter>((resolve) => {
      rig.member.onRequest = ({ socket }) => {
        const send = (): void => {
          if (!socket.destroyed) socket.write(hints, () => setImmediate(send));
        };
        send();
        resolve(socket);
      };
    });
    const user = await rig.connect();
    user.write(requestOf(SECRETS));
    const member = await flooding;
    member.on("error", () => {});
    const closed = new Promise((resolve) => member.once("close", resolve));
    await sleep(50);
    user.destroy();
    await closed;
    answers("HTTP/1.1 200 OK", "Content-Length: 2", "", "ok");
    expect(await answered()).toMatch(/^200 /);
  });
});
