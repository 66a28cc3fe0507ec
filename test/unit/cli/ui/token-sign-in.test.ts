import { expect, test } from "vitest";
import type { PageGate } from "../../../../src/cli/ui/gate.ts";
import { createPageServer } from "../../../../src/cli/ui/server.ts";
import { TokenSignIn, type TokenUser } from "../../../../src/cli/ui/token-sign-in.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { viewerOf } from "./viewer.ts";

const HOST = "legation.example.org";
const MINUTE_MS = 60_000;

/** A page that takes the tokens `alice` and `bob`, each until it is revoked. */
function servedPage(trustedProxies: readonly string[] = []) {
  const clock = new FakeClock();
  const revoked = new Set<string>();
  const closed: string[] = [];
  const asked: (string | undefined)[] = [];
  const gate: PageGate & TokenSignIn = new TokenSignIn({
    hosts: [HOST],
    clock,
    open: async (token, namespace): Promise<TokenUser> => {
      asked.push(namespace);
      if (token === "slow") await new Promise(() => {});
      if (token !== "alice" && token !== "bob" && !token.startsWith("user-")) throw kubeError("Unauthorized");
      return {
        viewer: { ...viewerOf(fakeClient({ find: async () => undefined })), user: token },
        check: async () => {
          if (revoked.has(token)) throw kubeError("Unauthorized");
        },
        close: async () => void closed.push(token),
      };
    },
  });
  const files = new Map([["/", { type: "text/html", content: "<p>page</p>" }]]);
  const server = createPageServer({ files, gate, trustedProxies });
  const ask = (url: string, headers: Record<string, string> = {}, method: "GET" | "DELETE" = "GET") =>
    server.inject({ method, url, headers: { host: HOST, ...headers } });
  const signIn = (token: string, headers: Record<string, string> = {}, remoteAddress = "10.0.0.9") =>
    server.inject({
      method: "POST",
      remoteAddress,
      url: "/api/session",
      headers: { host: HOST, "content-type": "application/json", ...headers },
      payload: JSON.stringify({ token }),
    });
  const cookieOf = async (token: string): Promise<string> => {
    const { headers } = await signIn(token);
    return String(headers["set-cookie"]).split(";", 1)[0] ?? "";
  };
  return { server, clock, revoked, closed, asked, ask, signIn, cookieOf };
}

test("serves the page to everybody, and nothing of a cluster without a session", async () => {
  const { ask } = servedPage();
  expect(await ask("/")).toMatchObject({ statusCode: 200, body: "<p>page</p>" });
  expect(await ask("/livez", { host: "10.0.0.7:8443" })).toMatchObject({ statusCode: 200, body: "ok" });
  for (const url of ["/api/live", "/api/session", "/api/pods/a/b", "/api/pods/a/b/log?container=c"]) {
    const answer = await ask(url);
    expect(answer.statusCode, url).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
  }
});

test("passes the namespace on that a user asks to see, and none for an empty field", async () => {
  const { server, asked } = servedPage();
  const headers = { host: HOST, "content-type": "application/json" };
  for (const namespace of [" shop ", "", undefined]) {
    const payload = JSON.stringify({ token: "alice", namespace });
    expect((await server.inject({ method: "POST", url: "/api/session", headers, payload })).statusCode).toBe(200);
  }
  expect(asked).toEqual(["shop", undefined, undefined]);
});

test.each([
  ["GET", "/%61pi/session"],
  ["POST", "/%61pi/plan"],
  ["POST", "/"],
  ["POST", "/nothing"],
] as const)("reads no body of %s %s without a session", async (method, url) => {
  const { server } = servedPage();
  const headers = { host: HOST, "content-type": "application/yaml" };
  const answer = await server.inject({ method, url, headers, payload: "x".repeat(2 ** 21 + 1) });
  expect(answer.statusCode).toBe(401);
});

