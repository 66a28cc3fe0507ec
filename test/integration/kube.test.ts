import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { z } from "zod";
import type { KubeObject, Pod } from "../../src/api/kubernetes.ts";
import type { ClusterClient, WatchEvent } from "../../src/kube/client.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { parseJson } from "../../src/kube/json.ts";
import { loadKubeConfig } from "../../src/kube/kubeconfig.ts";
import type { ClientLimits } from "../../src/kube/limits.ts";
import { configMaps, namespaces, pods, type Resource, serviceAccounts } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { kubeErrorOf } from "../support/fault-server/connect.ts";
import { memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";

const tokenRequest = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } };
const tokenAnswer = z.object({ status: z.object({ token: z.string() }) });

/** A resource that keeps every field it is given. */
const notes: Resource<KubeObject> = {
  group: "test.legation.dev",
  version: "v1",
  plural: "notes",
  kind: "Note",
  namespaced: true,
};

let cluster: Cluster;
let client: ClusterClient;
let namespace: string;
beforeAll(async () => {
  cluster = memberCluster("west");
  client = connect(cluster.kubeconfig);
  await defineNotes(client);
});
afterAll(async () => {
  await client.raw({
    method: "DELETE",
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/notes.test.legation.dev",
  });
  await client.close();
});
beforeEach(async () => {
  namespace = await freshNamespace(cluster, { prefix: "kube" });
});

function connect(kubeconfig: string, limits: Partial<ClientLimits> = {}): ClusterClient {
  const credentials = loadKubeConfig({ kubeconfig, env: {} });
  return createClusterClient({ cluster: "west", credentials, limits });
}

/** Connects through the fault proxy, with few retries. */
function connectThroughProxy(): ClusterClient {
  return connect(cluster.proxiedKubeconfig, { connectTimeoutMs: 1_000 });
}

async function defineNotes(admin: ClusterClient): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await admin.raw({
    method: "POST",
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    body: {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "notes.test.legation.dev" },
      spec: {
        group: notes.group,
        names: { kind: notes.kind, plural: notes.plural },
        scope: "Namespaced",
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    },
  });
  await eventually(() => admin.list(notes, { namespace: "default" }), { what: "the notes API" });
}

const configMap = (name: string, data: Record<string, string> = {}): KubeObject & { data: Record<string, string> } => ({
  metadata: { namespace, name },
  data,
});
const pod = (name: string): Pod => ({
  metadata: { namespace, name },
  spec: { containers: [{ name: "main", image: "none" }], automountServiceAccountToken: false },
});

