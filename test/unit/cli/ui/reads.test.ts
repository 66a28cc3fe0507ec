import { expect, test } from "vitest";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { type FakeMethods, fakeClient } from "../../../support/clients/fake-client.ts";
import { headers, signedIn } from "./signed-in.ts";

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

test("shows a pod with its way and its containers, of which the default one comes first", async () => {
  const spec = { initContainers: [{ name: "setup" }], containers: [{ name: "main" }, { name: "proxy" }] };
  const annotations = { "kubectl.kubernetes.io/default-container": "proxy" };
  const { get } = await signedIn({
    find: async () => proxyPod({ metadata: { annotations }, spec, status: runningStatus() }),
    list: async () => ({ items: [], resourceVersion: "1", size: 0 }),
  });
  const answer = (await get("/api/pods/team/web-0")).json();
  expect(answer).toMatchObject({
    journey: { pod: "team/web-0", delegated: true },
    defaultContainer: "proxy",
    containers: [
      { name: "setup", kind: "init", log: "none", why: "waits to start" },
      { name: "main", kind: "container", log: "growing" },
      { name: "proxy", kind: "container" },
    ],
  });
});

test("says what is wrong without flags of the command line, which the page has none of", async () => {
  const { get } = await signedIn({ find: async () => undefined });
  const answer = await get("/api/pods/team/web-0");
  expect(answer.statusCode).toBe(404);
  expect(answer.json().message).toBe("pod team/web-0: is not on the host; check its name and namespace");
  const { message } = (await get("/api/workloads/Workflow/team/web")).json();
  expect(message).toContain("none of Kubernetes' own workloads");
});

test("reads when a pod's delegate was made in its member, as the user", async () => {
  const annotations = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": "uid-2" };
  const proxy = proxyPod({ metadata: { annotations }, spec: { nodeName: "legation-west" }, status: runningStatus() });
  const creationTimestamp = "2026-01-01T00:00:01Z";
  const west = fakeClient({ find: async () => pod({ uid: "uid-2", metadata: { creationTimestamp } }) });
  const host: FakeMethods = {
    find: async ({ kind }) => (kind === "Pod" ? proxy : undefined),
    list: async () => ({ items: [], resourceVersion: "1", size: 0 }),
  };
  const { get } = await signedIn(host, async () => west);
  const { journey } = (await get("/api/pods/team/web-0")).json();
  const made = expect.objectContaining({ at: creationTimestamp, clock: "west", what: "delegate made in west" });
  expect(journey.stations).toContainEqual(made);
});

test.each([
  "/api/pods/team/web-0/log",
  "/api/pods/team/web-0/log?container=main&tail=-1",
  "/api/workloads/Secret/team/web",
])("refuses an address with a missing or wrong part: %s", async (url) => {
  const { get } = await signedIn({});
  expect((await get(url)).statusCode).toBe(400);
});
