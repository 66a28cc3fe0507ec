import { randomUUID } from "node:crypto";
import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";

/** A change, as a watch event. */
export interface Change {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Stored<KubeObject>;
}

/** The state of a fake API server: objects by path, one version counter, and the history that watches replay. */
export class World {
  readonly objects: Map<string, Stored<KubeObject>> = new Map();
  #version = 1;
  #history: Change[] = [];
  /** Watches that ask for an older version get 410. */
  #oldest = 1;
  readonly #listeners = new Set<(change: Change) => void>();

  get version(): number {
    return this.#version;
  }

  get oldest(): number {
    return this.#oldest;
  }

  /** Creates the object, or updates it when there is one of this name. */
  put(object: KubeObject): Stored<KubeObject> {
    const key = keyOf(object);
    const known = this.objects.get(key);
    this.#version += 1;
    const name = object.metadata?.name ?? "";
    const uid = known?.metadata.uid ?? randomUUID();
    const stored = { ...object, metadata: { ...object.metadata, name, uid, resourceVersion: String(this.#version) } };
    this.objects.set(key, stored);
    this.#record({ version: this.#version, type: known === undefined ? "ADDED" : "MODIFIED", object: stored });
    return stored;
  }

  /** Removes the object; its last state carries the version of the deletion, as etcd's does. */
  remove(object: { metadata?: { namespace?: string; name?: string } }): Stored<KubeObject> | undefined {
    const key = keyOf(object);
    const known = this.objects.get(key);
    if (known === undefined) return undefined;
    this.#version += 1;
    this.objects.delete(key);
    const last = { ...known, metadata: { ...known.metadata, resourceVersion: String(this.#version) } };
    this.#record({ version: this.#version, type: "DELETED", object: last });
    return last;
  }

  /** Forgets the history: every watch that begins before now gets 410. */
  compact(): void {
    this.#history = [];
    this.#oldest = this.#version;
  }

  /** Keeps the state as it is; what is returned puts it back, and nothing after it has ever been. */
  backUp(): () => void {
    const [version, objects, history] = [this.#version, [...this.objects], [...this.#history]];
    return () => {
      this.#version = version;
      this.#history = history;
      this.objects.clear();
      for (const [key, object] of objects) this.objects.set(key, object);
    };
  }

  since(version: number): Change[] {
    return this.#history.filter((change) => change.version > version);
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(change: Change): void {
    this.#history.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

/** `namespace/name`. */
export function keyOf({ metadata }: { metadata?: { namespace?: string; name?: string } }): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