describe("requests", () => {
  test("create, read, list in pages, patch, replace and delete", async () => {
    const created = await client.create(configMaps, configMap("a", { x: "1" }));
    expect(created).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace } });
    for (const name of ["b", "c"]) await client.create(configMaps, configMap(name));
    const ref = { namespace, name: "a" };
    expect(await client.get(configMaps, ref)).toEqual(created);
    const fieldSelector = "metadata.name!=kube-root-ca.crt";
    const first = await client.list(configMaps, { namespace, limit: 2, fieldSelector });
    const { continue: next = "" } = first;
    const second = await client.list(configMaps, { namespace, limit: 2, fieldSelector, continue: next });
    expect([...first.items, ...second.items].map(({ metadata }) => metadata.name)).toEqual(["a", "b", "c"]);
    expect(first.items[0]).toEqual(created);
    expect([first.resourceVersion, second.continue]).toEqual([second.resourceVersion, undefined]);
    const patches = [
      { type: "json", body: [{ op: "add", path: "/data/json", value: "1" }] },
      { type: "merge", body: { data: { merge: "1", x: null } } },
      { type: "strategic", body: { data: { strategic: "1" } } },
      { type: "apply", body: { apiVersion: "v1", kind: "ConfigMap", data: { apply: "1" } }, force: true },
    ] as const;
    for (const patch of patches) await client.patch(configMaps, ref, patch, { fieldManager: "legation" });
    const patched = await client.get(configMaps, ref);
    expect(patched).toMatchObject({ data: { json: "1", merge: "1", strategic: "1", apply: "1" } });
    expect(patched).not.toHaveProperty("data.x");
    const replaced = await client.replace(configMaps, { ...patched, data: { y: "2" } });
    expect(replaced).toMatchObject({ data: { y: "2" } });
    await client.delete(configMaps, ref, { uid: created.metadata.uid });
    expect(await client.find(configMaps, ref)).toBeUndefined();
  });

  test("reach the subresources binding, status and token", async () => {
    const ref = { namespace, name: "p" };
    const created = await client.create(pods, {
      ...pod("p"),
      spec: { ...pod("p").spec, schedulerName: "nobody", containers: [{ name: "main", image: "none" }] },
    });
    const target = { apiVersion: "v1", kind: "Node", name: "legation-none" };
    await client.createSubresource(pods, ref, "binding", {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: "p", uid: created.metadata.uid, annotations: { a: "b" } },
      target,
    });
    const bound = await client.get(pods, ref);
    expect([bound.spec?.nodeName, bound.metadata.annotations?.a]).toEqual(["legation-none", "b"]);
    const status = { status: { phase: "Running", message: "patched" } };
    const patched = await client.patch(pods, ref, { type: "merge", body: status }, { subresource: "status" });
    expect(patched.status).toMatchObject(status.status);
    await client.create(serviceAccounts, { metadata: { namespace, name: "robot" } });
    const token = await client.createSubresource(serviceAccounts, { namespace, name: "robot" }, "token", tokenRequest);
    expect(token).toMatchObject({ status: { token: expect.stringMatching(/^ey/) } });
  });

  test("get only metadata back from a write whose response is not read", async () => {
    const ref = { namespace, name: "metadata-only" };
    const options = { metadataOnly: true, dropManagedFields: true } as const;
    const pod = { apiVersion: "v1", kind: "Pod", metadata: ref, spec: { containers: [{ name: "main", image: "x" }] } };
    const made = await client.create(pods, pod, options);
    const changed = await client.patch(
      pods,
      ref,
      { type: "merge", body: { metadata: { labels: { a: "b" } } } },
      options,
    );
    for (const answer of [made, changed]) {
      expect(answer).toMatchObject({ kind: "PartialObjectMetadata", metadata: { ...ref, uid: made.metadata.uid } });
      expect(answer).not.toHaveProperty("spec");
      expect(answer.metadata).not.toHaveProperty("managedFields");
    }
    expect(changed.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    expect(await client.get(pods, ref)).toMatchObject({ metadata: { labels: { a: "b" } }, spec: pod.spec });
  });

  test("get an object that is not stored from a dry run", async () => {
    const answer = await client.create(configMaps, configMap("a"), { dryRun: true });
    expect(answer.metadata).toMatchObject({ name: "a", resourceVersion: "" });
    expect(await client.find(configMaps, { namespace, name: "a" })).toBeUndefined();
  });

  test("get JSON or text from raw paths", async () => {
    expect(await client.raw({ method: "GET", path: "/version" })).toMatchObject({ major: "1" });
    expect(await client.raw({ method: "GET", path: "/readyz" })).toBe("ok");
  });

  test("fail with the code that callers act on", async () => {
    const made = await client.create(configMaps, configMap("a"));
    const codeOf = async (promise: Promise<unknown>): Promise<string> => (await kubeErrorOf(promise)).code;
    const ref = { namespace, name: "a" };
    expect({
      existing: await codeOf(client.create(configMaps, configMap("a"))),
      missing: await codeOf(client.get(configMaps, { namespace, name: "none" })),
      otherUid: await codeOf(client.delete(configMaps, ref, { uid: "other" })),
      oldVersion: await codeOf(
        client.replace(configMaps, { ...made, metadata: { ...made.metadata, resourceVersion: "1" } }),
      ),
      invalid: await codeOf(client.create(configMaps, configMap("Not_A_Name"))),
      noNamespace: await codeOf(client.create(configMaps, { metadata: { namespace: "none", name: "a" } })),
      tooLarge: await codeOf(client.create(configMaps, configMap("big", { x: "x".repeat(4_000_000) }))),
      notJson: await codeOf(client.raw({ method: "POST", path: "/api/v1/namespaces", body: [] })),
      method: await codeOf(client.raw({ method: "PUT", path: "/api/v1/namespaces", body: {} })),
    }).toEqual({
      existing: "AlreadyExists",
      missing: "NotFound",
      otherUid: "Conflict",
      oldVersion: "Conflict",
      invalid: "Unprocessable",
      noNamespace: "NotFound",
      tooLarge: "TooLarge",
      notJson: "BadRequest",
      method: "MethodNotAllowed",
    });
  });

  test("keep unknown fields and long integers to the byte, even in objects of 1.4 MB", async () => {
    // API servers sort the keys of unknown fields.
    const text = `{"":null,"deep":[{"f":0.1,"m":-9223372036854775808,"n":9007199254740993,"s":"${"ä".repeat(700_000)}"}]}`;
    const note = {
      apiVersion: "test.legation.dev/v1",
      kind: "Note",
      metadata: { namespace, name: "n" },
      text: parseJson(text),
    };
    const created = await client.create(notes, note);
    await client.replace(notes, { ...created, metadata: { ...created.metadata, labels: { a: "b" } } });
    const abort = new AbortController();
    const { metadata } = created;
    const watched = await firstEvent(client, metadata.resourceVersion, abort);
    const read = await client.get(notes, { namespace, name: "n" });
    for (const object of [read, watched]) expect(JSON.stringify(Object(object).text)).toBe(text);
  });

  async function firstEvent(from: ClusterClient, resourceVersion: string, abort: AbortController): Promise<KubeObject> {
    for await (const event of from.watch(notes, { namespace, resourceVersion, signal: abort.signal })) {
      if (event.type === "MODIFIED") return event.object;
    }
    throw new Error("the watch ended without an event");
  }
});

