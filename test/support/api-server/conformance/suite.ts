import { afterAll, beforeAll } from "vitest";
import type { ConfigMap, KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient, WatchEvent } from "../../../../src/kube/client.ts";
import { isKubeError, type KubeError } from "../../../../src/kube/errors.ts";
import { configMaps, pods, type Resource } from "../../../../src/kube/resources.ts";

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

/** An event that shows an object. */
export type ObjectEvent<T extends KubeObject> = Exclude<WatchEvent<T>, { readonly type: "BOOKMARK" }>;

/** A server under test. */
export interface Scene {
  readonly client: ClusterClient;
  /** A namespace of the suite's own, with the service account `default`. */
  readonly namespace: string;
  readonly close?: () => Promise<void>;
}

/** What the cases share. */
export interface Suite {
  readonly scene: () => Scene;
  /** A name of its own in the suite's namespace, with further metadata. */
  readonly named: (parts?: object) => { namespace: string; name: string };
  readonly note: (parts?: Partial<Note>) => Promise<Stored<Note>>;
  readonly noteOf: (metadata: NonNullable<KubeObject["metadata"]>) => Note;
  readonly configMap: (data?: ConfigMap["data"], metadata?: object) => Promise<Stored<ConfigMap>>;
  readonly merge: <T extends KubeObject>(
    resource: Resource<T>,
    object: { readonly metadata: { readonly name: string } },
    body: object,
    subresource?: string,
  ) => Promise<Stored<T>>;
  readonly strategic: (pod: Stored<Pod>, body: object, subresource?: string) => Promise<Stored<Pod>>;
  /** Returns the first events of a watch, without bookmarks. */
  readonly watched: <T extends KubeObject>(
    resource: Resource<T>,
    options: { readonly labelSelector?: string; readonly resourceVersion: string },
    count: number,
  ) => Promise<ObjectEvent<T>[]>;
}

/** Sets the scene for the cases that follow, and returns what they share. */
export function setScene(setUp: () => Promise<Scene>): Suite {
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
  const noteOf = (metadata: NonNullable<KubeObject["metadata"]>): Note => {
    return { apiVersion: "conformance.legation.dev/v1", kind: "Note", metadata: { ...metadata } };
  };
  const configMap = (data: ConfigMap["data"] = {}, metadata: object = {}): Promise<Stored<ConfigMap>> =>
    client.create(configMaps, { metadata: named(metadata), data });

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

  return { scene: () => scene, named, note, noteOf, configMap, merge, strategic, watched };
}

/** Returns a pod that no scheduler looks at. */
export function podOf(metadata: object, nodeName?: string): Pod {
  const node = nodeName === undefined ? { schedulerName: "nobody" } : { nodeName };
  const spec = { containers: [{ name: "main", image: "busybox" }], ...node };
  return { apiVersion: "v1", kind: "Pod", metadata, spec };
}

/** Returns the error that a request rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isKubeError(error)) throw new Error(`expected a KubeError, got ${error}`);
  return error;
}

/** Returns the code of the error that a request rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return (await errorOf(promise)).code;
}
