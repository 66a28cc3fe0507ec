import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { LiveView } from "../../../../src/cli/ui/live-view.ts";
import { createPageServer } from "../../../../src/cli/ui/server.ts";
import { SignIn } from "../../../../src/cli/ui/sign-in.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { realClock } from "../../../../src/runtime/clock.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../client.ts";
import { recordedSession } from "../session.ts";

// `inject` has no port.
const headers = { host: "127.0.0.1:0" };

/** A page server with a signed-in browser. */
async function signedIn(methods: Partial<ClusterClient>) {
  const host = fakeClient(methods);
  const signIn = new SignIn();
  const server = createPageServer({
    host,
    hostName: "host",
    namespace: "team",
    view: new LiveView({ host, clock: realClock, log: createLogger({ level: "silent" }) }),
    files: new Map([["/", { type: "text/html", content: "<p>page</p>" }]]),
    signIn,
    session: recordedSession(),
  });
  const { headers: answered } = await server.inject({ url: signIn.path, headers });
  const cookie = String(answered["set-cookie"]).split(";", 1)[0] ?? "";
  const get = (url: string) => server.inject({ url, headers: { ...headers, cookie } });
  return { server, get, cookie };
}

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
  ["what is no YAML", "application/yaml", "a: b: c", 404, "the manifest"],
  [
    "a manifest without workloads",
    "application/yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}",
    404,
    "to plan",
  ],
  ["a form of another page", "text/plain", "apiVersion: v1", 415, ""],
])("refuses to plan %s", async (_, type, payload, status, message) => {
  const { server, cookie } = await signedIn({});
  const request = {
    method: "POST",
    url: "/api/plan",
    payload,
    headers: { ...headers, cookie, "content-type": type },
  } as const;
  const answer = await server.inject(request);
  expect(answer.statusCode).toBe(status);
  expect(answer.json().message).toContain(message);
});

test("shows a pod with its way, its containers and its YAML without managedFields", async () => {
  const managed = proxyPod({ metadata: { managedFields: [{ manager: "m" }] }, status: runningStatus() });
  const { get } = await signedIn({
    find: async () => managed as never,
    list: async () => ({ items: [], resourceVersion: "1", size: 0 }),
  });
  const answer = (await get("/api/pods/team/web-0")).json();
  expect(answer).toMatchObject({ journey: { pod: "team/web-0", delegated: true }, containers: ["main"] });
  expect(answer.yaml).toContain("name: web-0");
  expect(answer.yaml).not.toContain("managedFields");
});

test.each([
  ["404 for a pod that is not on the host", { find: async () => undefined }, 404, "is not on the host"],
  ["403 with the right that is missing", { find: () => Promise.reject(kubeError("Forbidden")) }, 403, ""],
  ["502 for a host that does not answer", { find: () => Promise.reject(kubeError("AnswerLost")) }, 502, ""],
])("answers %s", async (_, methods, status, message) => {
  const { get } = await signedIn(methods);
  const answer = await get("/api/pods/team/web-0");
  expect(answer.statusCode).toBe(status);
  expect(answer.json().message).toContain(message);
});

test.each([
  "/api/pods/team/web-0/log",
  "/api/pods/team/web-0/log?container=main&tail=-1",
  "/api/workloads/Secret/team/web",
])("refuses %s", async (url) => {
  const { get } = await signedIn({});
  expect((await get(url)).statusCode).toBe(400);
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