test("signs in by a token that the API server accepts, and reads as its user", async () => {
  const { signIn, ask } = servedPage();
  const answer = await signIn("alice");
  expect(answer.statusCode).toBe(200);
  const cookie = String(answer.headers["set-cookie"]);
  expect(cookie).toMatch(/^__Host-legation-ui-443=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
  expect(cookie).not.toContain("alice");
  const session = await ask("/api/session", { cookie: cookie.split(";", 1)[0] ?? "" });
  expect(session.json()).toEqual({ by: "token", user: "alice" });
});

test.each([
  ["that the API server refuses", "mallory", 401],
  ["that is empty", " ", 400],
  ["of 20 kB", "x".repeat(20_000), 400],
])("takes no token %s", async (_, token, status) => {
  const { signIn } = servedPage();
  const answer = await signIn(token);
  expect(answer.statusCode).toBe(status);
  expect(answer.headers["set-cookie"]).toBeUndefined();
});

test.each([
  ["another host name", { host: "evil.example.org" }, 403],
  ["a page of another origin", { origin: "https://evil.example.org" }, 403],
  ["plain HTTP of the same name", { origin: `http://${HOST}` }, 403],
  ["another site", { "sec-fetch-site": "cross-site" }, 403],
  ["a sibling of the site", { "sec-fetch-site": "same-site" }, 403],
  ["a form", { "content-type": "text/plain" }, 415],
])("refuses to sign in for %s", async (_, headers, status) => {
  const { signIn } = servedPage();
  expect((await signIn("alice", headers)).statusCode).toBe(status);
});

const LINK = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

test.each([
  ["opens the page by a link of another site", "/", LINK, 200],
  ["opens nothing else by such a link", "/api/session", LINK, 403],
  ["is not shown inside another site", "/", { ...LINK, "sec-fetch-dest": "iframe" }, 403],
  ["is not read by a script of another site", "/", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" }, 403],
])("limits what another site can do: %s", async (_, url, headers, status) => {
  const { ask } = servedPage();
  expect((await ask(url, headers)).statusCode).toBe(status);
});

test("keeps the sessions of two pages on one host apart", async () => {
  const { signIn, ask } = servedPage();
  const { headers } = await signIn("alice", { host: `${HOST}:8443` });
  const cookie = String(headers["set-cookie"]).split(";", 1)[0] ?? "";
  expect(cookie).toMatch(/^__Host-legation-ui-8443=/);
  expect((await ask("/api/session", { host: `${HOST}:8443`, cookie })).statusCode).toBe(200);
  const gone = await ask("/api/session", { host: `${HOST}:8443`, cookie }, "DELETE");
  expect(gone.headers["set-cookie"]).toMatch(/^__Host-legation-ui-8443=;/);
});

test("takes requests by port-forward, and by its name in any case", async () => {
  const { signIn } = servedPage();
  for (const host of ["localhost:9443", "127.0.0.1:9443", "[::1]:9443", `${HOST.toUpperCase()}:443`]) {
    expect((await signIn("alice", { host })).statusCode, host).toBe(200);
  }
});

test("keeps users apart, and ends a session that is signed out of", async () => {
  const { cookieOf, ask, closed } = servedPage();
  const [alice, bob] = [await cookieOf("alice"), await cookieOf("bob")];
  const gone = await ask("/api/session", { cookie: alice }, "DELETE");
  expect(gone.headers["set-cookie"]).toContain("Max-Age=0");
  expect(closed).toEqual(["alice"]);
  expect((await ask("/api/session", { cookie: alice })).statusCode).toBe(401);
  expect((await ask("/api/session", { cookie: bob })).json()).toMatchObject({ user: "bob" });
});

test("refuses to sign a user out for a page of another origin", async () => {
  const { cookieOf, ask, closed } = servedPage();
  const cookie = await cookieOf("alice");
  const answer = await ask("/api/session", { cookie, origin: "https://evil.example.org" }, "DELETE");
  expect(answer.statusCode).toBe(403);
  expect(closed).toEqual([]);
});

test("ends a session once its token is revoked, and others not", async () => {
  const { clock, revoked, cookieOf, ask } = servedPage();
  const [alice, bob] = [await cookieOf("alice"), await cookieOf("bob")];
  revoked.add("alice");
  await clock.advance(MINUTE_MS);
  expect((await ask("/api/session", { cookie: alice })).statusCode).toBe(401);
  expect((await ask("/api/session", { cookie: bob })).statusCode).toBe(200);
});

test("ends sessions that nobody uses for half an hour, and all after twelve hours", async () => {
  const { clock, cookieOf, ask } = servedPage();
  const [idle, used] = [await cookieOf("alice"), await cookieOf("bob")];
  const hours = 12;
  for (let minute = 0; minute < 60 * hours; minute += 20) {
    expect((await ask("/api/session", { cookie: used })).statusCode, `minute ${minute}`).toBe(200);
    await clock.advance(20 * MINUTE_MS);
  }
  expect((await ask("/api/session", { cookie: idle })).statusCode).toBe(401);
  await clock.advance(MINUTE_MS);
  expect((await ask("/api/session", { cookie: used })).statusCode).toBe(401);
});

test("asks the API server of a few tokens at a time, and of fewer from one address", async () => {
  const { signIn } = servedPage();
  const slow = async (from: string): Promise<void> => {
    for (let index = 0; index < 4; index++) void signIn("slow", {}, from);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await slow("2001:db8::1");
  expect((await signIn("alice", {}, "2001:db8::2")).statusCode).toBe(429);
  expect((await signIn("alice", {}, "10.0.0.8")).statusCode).toBe(200);
  await slow("10.0.0.7");
  expect((await signIn("alice", {}, "10.0.0.8")).statusCode).toBe(429);
});

test("takes twenty tokens of an address at once, and then one in three seconds", async () => {
  const { signIn, clock } = servedPage();
  const statusesOf = async (count: number, from: string): Promise<number[]> => {
    const statuses: number[] = [];
    for (let index = 0; index < count; index++) statuses.push((await signIn("mallory", {}, from)).statusCode);
    return statuses;
  };
  expect(new Set(await statusesOf(20, "2001:db8::1"))).toEqual(new Set([401]));
  const answer = await signIn("alice", {}, "2001:db8::2");
  expect([answer.statusCode, answer.json().message]).toEqual([
    429,
    "too many tokens came from your address: try again in 3 seconds",
  ]);
  expect((await signIn("alice", {}, "10.0.0.8")).statusCode).toBe(200);
  await clock.advance(3_000);
  expect(await statusesOf(2, "2001:db8::1")).toEqual([401, 429]);
});

test("limits the users behind a trusted proxy by their own addresses", async () => {
  const { signIn } = servedPage(["10.244.0.0/16", "fd00::/8"]);
  const behind =
    (address: string, from = "10.244.1.2") =>
    (token: string) =>
      signIn(token, { "x-forwarded-for": address }, from);
  const [mallory, alice] = [behind("203.0.113.1"), behind("203.0.113.2")];
  for (let index = 0; index < 20; index++) expect((await mallory("wrong")).statusCode).toBe(401);
  expect((await mallory("wrong")).statusCode).toBe(429);
  expect((await alice("alice")).statusCode).toBe(200);
  // The proxy appends the address that it sees to a header that the browser wrote.
  expect((await behind("203.0.113.2, 203.0.113.1")("wrong")).statusCode).toBe(429);
  expect((await behind("203.0.113.1", "::ffff:10.244.9.9")("wrong")).statusCode).toBe(429);
});

test.each([[[]], [["192.0.2.0/24"]]])("believes no other proxy than %j", async (trusted) => {
  const { signIn } = servedPage(trusted);
  const behind = async (index: number): Promise<number> =>
    (await signIn("wrong", { "x-forwarded-for": `203.0.113.${index}` }, "10.244.1.2")).statusCode;
  for (let index = 0; index < 20; index++) expect(await behind(index)).toBe(401);
  expect(await behind(20)).toBe(429);
});

test("ends a user's oldest session for a sixth one, and leaves other users room", async () => {
  const { cookieOf, ask, closed } = servedPage();
  const bob = await cookieOf("bob");
  const cookies: string[] = [];
  for (let index = 0; index < 6; index++) cookies.push(await cookieOf("alice"));
  expect(closed).toEqual(["alice"]);
  const statuses = await Promise.all(
    [bob, ...cookies].map(async (cookie) => (await ask("/api/session", { cookie })).statusCode),
  );
  expect(statuses).toEqual([200, 401, 200, 200, 200, 200, 200]);
});

test("takes no more sessions than there is memory for, those counted that are beginning", async () => {
  const { signIn } = servedPage();
  for (let index = 0; index < 98; index++) {
    expect((await signIn(`user-${index}`, {}, `10.0.1.${index}`)).statusCode).toBe(200);
  }
  void signIn("slow");
  void signIn("slow");
  await new Promise((resolve) => setImmediate(resolve));
  expect((await signIn("alice")).statusCode).toBe(429);
});