describe("credentials", () => {
  test("are read again from disk when the API server refuses the old ones", async () => {
    const folder = mkdtempSync(join(tmpdir(), "legation-token-"));
    const tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "an expired token");
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(
      kubeconfig,
      stringify({
        clusters: [{ name: "west", cluster: { server: cluster.server, "certificate-authority": cluster.caFile } }],
        users: [{ name: "robot", user: { tokenFile: "token" } }],
        contexts: [{ name: "west", context: { cluster: "west", user: "robot" } }],
        "current-context": "west",
      }),
    );
    const robot = connect(kubeconfig);
    expect((await kubeErrorOf(robot.list(namespaces))).code).toBe("Unauthorized");
    writeFileSync(tokenFile, cluster.token);
    await expect(robot.create(configMaps, configMap("a"))).resolves.toBeDefined();
    await robot.close();
    rmSync(folder, { recursive: true });
  });

  test("are never sent to an API server of another authority", async () => {
    const other = memberCluster("east");
    const kubeconfig = loadKubeConfig({ kubeconfig: other.kubeconfig, env: {} });
    const wrong = createClusterClient({ cluster: "west", credentials: { ...kubeconfig, server: cluster.server } });
    expect((await kubeErrorOf(wrong.create(configMaps, configMap("a")))).code).toBe("NotSent");
    await wrong.close();
  });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

describe("an API server that restarts", () => {
  test("refuses no client for rights that it has not read yet", async () => {
    const user = { kind: "ServiceAccount", namespace, name: "robot" };
    await client.create(serviceAccounts, { metadata: user });
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["create"] }];
    await client.raw({ method: "POST", path: `${roles}/roles`, body: { metadata: { name: "robot" }, rules } });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "robot" };
    const binding = { metadata: { name: "robot" }, roleRef, subjects: [user] };
    await client.raw({ method: "POST", path: `${roles}/rolebindings`, body: binding });
    const answer = await client.createSubresource(serviceAccounts, user, "token", tokenRequest);
    const { token } = tokenAnswer.parse(answer).status;
    const admin = loadKubeConfig({ kubeconfig: cluster.kubeconfig, env: {} });
    const { ca } = await admin.identity();
    const identity = { authorization: `Bearer ${token}`, ...(ca === undefined ? {} : { ca }) };
    const robot = createClusterClient({ cluster: "west", credentials: { ...admin, identity: () => identity } });
    await robot.create(configMaps, configMap("before"));

    const answers = new Map<string, number>();
    const deniedAfterMs: number[] = [];
    let restarted = false;
    // Several at a time, so that some arrive as soon as it listens.
    const write = async (worker: number): Promise<void> => {
      for (let number = 0; !restarted; number += 1) {
        const sentAt = performance.now();
        const made = robot.create(configMaps, configMap(`c-${worker}-${number}`));
        const how = await made.then(
          () => "made",
          ({ code }) => String(code),
        );
        answers.set(how, (answers.get(how) ?? 0) + 1);
        if (how === "Forbidden") deniedAfterMs.push(performance.now() - sentAt);
        await sleep(5);
      }
    };
    const writing = [0, 1, 2, 3].map(write);
    await cluster.apiServer.restart();
    const afterwards = async (): Promise<string> => {
      const made = robot.create(configMaps, configMap(`after-${crypto.randomUUID()}`));
      return made.then(
        () => "made",
        ({ code }) => String(code),
      );
    };
    let after = await afterwards();
    while (after === "Forbidden") after = await afterwards();
    expect(after).toBe("made");
    restarted = true;
    await Promise.all(writing);
    await robot.close();
    expect(answers.get("NotSent")).toBeGreaterThan(0);
    // If reading the roles takes longer than this, the client accepts the denial; never before.
    for (const ms of deniedAfterMs) expect(ms).toBeGreaterThanOrEqual(1_990);
  });
});

