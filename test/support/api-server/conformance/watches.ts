import { beforeAll, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { codeOf, notes, type Suite } from "./suite.ts";

/** Cases of watches. */
export function describeWatches({ scene, named, note, configMap, merge, watched }: Suite): void {
  let client: ClusterClient;
  let namespace: string;
  beforeAll(() => {
    ({ client, namespace } = scene());
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
}
