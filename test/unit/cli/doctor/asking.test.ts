import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { accessFindings } from "../../../../src/cli/doctor/access.ts";
import { deadlineOf } from "../../../../src/cli/doctor/check.ts";
import { readClock } from "../../../../src/cli/doctor/clock.ts";
import { homeApiFindings } from "../../../../src/cli/doctor/home-api.ts";
import { checkMember } from "../../../../src/cli/doctor/member.ts";
import { findLacking, rightsOf } from "../../../../src/cli/doctor/rights.ts";
import { kubeletFindings } from "../../../../src/cli/doctor/virtual-nodes.ts";
import { podFindings, reachFindings } from "../../../../src/cli/doctor/webhook.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../client.ts";
import { connection, recordedSession } from "../session.ts";

const signal = new AbortController().signal;
const limits = { signal, timeoutMs: 1_000 };
const stored = { uid: "u", resourceVersion: "1" };
const namespace = { metadata: { name: "shop", ...stored } };
const refusing = (code: KubeErrorCode, detail: string) => async (): Promise<never> => {
  throw kubeError(code, detail, { cluster: "host", verb: "create", resource: "x" });
};

describe("the webhook", () => {
  const context = { now: 0, url: "https://127.0.0.1:1", repair: "legation install", namespace, signal };
  const denied = 'admission webhook "namespaces.legation.dev" denied the request: annotation';
  const failed = 'failed calling webhook "namespaces.legation.dev": connect: connection refused';
  const ofKyverno = 'admission webhook "validate.kyverno.svc-fail" denied the request: label team is required';
  const kyvernoIsDown = 'failed calling webhook "validate.kyverno.svc-fail": connect: connection refused';
  const policy =
    "ValidatingAdmissionPolicy 'legation-delegation' with binding 'legation-delegation' denied request: no";

  test.each([
    ["denies the Namespace", refusing("Unprocessable", denied), "OK"],
    ["is down", refusing("ServerError", failed), "FAIL"],
    ["is hidden by another refusal", refusing("Unprocessable", "no"), "SKIP"],
    ["is hidden by another webhook's refusal", refusing("Forbidden", ofKyverno), "SKIP"],
    ["is hidden by another webhook that is down", refusing("ServerError", kyvernoIsDown), "SKIP"],
  ])("%s", async (_, create, state) => {
    expect(await reachFindings(fakeClient({ create }), context)).toMatchObject([{ state }]);
  });

  test("is not called where its configuration is gone", async () => {
    const asked: unknown[] = [];
    const client = fakeClient({
      create: async (_resource, object, options) => {
        asked.push(options?.dryRun);
        return object;
      },
    });
    expect(await reachFindings(client, context)).toMatchObject([{ state: "FAIL", remedy: "legation install" }]);
    expect(asked).toEqual([true]);
  });

  test.each([
    ["takes a pod", { labels: { "legation.dev/proxy": "true" } }, "OK"],
    ["leaves a pod alone", {}, "FAIL"],
  ])("%s", async (_, metadata, state) => {
    const client = fakeClient({ create: async () => ({ metadata: { name: "p", ...stored, ...metadata } }) });
    expect(await podFindings(client, context)).toMatchObject([{ state }]);
  });

  test.each([
    ["Legation's policy", policy, "FAIL"],
    ["Legation's webhook", denied, "FAIL"],
    ["another webhook", ofKyverno, "WARN"],
    ["another webhook that is down", kyvernoIsDown, "WARN"],
    ["a quota", 'pods "x" is forbidden: exceeded quota: small', "WARN"],
  ])("is told from %s that refuses a pod", async (_, detail, state) => {
    expect(await podFindings(fakeClient({ create: refusing("Forbidden", detail) }), context)).toMatchObject([
      { state },
    ]);
  });

  test("has no pod to try without an opted-in namespace", async () => {
    expect(await podFindings(fakeClient({}), { ...context, namespace: undefined })).toMatchObject([{ state: "SKIP" }]);
  });
});

describe("a virtual node's kubelet API", () => {
  const node = {
    metadata: { name: "legation-west", ...stored },
    status: { daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } },
  };
  const judge = async (raw: () => Promise<unknown>, of: typeof node | undefined = node) =>
    await kubeletFindings(fakeClient({ raw }), "west", of, limits);

  test.each([
    ["answers", async () => "ok", "OK"],
    ["is on the API server's own machine", refusing("BadRequest", "address not allowed"), "SKIP"],
    ["does not answer", refusing("ServerError", "error trying to reach service: dial tcp: refused"), "FAIL"],
    ["has a certificate that is not trusted", refusing("ServerError", "x509: certificate signed by unknown"), "FAIL"],
  ])("%s", async (_, raw, state) => {
    expect(await judge(raw)).toMatchObject([{ state }]);
  });

  test("is missing with its node, or without a port", async () => {
    expect(await kubeletFindings(fakeClient({}), "west", undefined, limits)).toMatchObject([{ state: "FAIL" }]);
    const without = { metadata: node.metadata };
    expect(await kubeletFindings(fakeClient({}), "west", without, limits)).toMatchObject([{ state: "WARN" }]);
  });
});

