import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { headers, signedIn } from "./signed-in.ts";

test("sends a browser with the token to the page without it", async () => {
  const { server, get } = await signedIn({});
  const page = await get("/");
  expect(page).toMatchObject({ statusCode: 200, body: "<p>page</p>" });
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(await server.inject({ url: "/", headers })).toMatchObject({ statusCode: 401 });
});

test.each(["POST", "PUT", "PATCH", "DELETE"] as const)("serves no %s of a pod", async (method) => {
  const { server, cookie } = await signedIn({});
  const answer = await server.inject({ method, url: "/api/pods/team/web-0", headers: { ...headers, cookie } });
  expect(answer.statusCode).toBe(404);
});

test.each([
  ["404 for a pod that is not on the host", { find: async () => undefined }, 404, "is not on the host"],
  ["403 with the right that is missing", { find: () => Promise.reject(kubeError("Forbidden")) }, 403, ""],
  ["502 for a host that does not answer", { find: () => Promise.reject(kubeError("AnswerLost")) }, 502, ""],
])("answers a request for a pod with %s", async (_, methods, status, message) => {
  const { get } = await signedIn(methods);
  const answer = await get("/api/pods/team/web-0");
  expect(answer.statusCode).toBe(status);
  expect(answer.json().message).toContain(message);
});

test("shows objects whose names are long, with each character escaped", async () => {
  const names: string[] = [];
  const { get } = await signedIn({
    find: async (_, { name }) => {
      names.push(name);
      return undefined;
    },
  });
  const name = "%61".repeat(253);
  expect((await get(`/api/pods/team/${name}`)).statusCode).toBe(404);
  expect(names).toContain("a".repeat(253));
});

describe("of clients without a session", () => {
  /** A listening page that keeps two strangers, and connections to it. */
  async function listening() {
    const { server, cookie } = await signedIn({}, undefined, { mostStrangers: 2 });
    await server.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => void server.close());
    const { port } = server.server.address() as AddressInfo;
    const open = async (): Promise<Socket> => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      await once(socket, "connect");
      return socket;
    };
    return { open, cookie, port, server };
  }

  test("the oldest connection is cut beyond the most, and none of a signed-in user", async () => {
    const { open, server, cookie, port } = await listening();
    const user = await open();
    // The test's cookie is that of port 0.
    user.write(`GET / HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncookie: ${cookie.replace("-0=", `-${port}=`)}\r\n\r\n`);
    const [answer] = await once(user, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 200/);
    const oldest = await open();
    const closed = once(oldest, "close");
    await open();
    await open();
    await closed;
    expect(user.destroyed).toBe(false);
    expect(server.server.requestTimeout).toBeGreaterThan(0);
  });
});

test("passes on a container's log, and the API server's reason when there is none", async () => {
  const { get } = await signedIn({ stream: async () => ({ body: Readable.from(["one\n", "two\n"]), headers: {} }) });
  expect((await get("/api/pods/team/web-0/log?container=main")).body).toBe("one\ntwo\n");
  const waiting = await signedIn({
    stream: async () => ({ status: 400, headers: {}, text: '{"kind":"Status","message":"is waiting"}' }),
  });
  const answer = await waiting.get("/api/pods/team/web-0/log?container=main");
  expect(answer).toMatchObject({ statusCode: 502 });
  expect(answer.json()).toEqual({ message: "is waiting" });
});

test("tells a user who may not read logs so, by status", async () => {
  const text = '{"kind":"Status","message":"pods/log is forbidden"}';
  const { get } = await signedIn({ stream: async () => ({ status: 403, headers: {}, text }) });
  const answer = await get("/api/pods/team/web-0/log?container=main");
  expect([answer.statusCode, answer.json()]).toEqual([403, { message: "pods/log is forbidden" }]);
});