describe("a watch", () => {
  test("reports everything after its version, and asks for a list when the version is too old", async () => {
    const { resourceVersion } = await client.list(configMaps, { namespace });
    await client.create(configMaps, configMap("a"));
    await client.patch(configMaps, { namespace, name: "a" }, { type: "merge", body: { data: { x: "1" } } });
    await client.delete(configMaps, { namespace, name: "a" });
    const abort = new AbortController();
    const seen: WatchEvent<KubeObject>["type"][] = [];
    const fieldSelector = "metadata.name=a";
    for await (const event of client.watch(configMaps, {
      namespace,
      fieldSelector,
      resourceVersion,
      signal: abort.signal,
    })) {
      seen.push(event.type);
      if (event.type === "DELETED") break;
    }
    expect(seen.filter((type) => type !== "BOOKMARK")).toEqual(["ADDED", "MODIFIED", "DELETED"]);
    // A restarted API server has no earlier history.
    await cluster.apiServer.restart();
    const old = client.watch(configMaps, { namespace, resourceVersion, signal: abort.signal });
    expect((await kubeErrorOf(all(old))).code).toBe("Gone");
  });

  test("leaves out an unwanted namespace without parsing its events", async () => {
    const { resourceVersion } = await client.list(configMaps, { namespace });
    for (const other of ["default", namespace]) {
      const { metadata, ...rest } = configMap("unwanted");
      await client.create(configMaps, { ...rest, metadata: { ...metadata, namespace: other } });
    }
    const options = {
      resourceVersion,
      fieldSelector: "metadata.name=unwanted",
      isWanted: (name: string) => name === namespace,
    };
    for await (const event of client.watch(configMaps, { ...options, signal: new AbortController().signal })) {
      if (event.type === "BOOKMARK") continue;
      expect(event.object.metadata.namespace).toBe(namespace);
      break;
    }
    await client.delete(configMaps, { namespace: "default", name: "unwanted" });
  });

  test("ends without error at its timeout", async () => {
    const { resourceVersion } = await client.list(configMaps, { namespace });
    const { signal } = new AbortController();
    // The controller manager creates this one some time after the namespace.
    const fieldSelector = "metadata.name!=kube-root-ca.crt";
    const events = client.watch(configMaps, { namespace, fieldSelector, resourceVersion, timeoutSeconds: 1, signal });
    expect((await all(events)).every(({ type }) => type === "BOOKMARK")).toBe(true);
  });
});

describe("a request through a broken network", () => {
  let behindProxy: ClusterClient;
  beforeEach(async () => {
    behindProxy = connectThroughProxy();
    await eventually(() => behindProxy.list(configMaps, { namespace }));
  });
  afterEach(async () => {
    await cluster.proxy.heal();
    await behindProxy.close();
  });

  test("fails with AnswerLost when the response is lost, and the write may have happened", async () => {
    await cluster.proxy.deaf("answers");
    const error = await kubeErrorOf(behindProxy.create(configMaps, configMap("a"), { timeoutMs: 1_000 }));
    expect(error.code).toBe("AnswerLost");
    await eventually(() => client.find(configMaps, { namespace, name: "a" }));
  });

  test("fails with AnswerLost when the request is lost, and the write has not happened", async () => {
    await cluster.proxy.deaf("requests");
    const error = await kubeErrorOf(behindProxy.create(configMaps, configMap("a"), { timeoutMs: 1_000 }));
    expect(error.code).toBe("AnswerLost");
    expect(await client.find(configMaps, { namespace, name: "a" })).toBeUndefined();
  });

  test("fails with NotSent without a connection", async () => {
    await cluster.proxy.cut();
    await eventually(async () => {
      const error = await kubeErrorOf(behindProxy.create(configMaps, configMap("a"), { timeoutMs: 3_000 }));
      return error.code === "NotSent";
    });
    expect(await client.find(configMaps, { namespace, name: "a" })).toBeUndefined();
  });

  test("fails with NotSent when the handshake is swallowed", async () => {
    await behindProxy.close();
    await cluster.proxy.blackhole();
    const fresh = connectThroughProxy();
    expect((await kubeErrorOf(fresh.create(configMaps, configMap("a"), { timeoutMs: 5_000 }))).code).toBe("NotSent");
    await fresh.close();
  });

  test("succeeds when the response came in time but was read after the deadline for lack of processor time", async () => {
    await cluster.proxy.slow(100);
    const sentAt = performance.now();
    const list = behindProxy.list(configMaps, { namespace, timeoutMs: 1_500 });
    await sleep(100);
    // Blocks this thread: neither the socket is read nor the timer.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_900);
    expect((await list).resourceVersion).not.toBe("");
    expect(performance.now() - sentAt).toBeGreaterThan(1_500);
  });

  test("is not delayed by another slow member", async () => {
    const fast = connect(memberCluster("east").kubeconfig);
    await cluster.proxy.slow(1_000);
    const slow = Array.from({ length: 100 }, () => behindProxy.list(configMaps, { namespace, timeoutMs: 8_000 }));
    const allSlow = Promise.allSettled(slow);
    const tookMs: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      const startedAt = performance.now();
      await fast.list(namespaces);
      tookMs.push(performance.now() - startedAt);
    }
    // Behind the slow member each request would take at least a second. A busy machine delays some.
    expect(tookMs.filter((ms) => ms < 1_000).length).toBeGreaterThan(10);
    await allSlow;
    await fast.close();
  });
});