describe("rights", () => {
  const wanted = rightsOf([{ apiGroups: [""], resources: ["pods/log", "nodes"], verbs: ["get"] }]);

  test("that an authorizer lists no rules for are asked for one by one", async () => {
    const asked: unknown[] = [];
    const raw = async ({ path, body }: { path: string; body?: object }) => {
      if (path.endsWith("rulesreviews"))
        return { status: { resourceRules: [], nonResourceRules: [], incomplete: true } };
      const { spec } = body as { spec: { resourceAttributes: { resource: string } } };
      asked.push(spec.resourceAttributes);
      return { status: { allowed: spec.resourceAttributes.resource === "pods" } };
    };
    expect(await findLacking(fakeClient({ raw }), wanted, limits)).toEqual([
      { verb: "get", group: "", resource: "nodes", name: undefined },
    ]);
    expect(asked).toContainEqual({ verb: "get", group: "", resource: "pods", subresource: "log" });
  });
});

test("reads a clock from a refusal, too", async () => {
  const at = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");
  const answer = { status: 403, headers: { date: "Fri, 27 Nov 2026 12:00:30 GMT" }, text: "" };
  const client = fakeClient({ stream: async () => answer });
  expect(await readClock(client, { ...limits, now: () => at })).toEqual({ aheadMs: 30_500, uncertainMs: 500 });
});

test("closes the answer that it reads a clock from", async () => {
  const body = new PassThrough();
  const client = fakeClient({ stream: async () => ({ body, headers: {} }) });
  expect(await readClock(client, limits)).toBeUndefined();
  expect(body.destroyed).toBe(true);
});

describe("with few rights", () => {
  test("the availability of access is told without its certificate", async () => {
    const conditions = [{ type: "Available", status: "False", message: "no endpoints" }];
    const client = fakeClient({
      find: async ({ plural }: { plural: string }) =>
        plural === "secrets" ? await refusing("Forbidden", "no")() : { status: { conditions } },
    });
    expect(await accessFindings(client, { now: 0, signal })).toMatchObject([{ state: "FAIL" }, { state: "SKIP" }]);
  });

  test("ways to the host's API server are told without events", async () => {
    const client = fakeClient({ find: async () => undefined, list: refusing("Forbidden", "no") });
    const homeAPI = { server: "https://10.0.0.1:6443" };
    const cluster = { metadata: { name: "west", ...stored }, spec: { credentialsSecret: { name: "s" }, homeAPI } };
    expect(await homeApiFindings(client, [cluster], signal)).toMatchObject([{ state: "OK" }, { state: "SKIP" }]);
  });
});

