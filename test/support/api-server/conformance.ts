import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ConfigMap, KubeObject, ObjectRef, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, Patch, WatchEvent } from "../../../src/kube/client.ts";
import { isKubeError, type KubeError } from "../../../src/kube/errors.ts";
import { configMaps, pods, type Resource, serviceAccounts } from "../../../src/kube/resources.ts";

/** The object of the suite's own type, which keeps every field. */
export interface Note extends KubeObject {
  spec?: Readonly<Record<string, unknown>>;
  status?: Readonly<Record<string, unknown>>;
}

/** The suite's own type: namespaced, with the subresource `status`. */
export const notes: Resource<Note> = {
  group: "conformance.legation.dev",
  version: "v1",
  plural: "notes",
  kind: "Note",
  namespaced: true,
};

type ObjectEvent<T extends KubeObject> = Exclude<WatchEvent<T>, { readonly type: "BOOKMARK" }>;

/** A server under test. */
export interface Scene {
  readonly client: ClusterClient;
  /** A namespace of the suite's own, with the service account `default`. */
  readonly namespace: string;
  readonly close?: () => Promise<void>;
}

/** What this project relies on of an API server: each server that its tests run against passes these cases. */
export function apiServerConformance(setUp: () => Promise<Scene>): void {
  let scene: Scene;
  let client: ClusterClient;
  let namespace: string;
  let names = 0;
  beforeAll(async () => {
    scene = await setUp();
    ({ client, namespace } = scene);
  });
  afterAll(async () => {
    await scene.close?.();
  });

  function named(parts: object = {}): { namespace: string; name: string } {
    names += 1;
    return { namespace, name: `one-${String(names).padStart(3, "0")}`, ...parts };
  }
  const note = (parts: Partial<Note> = {}): Promise<Stored<Note>> =>
    client.create(notes, { ...noteOf(named()), ...parts });
  const noteOf = (metadata: ObjectRef & object): Note => {
    return { apiVersion: "conformance.legation.dev/v1", kind: "Note", metadata: { ...metadata } };
  };
  const configMap = (data: ConfigMap["data"] = {}, metadata: object = {}): Promise<Stored<ConfigMap>> =>
    client.create(configMaps, { metadata: named(metadata), data });

  describe("create", () => {
    test("gives an object its identity, whatever uid was sent", async () => {
      const { metadata, ...rest } = await note({ metadata: named({ uid: "of-the-client" }), spec: { color: "red" } });
      expect(metadata.uid).not.toBe("of-the-client");
      expect(metadata.uid).not.toBe("");
      expect(metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(Number(metadata.resourceVersion)).toBeGreaterThan(0);
      expect(rest).toEqual({ apiVersion: "conformance.legation.dev/v1", kind: "Note", spec: { color: "red" } });
    });

    test("refuses a name that is taken", async () => {
      const { metadata } = await configMap();
      const { name } = metadata;
      expect(await codeOf(client.create(configMaps, { metadata: { namespace, name } }))).toBe("AlreadyExists");
    });

    test("refuses an object with a resourceVersion", async () => {
      const metadata = named({ resourceVersion: "7" });
      expect(await codeOf(client.create(configMaps, { metadata }))).toBe("ServerError");
    });

    test("makes a name from generateName, and refuses an object without either", async () => {
      const { metadata } = await client.create(configMaps, { metadata: { namespace, generateName: "some-" } });
      expect(metadata.name).toMatch(/^some-.{5}$/);
      expect(await codeOf(client.create(configMaps, { metadata: { namespace } }))).toBe("Unprocessable");
    });

    test("leaves the status to the subresource", async () => {
      expect(await note({ spec: {}, status: { ready: 1 } })).not.toHaveProperty("status");
    });
  });

  describe("read", () => {
    test("does not find what is not there", async () => {
      expect(await codeOf(client.get(configMaps, { namespace, name: "none" }))).toBe("NotFound");
      expect(await client.find(configMaps, { namespace, name: "none" })).toBeUndefined();
    });

    test("answers with the type, also in lists", async () => {
      const { metadata } = await configMap();
      const { items } = await client.list(configMaps, { namespace, fieldSelector: `metadata.name=${metadata.name}` });
      const found = await client.get(configMaps, metadata);
      for (const one of [found, ...items]) expect(one).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
      expect(items).toHaveLength(1);
    });

    test("answers with metadata alone, and without managedFields", async () => {
      const { metadata } = await configMap({ color: "red" }, { labels: { part: "metadata" } });
      const options = { namespace, labelSelector: "part=metadata", metadataOnly: true, dropManagedFields: true };
      const { items } = await client.list(configMaps, options);
      const { managedFields, ...rest } = metadata;
      expect(managedFields).toHaveLength(1);
      expect(items).toEqual([{ apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata: rest }]);
    });

    test("selects by labels", async () => {
      const red = await configMap({}, { labels: { color: "red", set: "labels" } });
      const blue = await configMap({}, { labels: { color: "blue", set: "labels" } });
      const none = await configMap({}, { labels: { set: "labels" } });
      const selected = async (selector: string): Promise<string[]> => {
        const { items } = await client.list(configMaps, { namespace, labelSelector: `set=labels,${selector}` });
        return items.map(({ metadata }) => metadata.name);
      };
      expect(await selected("color=red")).toEqual([red.metadata.name]);
      expect(await selected("color!=red")).toEqual([blue.metadata.name, none.metadata.name]);
      expect(await selected("color")).toEqual([red.metadata.name, blue.metadata.name]);
      expect(await selected("!color")).toEqual([none.metadata.name]);
      expect(await selected("color in (red,blue)")).toEqual([red.metadata.name, blue.metadata.name]);
    });

    test("refuses a selector that it does not know", async () => {
      expect(await codeOf(client.list(configMaps, { namespace, labelSelector: "a=b=c" }))).toBe("BadRequest");
      expect(await codeOf(client.list(configMaps, { namespace, fieldSelector: "data.color=red" }))).toBe("BadRequest");
    });

    test("selects pods by their node", async () => {
      const pod = await client.create(pods, podOf(named()));
      const unbound = await client.list(pods, { namespace, fieldSelector: "spec.nodeName=,status.phase=Pending" });
      expect(unbound.items.map(({ metadata }) => metadata.name)).toContain(pod.metadata.name);
      const bound = await client.list(pods, { namespace, fieldSelector: "spec.nodeName!=" });
      expect(bound.items.map(({ metadata }) => metadata.name)).not.toContain(pod.metadata.name);
    });

    test("lists page by page in the order of names, as of the first page", async () => {
      const labels = { set: "pages" };
      const [c, a, b] = ["page-c", "page-a", "page-b"].map((name) => ({ metadata: { namespace, name, labels } }));
      for (const one of [c, a, b]) await client.create(configMaps, { ...one });
      const options = { namespace, labelSelector: "set=pages", limit: 2 };
      const first = await client.list(configMaps, options);
      expect(first.items.map(({ metadata }) => metadata.name)).toEqual(["page-a", "page-b"]);
      await client.delete(configMaps, { namespace, name: "page-c" });
      const second = await client.list(configMaps, { ...options, continue: first.continue ?? "" });
      expect(second.items.map(({ metadata }) => metadata.name)).toEqual(["page-c"]);
      expect(second.resourceVersion).toBe(first.resourceVersion);
      expect(second.continue).toBeUndefined();
    });
  });

  describe("write", () => {
    test("counts changes of what was asked for in the generation, where the type has one", async () => {
      const made = await note({ spec: { color: "red" } });
      expect(made.metadata.generation).toBe(1);
      const labelled = await merge(notes, made, { metadata: { labels: { a: "b" } } });
      expect(labelled.metadata.generation).toBe(1);
      const changed = await merge(notes, made, { spec: { color: "blue" } });
      expect(changed.metadata.generation).toBe(2);
      expect((await configMap()).metadata.generation).toBeUndefined();
    });

    test("does not store a change of nothing", async () => {
      const made = await note({ spec: { color: "red" } });
      const same = await merge(notes, made, { spec: { color: "red" } });
      expect(same.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
    });

    test("changes the status by its subresource alone, and nothing else by that", async () => {
      const made = await note({ spec: { color: "red" } });
      const body = { spec: { color: "blue" }, status: { ready: 1 }, metadata: { labels: { a: "b" } } };
      const status = await merge(notes, made, body, "status");
      expect(status).toMatchObject({ spec: { color: "red" }, status: { ready: 1 } });
      expect(status.metadata.labels).toBeUndefined();
      expect(status.metadata.generation).toBe(1);
      const other = await merge(notes, made, { ...body, status: { ready: 2 } });
      expect(other).toMatchObject({ spec: { color: "blue" }, status: { ready: 1 } });
    });

    test("replaces an object, unless another version or object is meant", async () => {
      const made = await configMap({ color: "red" });
      const { metadata } = made;
      const ref = { namespace, name: metadata.name };
      const changed = await client.replace(configMaps, { ...made, data: { color: "blue" } });
      expect(changed.data).toEqual({ color: "blue" });
      expect(await codeOf(client.replace(configMaps, { ...made, data: {} }))).toBe("Conflict");
      expect(await codeOf(client.replace(configMaps, { metadata: { ...ref, uid: "another" } }))).toBe("Conflict");
      const whole = await client.replace(configMaps, { metadata: ref, data: { size: "1" } });
      expect(whole.data).toEqual({ size: "1" });
      expect(whole.metadata).toMatchObject({ uid: metadata.uid, creationTimestamp: metadata.creationTimestamp });
      expect(await codeOf(client.replace(configMaps, { metadata: { ...ref, name: "none" } }))).toBe("NotFound");
    });

    test("takes uid and resourceVersion of a patch as preconditions", async () => {
      const made = await configMap({ color: "red" });
      const { uid, resourceVersion } = made.metadata;
      const changed = await merge(configMaps, made, { metadata: { uid, resourceVersion }, data: { color: "blue" } });
      expect(changed.data).toEqual({ color: "blue" });
      const stale = merge(configMaps, made, { metadata: { resourceVersion }, data: { color: "green" } });
      expect(await codeOf(stale)).toBe("Conflict");
      const other = merge(configMaps, made, { metadata: { uid: "another" }, data: { color: "green" } });
      expect(await codeOf(other)).toBe("Unprocessable");
      const both = merge(configMaps, made, { metadata: { uid: "another", resourceVersion } });
      expect(await codeOf(both)).toBe("Conflict");
      const gone = client.patch(configMaps, { namespace, name: "none" }, { type: "merge", body: {} });
      expect(await codeOf(gone)).toBe("NotFound");
    });

    test("removes the fields that a merge patch has as null", async () => {
      const made = await note({ spec: { color: "red", size: { width: 1, height: 2 } } });
      const changed = await merge(notes, made, { spec: { color: null, size: { width: 3 }, list: [1] } });
      expect(changed.spec).toEqual({ size: { width: 3, height: 2 }, list: [1] });
    });

    test("applies a JSON patch as a whole or not at all", async () => {
      const made = await configMap({}, { annotations: { "a/b": "1" } });
      const patch = (...body: object[]): Promise<Stored<ConfigMap>> =>
        client.patch(configMaps, made.metadata, { type: "json", body });
      const path = "/metadata/annotations/a~1b";
      const isOne = { op: "test", path, value: "1" };
      const changed = await patch(isOne, { op: "replace", path, value: "2" });
      expect(changed.metadata.annotations).toEqual({ "a/b": "2" });
      expect(await codeOf(patch({ op: "add", path: "/data", value: { c: "3" } }, isOne))).toBe("Unprocessable");
      expect(await codeOf(patch({ op: "remove", path: "/metadata/annotations/none" }))).toBe("Unprocessable");
      expect(await client.get(configMaps, made.metadata)).toEqual(changed);
    });

    test("merges lists in a strategic patch by their keys", async () => {
      const made = await client.create(pods, podOf(named({ finalizers: ["example.com/a", "example.com/b"] })));
      const ready = { type: "Ready", status: "True" };
      const body = { status: { conditions: [{ type: "PodScheduled", status: "False", reason: "Waiting" }, ready] } };
      await strategic(made, body, "status");
      const conditions = [
        { type: "PodScheduled", message: "soon" },
        { type: "Ready", $patch: "delete" },
      ];
      const changed = await strategic(made, { status: { conditions } }, "status");
      expect(changed.status?.conditions).toMatchObject([
        { type: "PodScheduled", status: "False", reason: "Waiting", message: "soon" },
      ]);
      const released = await strategic(made, {
        metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/a"] },
      });
      expect(released.metadata.finalizers).toEqual(["example.com/b"]);
      await strategic(made, { metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/b"] } });
    });

    test("stores nothing in a dry run", async () => {
      const metadata = named();
      const trial = await client.create(configMaps, { metadata, data: { color: "red" } }, { dryRun: true });
      expect(trial).toMatchObject({ data: { color: "red" }, metadata: { resourceVersion: "" } });
      expect(trial.metadata.uid).not.toBe("");
      expect(await client.find(configMaps, metadata)).toBeUndefined();
      const made = await configMap({ color: "red" });
      const patch: Patch = { type: "merge", body: { data: { color: "blue" } } };
      expect((await client.patch(configMaps, made.metadata, patch, { dryRun: true })).data).toEqual({ color: "blue" });
      expect(await client.get(configMaps, made.metadata)).toEqual(made);
    });
  });

  describe("apply", () => {
    const apply = (by: string, metadata: object, spec: object, force = false): Promise<Stored<Note>> =>
      client.patch(
        notes,
        { namespace, name: "", ...metadata },
        { type: "apply", body: { apiVersion: "conformance.legation.dev/v1", kind: "Note", metadata, spec }, force },
        { fieldManager: by },
      );

    test("creates what is not there, unless a uid says that it was", async () => {
      const made = await apply("one", named(), { color: "red" });
      expect(made.spec).toEqual({ color: "red" });
      expect(await codeOf(apply("one", named({ uid: made.metadata.uid }), { color: "red" }))).toBe("Conflict");
    });

    test("removes the fields that its manager applied before, and leaves those of others", async () => {
      const ref = named();
      await apply("one", ref, { color: "red", size: 1 });
      await apply("two", ref, { shape: "round" });
      expect((await apply("one", ref, { color: "red" })).spec).toEqual({ color: "red", shape: "round" });
    });

    test("refuses to change another manager's field, and takes it by force", async () => {
      const ref = named();
      await apply("one", ref, { color: "red" });
      const error = await errorOf(apply("two", ref, { color: "blue" }));
      expect(error.code).toBe("Conflict");
      const cause = { type: "FieldManagerConflict", field: ".spec.color" };
      expect(error.details?.causes).toMatchObject([cause]);
      expect(error.details?.causes[0]?.message).toContain('"one"');
      expect((await apply("two", ref, { color: "blue" }, true)).spec).toEqual({ color: "blue" });
      expect(await codeOf(apply("one", ref, { color: "red" }))).toBe("Conflict");
    });

    test("applies only to the version that was meant", async () => {
      const { metadata } = await apply("one", named(), { color: "red" });
      const { name, resourceVersion } = metadata;
      await apply("one", { namespace, name, resourceVersion }, { color: "blue" });
      expect(await codeOf(apply("one", { namespace, name, resourceVersion }, { color: "red" }))).toBe("Conflict");
      expect(await codeOf(apply("one", { namespace, name, uid: "another" }, { color: "red" }))).toBe("Unprocessable");
    });

    test("notes who wrote which fields, and how", async () => {
      const made = await client.create(notes, { ...noteOf(named()), spec: { size: 1 } }, { fieldManager: "author" });
      await apply("one", { namespace, name: made.metadata.name }, { color: "red" });
      const { metadata } = await merge(notes, made, { status: { ready: 1 } }, "status");
      const written = metadata.managedFields?.map(({ time: _, ...rest }) => rest) ?? [];
      const entry = { apiVersion: "conformance.legation.dev/v1", fieldsType: "FieldsV1" };
      expect(written.find(({ manager }) => manager === "one")).toMatchObject({
        ...entry,
        manager: "one",
        operation: "Apply",
        fieldsV1: { "f:spec": { "f:color": {} } },
      });
      expect(written.find(({ manager }) => manager === "author")).toMatchObject({
        operation: "Update",
        fieldsV1: { "f:spec": { "f:size": {} } },
      });
      expect(written.find(({ subresource }) => subresource === "status")).toMatchObject({
        operation: "Update",
        fieldsV1: { "f:status": { "f:ready": {} } },
      });
    });
  });

  describe("delete", () => {
    test("refuses what is not there, and another object or version", async () => {
      const { metadata } = await configMap();
      const { resourceVersion } = await merge(configMaps, { metadata }, { data: { a: "b" } }).then(
        (one) => one.metadata,
      );
      expect(await codeOf(client.delete(configMaps, { namespace, name: "none" }))).toBe("NotFound");
      expect(await codeOf(client.delete(configMaps, metadata, { uid: "another" }))).toBe("Conflict");
      const { resourceVersion: stale } = metadata;
      expect(await codeOf(client.delete(configMaps, metadata, { resourceVersion: stale }))).toBe("Conflict");
      await client.delete(configMaps, metadata, { uid: metadata.uid, resourceVersion });
      expect(await client.find(configMaps, metadata)).toBeUndefined();
    });

    test("waits for finalizers, of which none can be added any more", async () => {
      const made = await note({ metadata: named({ finalizers: ["example.com/a"] }) });
      await client.delete(notes, made.metadata);
      const deleted = await client.get(notes, made.metadata);
      expect(deleted.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, finalizers: ["example.com/a"] });
      expect(deleted.metadata.deletionTimestamp).toBeDefined();
      await client.delete(notes, made.metadata);
      expect(await client.get(notes, made.metadata)).toEqual(deleted);
      const more = { metadata: { finalizers: ["example.com/a", "example.com/b"] } };
      expect(await codeOf(merge(notes, made, more))).toBe("Unprocessable");
      const last = await merge(notes, made, { metadata: { finalizers: [] } });
      expect(last.metadata.finalizers ?? []).toEqual([]);
      expect(await client.find(notes, made.metadata)).toBeUndefined();
    });

    test("ends a pod without a node at once, and gives one with a node its grace period", async () => {
      const unbound = await client.create(pods, podOf(named()));
      await client.delete(pods, unbound.metadata);
      expect(await client.find(pods, unbound.metadata)).toBeUndefined();
      const bound = await client.create(pods, podOf(named(), "nowhere"));
      await client.delete(pods, bound.metadata, { gracePeriodSeconds: 20 });
      expect((await client.get(pods, bound.metadata)).metadata).toMatchObject({ deletionGracePeriodSeconds: 20 });
      await client.delete(pods, bound.metadata, { gracePeriodSeconds: 0 });
      expect(await client.find(pods, bound.metadata)).toBeUndefined();
    });
  });

  describe("watch", () => {
    test("tells changes after a version, each with its own", async () => {
      const { resourceVersion } = await client.list(configMaps, { namespace });
      const made = await configMap({ color: "red" }, { labels: { set: "watch" } });
      const changed = await merge(configMaps, made, { data: { color: "blue" } });
      await client.delete(configMaps, made.metadata);
      const events = await watched(configMaps, { labelSelector: "set=watch", resourceVersion }, 3);
      expect(events.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
      const [added, modified, deleted] = events;
      expect(added?.object).toEqual(made);
      expect(modified?.object).toEqual(changed);
      expect(deleted?.object.data).toEqual({ color: "blue" });
      const { resourceVersion: last } = changed.metadata;
      expect(Number(deleted?.object.metadata.resourceVersion)).toBeGreaterThan(Number(last));
    });

    test("shows an object that is selected no more as deleted, and as added when it is again", async () => {
      const { resourceVersion } = await client.list(configMaps, { namespace });
      const made = await configMap({}, { labels: { set: "selected" } });
      const left = await merge(configMaps, made, { metadata: { labels: { set: "other" } } });
      await merge(configMaps, made, { metadata: { labels: { set: "selected" } } });
      const events = await watched(configMaps, { labelSelector: "set=selected", resourceVersion }, 3);
      expect(events.map(({ type }) => type)).toEqual(["ADDED", "DELETED", "ADDED"]);
      expect(events[1]?.object.metadata.labels).toEqual({ set: "selected" });
      expect(events[1]?.object.metadata.resourceVersion).toBe(left.metadata.resourceVersion);
    });

    test("tells the end of a finalizer as the deletion alone", async () => {
      const { resourceVersion } = await client.list(notes, { namespace });
      const made = await note({ metadata: named({ finalizers: ["example.com/a"], labels: { set: "held" } }) });
      await client.delete(notes, made.metadata);
      await merge(notes, made, { metadata: { finalizers: null } });
      const events = await watched(notes, { labelSelector: "set=held", resourceVersion }, 3);
      expect(events.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
      expect(events[2]?.object.metadata.finalizers).toEqual(["example.com/a"]);
    });

    test("begins with what there is where the client names no version", async () => {
      const made = await configMap({}, { labels: { set: "any" } });
      const [first] = await watched(configMaps, { labelSelector: "set=any", resourceVersion: "0" }, 1);
      expect(first).toMatchObject({ type: "ADDED", object: { metadata: { name: made.metadata.name } } });
    });

    test("ends with the signal", async () => {
      const { resourceVersion } = await client.list(configMaps, { namespace });
      const giveUp = new AbortController();
      const options = { namespace, resourceVersion, signal: giveUp.signal, onOpen: () => giveUp.abort() };
      const next = client.watch(configMaps, options)[Symbol.asyncIterator]().next();
      expect(await codeOf(next)).toBe("Aborted");
    });
  });

  describe("other requests", () => {
    test("bind a pod once, with the binding's annotations", async () => {
      const { metadata } = await client.create(pods, podOf(named({ annotations: { a: "1" } })));
      const binding = (uid: string): object => ({
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: metadata.name, namespace, uid, annotations: { b: "2" } },
        target: { apiVersion: "v1", kind: "Node", name: "nowhere" },
      });
      const bind = (uid: string): Promise<unknown> => client.createSubresource(pods, metadata, "binding", binding(uid));
      expect(await codeOf(bind("another"))).toBe("Conflict");
      await bind(metadata.uid);
      const bound = await client.get(pods, metadata);
      expect(bound.spec?.nodeName).toBe("nowhere");
      expect(bound.metadata.annotations).toMatchObject({ a: "1", b: "2" });
      expect(bound.status?.conditions).toMatchObject([{ type: "PodScheduled", status: "True" }]);
      expect(await codeOf(bind(metadata.uid))).toBe("Conflict");
      await client.delete(pods, metadata, { gracePeriodSeconds: 0 });
    });

    test("issue tokens of service accounts", async () => {
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } };
      const ref = { namespace, name: "default" };
      const answer = await client.createSubresource(serviceAccounts, ref, "token", body);
      expect(answer).toMatchObject({ status: { token: expect.any(String), expirationTimestamp: expect.any(String) } });
      const none = client.createSubresource(serviceAccounts, { namespace, name: "none" }, "token", body);
      expect(await codeOf(none)).toBe("NotFound");
    });

    test("discover groups, versions and resources", async () => {
      await note();
      expect(await client.raw({ method: "GET", path: "/apis" })).toMatchObject({
        groups: expect.arrayContaining([
          expect.objectContaining({
            name: notes.group,
            versions: [{ groupVersion: `${notes.group}/v1`, version: "v1" }],
            preferredVersion: { groupVersion: `${notes.group}/v1`, version: "v1" },
          }),
        ]),
      });
      expect(await client.raw({ method: "GET", path: `/apis/${notes.group}/v1` })).toMatchObject({
        resources: expect.arrayContaining([expect.objectContaining({ name: "notes", kind: "Note", namespaced: true })]),
      });
      expect(await client.raw({ method: "GET", path: "/version" })).toMatchObject({ major: "1" });
      expect(await codeOf(client.raw({ method: "GET", path: "/apis/none.legation.dev/v1" }))).toBe("NotFound");
    });
  });

  function merge<T extends KubeObject>(
    resource: Resource<T>,
    { metadata: { name } }: Stored<KubeObject> | { metadata: { name: string } },
    body: object,
    subresource?: string,
  ): Promise<Stored<T>> {
    const options = subresource === undefined ? {} : { subresource };
    return client.patch(resource, { namespace, name }, { type: "merge", body }, options);
  }

  function strategic({ metadata }: Stored<Pod>, body: object, subresource?: string): Promise<Stored<Pod>> {
    const options = subresource === undefined ? {} : { subresource };
    return client.patch(pods, { namespace, name: metadata.name }, { type: "strategic", body }, options);
  }

  /** Returns the first events of a watch, without bookmarks. */
  async function watched<T extends KubeObject>(
    resource: Resource<T>,
    options: { readonly labelSelector?: string; readonly resourceVersion: string },
    count: number,
  ): Promise<ObjectEvent<T>[]> {
    const found: ObjectEvent<T>[] = [];
    const giveUp = new AbortController();
    for await (const event of client.watch(resource, { namespace, ...options, signal: giveUp.signal })) {
      if (event.type !== "BOOKMARK") found.push(event);
      if (found.length === count) break;
    }
    return found;
  }
}

/** Returns a pod that no scheduler looks at. */
function podOf(metadata: object, nodeName?: string): Pod {
  const node = nodeName === undefined ? { schedulerName: "nobody" } : { nodeName };
  const spec = { containers: [{ name: "main", image: "busybox" }], ...node };
  return { apiVersion: "v1", kind: "Pod", metadata, spec };
}

async function errorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isKubeError(error)) throw new Error(`expected a KubeError, got ${error}`);
  return error;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await errorOf(promise)).code;
}
