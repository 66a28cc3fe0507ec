import { describe, expect, test } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import { Store } from "../../../src/runtime/store.ts";

function podOn(name: string, nodeName?: string): Stored<Pod> {
  return {
    metadata: { namespace: "default", name, uid: name, resourceVersion: "1" },
    spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
  };
}

function storeByNode(): Store<Pod> {
  return new Store<Pod>({ node: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]) });
}

const names = (objects: readonly Stored<Pod>[]): string[] => objects.map(({ metadata }) => metadata.name).sort();

describe("Store", () => {
  test("returns an object by its key until it is deleted", () => {
    const store = storeByNode();
    const key = objectKey({ namespace: "default", name: "a" });
    store.set(podOn("a"));
    expect(store.get(key)?.metadata.name).toBe("a");
    expect(store.size).toBe(1);
    store.delete(key);
    store.delete(key);
    expect([store.get(key), store.size, store.list()]).toEqual([undefined, 0, []]);
  });

  test("finds objects by index after a change of the value", () => {
    const store = storeByNode();
    store.set(podOn("a", "n1"));
    store.set(podOn("b", "n1"));
    store.set(podOn("c"));
    expect(names(store.byIndex("node", "n1"))).toEqual(["a", "b"]);
    store.set(podOn("a", "n2"));
    store.set(podOn("b"));
    expect(names(store.byIndex("node", "n1"))).toEqual([]);
    expect(names(store.byIndex("node", "n2"))).toEqual(["a"]);
    store.delete(objectKey({ namespace: "default", name: "a" }));
    expect(store.byIndex("node", "n2")).toEqual([]);
  });

  test("returns the newest object by index when the value stays", () => {
    const store = storeByNode();
    store.set(podOn("a", "n1"));
    const newer = { ...podOn("a", "n1"), status: { phase: "Running" } };
    store.set(newer);
    expect(store.byIndex("node", "n1")).toEqual([newer]);
  });

  test("has an index of all objects that is added later, until it is removed", () => {
    const store = storeByNode();
    store.set(podOn("a", "n1"));
    store.addIndex("name", ({ metadata }) => [metadata.name]);
    store.set(podOn("b"));
    store.addIndex("name", () => ["another of that name"]);
    expect([names(store.byIndex("name", "a")), store.countByIndex("name", "b")]).toEqual([["a"], 1]);
    store.delete(objectKey({ namespace: "default", name: "a" }));
    expect(store.byIndex("name", "a")).toEqual([]);
    store.removeIndex("name");
    expect(() => store.byIndex("name", "b")).toThrow("no index name");
  });

  test("names its indexes when asked for an unknown one", () => {
    expect(() => storeByNode().byIndex("owner", "x")).toThrow("store has no index owner; it has: node");
  });
});