describe("a member", () => {
  const cluster = { metadata: { name: "west", ...stored }, spec: { credentialsSecret: { name: "member-west" } } };
  const data = { kubeconfig: Buffer.from("apiVersion: v1").toString("base64") };
  const secret = { metadata: { name: "member-west", ...stored }, data };
  const context = { node: undefined, rights: [], hostClock: undefined, now: 0, cluster };
  const host = (found: object | undefined) => fakeClient({ find: async () => found });

  test("that hangs is given up at its deadline", async () => {
    const deadline = deadlineOf(signal, 20);
    const hanging = fakeClient({
      raw: ({ signal: of }) =>
        new Promise((_, reject) => {
          of?.addEventListener("abort", () => refusing("AnswerLost", "gave up")().catch(reject));
        }),
    });
    const session = { connectText: async () => connection(hanging, { server: "https://west" }) };
    const { findings } = await checkMember({ ...context, host: host(secret), deadline, session });
    expect(findings.at(-1)).toMatchObject({
      state: "FAIL",
      what: "west does not answer at https://west: no answer within 0.02 s",
    });
  });

  test.each<["True" | "False", string, string]>([
    ["True", "SKIP", "west is at https://west, a name that this machine does not know"],
    ["False", "FAIL", "west does not answer at https://west"],
  ])("at a name that only the controller knows, with Ready %s, is %s", async (ready, state, what) => {
    const session = {
      connectText: async () => {
        const client = fakeClient({ raw: refusing("NotSent", "getaddrinfo ENOTFOUND west") });
        return connection(client, { server: "https://west" });
      },
    };
    const status = {
      conditions: [{ type: "Ready", status: ready, message: "probe failed", reason: "Probe", lastTransitionTime: "" }],
    };
    const { findings } = await checkMember({
      ...context,
      cluster: { ...cluster, status },
      host: host(secret),
      deadline: deadlineOf(signal, 1000),
      session,
    });
    expect(findings.at(-1)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test.each([
    ["directly", {}, "legation join west --member-kubeconfig FILE"],
    ["through its agent", { agent: {} }, "legation join west --agent"],
  ])("that is reached %s is joined again in the same way without its Secrets", async (_, way, remedy) => {
    const session = { connectText: async () => connection() };
    const { findings } = await checkMember({
      ...context,
      cluster: { ...cluster, spec: { ...cluster.spec, ...way, access: { prefix: "" } } },
      host: host(undefined),
      deadline: deadlineOf(signal, 1_000),
      session,
    });
    const what = "west: Secret legation-system/member-west with its credentials is missing";
    expect(findings).toContainEqual({ state: "FAIL", what, remedy });
    expect(findings).toContainEqual(expect.objectContaining({ state: "FAIL", remedy: `${remedy} --access` }));
  });
});

describe("the command", () => {
  test.each([
    [["doctor", "--members", "West"], '--members: "West" is no member\'s name'],
    [["doctor", "--timeout", "soon"], '--timeout: "soon" is not a duration'],
  ])("refuses %j", async (args, message) => {
    const session = recordedSession();
    expect(await runProgram(args, session, "1")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain(message);
  });

  const connected = (client: ReturnType<typeof fakeClient>) =>
    recordedSession({ connect: async () => connection(client) });

  const answering = {
    raw: async () => ({ gitVersion: "v1.36.3" }),
    stream: async () => ({ status: 403, headers: { date: new Date().toUTCString() }, text: "" }),
  };

  test("suggests the member that was meant", async () => {
    const items = [{ metadata: { name: "west", ...stored } }];
    const client = fakeClient({ ...answering, list: async () => ({ items, resourceVersion: "1", size: 0 }) });
    const session = connected(client);
    expect(await runProgram(["doctor", "--members", "wset"], session, "1")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain("did you mean west?");
  });

  test("finds a host that does not answer, and nothing else", async () => {
    const session = connected(fakeClient({ raw: refusing("NotSent", "connection refused") }));
    expect(await runProgram(["doctor", "-o", "json"], session, "1")).toBe(EXIT_CODES.failure);
    expect(JSON.parse(session.out.join(""))).toMatchObject({
      healthy: false,
      counts: { FAIL: 1 },
      groups: [{ name: "Host", findings: [{ what: "the host does not answer: connection refused" }] }],
    });
    expect(session.err.join("")).toContain("doctor: found 1 failure");
  });

  test("names the role that it needs at least", async () => {
    const session = connected(fakeClient({ ...answering, list: refusing("Forbidden", "no") }));
    expect(await runProgram(["doctor"], session, "1")).toBe(EXIT_CODES.failure);
    expect(session.out.join("")).toContain("OK    Kubernetes v1.36.3");
    expect(session.out.join("")).toContain("have your account bound to the ClusterRole legation-viewer");
  });

  test("reports what it found before a list that does not come", async () => {
    const list: ReturnType<typeof fakeClient>["list"] = (_resource, { signal: of } = {}) =>
      new Promise((_, reject) => {
        of?.addEventListener("abort", () => refusing("Aborted", "gave up")().catch(reject));
      });
    const session = connected(fakeClient({ ...answering, list }));
    expect(await runProgram(["doctor", "--timeout=50ms", "--members=west"], session, "1")).toBe(EXIT_CODES.failure);
    expect(session.out.join("")).toContain("OK    Kubernetes v1.36.3");
    expect(session.out.join("")).toContain("FAIL  Clusters, nodes and namespaces: no answer within 0.05 s");
  });

  test.each([[[]], [["--members=west"]]])("finds a host without Legation, with flags %j", async (flags) => {
    const session = connected(fakeClient({ ...answering, list: refusing("NotFound", "not found") }));
    expect(await runProgram(["doctor", ...flags], session, "1")).toBe(EXIT_CODES.failure);
    expect(session.out.join("")).toContain("FAIL  Legation is not installed");
    expect(session.out.join("")).toContain("Fix: legation install");
  });
});
