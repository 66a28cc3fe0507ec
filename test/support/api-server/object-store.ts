import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { ObjectRef, Stored } from "../../../src/api/kubernetes.ts";
import { isStored } from "../../../src/kube/resources.ts";

/** An object of any type, as it is stored. */
export type StoredObject = Stored<AnyObject>;

/** A change, as watches are told. */
export interface Change {
  readonly version: number;
  /** Plural with group: `widgets.example.com`. */
  readonly collection: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: StoredObject;
  /** The state before, by which a watch with a selector tells whether it showed the object. */
  readonly before: StoredObject | undefined;
}

/** Objects by collection, one version counter, and the history that watches replay. */
export class ObjectStore {
  readonly #collections = new Map<string, Map<string, StoredObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  #changes: Change[] = [];
  #version = 1;
  #oldest = 0;

  get version(): number {
    return this.#version;
  }

  /** Watches from an older version have to list again. */
  get oldest(): number {
    return this.#oldest;
  }

  /** Returns the objects in the order of their keys, which is that of an API server's lists. */
  all(collection: string): StoredObject[] {
    const objects = this.#collections.get(collection) ?? new Map<string, StoredObject>();
    return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  find(collection: string, place: ObjectRef): StoredObject | undefined {
    return this.#collections.get(collection)?.get(keyOf(place));
  }

  /** Stores an object with a new resourceVersion. */
  put(collection: string, object: StoredObject): StoredObject {
    this.#version += 1;
    const before = this.find(collection, object.metadata);
    const stored = withVersion(object, this.#version);
    const objects = this.#collections.get(collection) ?? new Map<string, StoredObject>();
    this.#collections.set(collection, objects);
    objects.set(keyOf(object.metadata), stored);
    const type = before === undefined ? "ADDED" : "MODIFIED";
    this.#record({ version: this.#version, collection, type, object: stored, before });
    return stored;
  }

  /** Removes an object. Its last state has the resourceVersion of the deletion, as etcd's has. */
  remove(collection: string, object: StoredObject): StoredObject {
    this.#version += 1;
    this.#collections.get(collection)?.delete(keyOf(object.metadata));
    const last = withVersion(object, this.#version);
    this.#record({ version: this.#version, collection, type: "DELETED", object: last, before: object });
    return last;
  }

  /** Returns the changes of a collection after a version. */
  since(collection: string, version: number): Change[] {
    return this.#changes.filter((change) => change.version > version && change.collection === collection);
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets the history: every watch that begins before now gets 410. */
  compact(): void {
    this.#changes = [];
    this.#oldest = this.#version;
  }

  /** Returns a function that puts the present state back, as if nothing after it had ever been. */
  backUp(): () => void {
    const [version, changes] = [this.#version, [...this.#changes]];
    const collections = [...this.#collections].map(([name, objects]) => [name, new Map(objects)] as const);
    return () => {
      this.#version = version;
      this.#changes = changes;
      this.#collections.clear();
      for (const [name, objects] of collections) this.#collections.set(name, objects);
    };
  }

  #record(change: Change): void {
    this.#changes.push(change);
    for (const listener of [...this.#listeners]) listener(change);
  }
}

/** Returns an object as a stored one, checked. */
export function asStored(object: unknown): StoredObject {
  if (!isStored<AnyObject>(object)) throw new Error(`not a stored object: ${JSON.stringify(object)}`);
  return object;
}

function withVersion(object: StoredObject, version: number): StoredObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

/** `namespace/name`. */
function keyOf({ namespace = "", name }: ObjectRef): string {
  return `${namespace}/${name}`;
}
