import { beforeAll, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { configMaps, pods, serviceAccounts } from "../../../../src/kube/resources.ts";
import { codeOf, notes, podOf, type Suite } from "./suite.ts";

/** Cases of creates, reads and requests beside them. */
export function describeReads({ scene, named, note, configMap }: Suite): void {
  let client: ClusterClient;
  let namespace: string;
  beforeAll(() => {
    ({ client, namespace } = scene());
  });

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
}
