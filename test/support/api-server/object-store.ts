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
  readonly #keptChanges: number;
  /** By collection, the oldest first. */
  #changes = new Map<string, Change[]>();
  /** Last forgotten version of each collection. */
  readonly #forgotten = new Map<string, number>();
  #version = 1;
  #compacted = 0;

  /** `keptChanges`: changes of each collection that watches can begin before, at least. */
  constructor(keptChanges: number = Number.POSITIVE_INFINITY) {
    this.#keptChanges = keptChanges;
  }

  get version(): number {
    return this.#version;
  }

  /** Returns the version of a collection from before which watches have to list again. */
  oldest(collection: string): number {
    return Math.max(this.#compacted, this.#forgotten.get(collection) ?? 0);
  }

  count(collection: string): number {
    return this.#collections.get(collection)?.size ?? 0;
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
    return this.#changes.get(collection)?.filter((change) => change.version > version) ?? [];
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets the history: every watch that begins before now gets 410. */
  compact(): void {
    this.#changes.clear();
    this.#compacted = this.#version;
  }

  /** Returns a function that puts the present state back, as if nothing after it had ever been. */
  backUp(): () => void {
    const version = this.#version;
    const changes = new Map([...this.#changes].map(([name, all]) => [name, [...all]]));
    const collections = [...this.#collections].map(([name, objects]) => [name, new Map(objects)] as const);
    return () => {
      this.#version = version;
      this.#changes = changes;
      this.#collections.clear();
      for (const [name, objects] of collections) this.#collections.set(name, objects);
    };
  }

  #record(change: Change): void {
    const { collection } = change;
    const changes = this.#changes.get(collection) ?? [];
    this.#changes.set(collection, changes);
    changes.push(change);
    // Forgets many at once: each time costs as much as there are.
    if (changes.length > 2 * this.#keptChanges) {
      const last = changes.splice(0, changes.length - this.#keptChanges).at(-1);
      if (last !== undefined) this.#forgotten.set(collection, last.version);
    }
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
