import { beforeAll, describe, expect, test } from "vitest";
import type { ConfigMap, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient, Patch } from "../../../../src/kube/client.ts";
import { configMaps, pods } from "../../../../src/kube/resources.ts";
import { codeOf, errorOf, type Note, notes, podOf, type Suite } from "./suite.ts";

/** Cases of changes and deletions. */
export function describeWrites({ scene, named, note, noteOf, configMap, merge, strategic }: Suite): void {
  let client: ClusterClient;
  let namespace: string;
  beforeAll(() => {
    ({ client, namespace } = scene());
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
}
