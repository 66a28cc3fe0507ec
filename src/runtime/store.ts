import type { TimeSlice } from "../kube/event-loop.ts";
import { type KubeObject, type ObjectKey, objectKey, type Stored } from "../kube/objects.ts";
import { sameUid } from "./resource-version.ts";

/** A change of the store. A `deleted` object is the last known state; the final one when the watch delivered it. */
export type ReflectorEvent<T extends KubeObject> =
  | { readonly type: "added"; readonly object: Stored<T> }
  | { readonly type: "updated"; readonly object: Stored<T>; readonly previous: Stored<T> }
  | { readonly type: "deleted"; readonly object: Stored<T> };

/** Returns the index values of an object, such as the uid of its owner. */
export type IndexFunction<T extends KubeObject> = (object: Stored<T>) => readonly string[];

/** The read side of a store. Objects are shared: never mutate one. */
export interface ReadStore<T extends KubeObject> {
  get(key: ObjectKey): Stored<T> | undefined;
  list(): Stored<T>[];
  /** Adds an index of all objects, unless there is one of that name. */
  addIndex(index: string, valuesOf: IndexFunction<T>): void;
  removeIndex(index: string): void;
  /** Throws when there is no such index. */
  byIndex(index: string, value: string): Stored<T>[];
  countByIndex(index: string, value: string): number;
  readonly size: number;
  /** Reports whether the store has held the server's complete state. */
  readonly synced: boolean;
}

interface Index<T extends KubeObject> {
  readonly valuesOf: IndexFunction<T>;
  readonly entries: Map<string, Map<ObjectKey, Stored<T>>>;
}

/** A store with its write side. Only the reflector holds this type. */
export class Store<T extends KubeObject> implements ReadStore<T> {
  readonly #objects = new Map<ObjectKey, Stored<T>>();
  readonly #indexes = new Map<string, Index<T>>();
  synced = false;

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>> = {}) {
    for (const [name, valuesOf] of Object.entries(indexes)) this.addIndex(name, valuesOf);
  }

  addIndex(name: string, valuesOf: IndexFunction<T>): void {
    if (this.#indexes.has(name)) return;
    const index = { valuesOf, entries: new Map() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) link(index, key, object);
  }

  removeIndex(name: string): void {
    this.#indexes.delete(name);
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): Stored<T> | undefined {
    return this.#objects.get(key);
  }

  list(): Stored<T>[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): Stored<T>[] {
    return [...(this.#entries(index, value)?.values() ?? [])];
  }

  countByIndex(index: string, value: string): number {
    return this.#entries(index, value)?.size ?? 0;
  }

  #entries(index: string, value: string): Map<ObjectKey, Stored<T>> | undefined {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new Error(`store has no index ${index}; it has: ${[...this.#indexes.keys()]}`);
    return found.entries.get(value);
  }

  set(object: Stored<T>): void {
    const key = objectKey(object.metadata);
    const previous = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) {
      if (previous !== undefined) unlink(index, key, previous);
      link(index, key, object);
    }
  }

  /** Returns the differences. Yields to the event loop in between, so readers may see a partial replacement. */
  async replace(staged: ReadonlyMap<ObjectKey, Stored<T>>, slice: TimeSlice): Promise<ReflectorEvent<T>[]> {
    const events: ReflectorEvent<T>[] = [];
    for (const previous of this.list()) {
      const key = objectKey(previous.metadata);
      const object = staged.get(key);
      if (object !== undefined && sameUid(object, previous)) continue;
      this.delete(key);
      events.push({ type: "deleted", object: previous });
      if (slice.due) await slice.next();
    }
    for (const [key, object] of staged) {
      const previous = this.get(key);
      if (previous === object) continue;
      this.set(object);
      events.push(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
      if (slice.due) await slice.next();
    }
    return events;
  }

  delete(key: ObjectKey): void {
    const previous = this.#objects.get(key);
    if (previous === undefined) return;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) unlink(index, key, previous);
  }
}

function link<T extends KubeObject>(index: Index<T>, key: ObjectKey, object: Stored<T>): void {
  for (const value of index.valuesOf(object)) {
    const entries = index.entries.get(value);
    if (entries === undefined) index.entries.set(value, new Map([[key, object]]));
    else entries.set(key, object);
  }
}

function unlink<T extends KubeObject>(index: Index<T>, key: ObjectKey, object: Stored<T>): void {
  for (const value of index.valuesOf(object)) {
    const entries = index.entries.get(value);
    if (entries === undefined) continue;
    entries.delete(key);
    // An empty entry would leak: index values such as uids never come back.
    if (entries.size === 0) index.entries.delete(value);
  }
}
