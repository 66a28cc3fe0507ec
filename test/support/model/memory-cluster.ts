import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual, setAt, valueAt } from "../../../src/api/json.ts";
import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import type {
  ClusterClient,
  DeleteOptions,
  ListOptions,
  Patch,
  RawRequest,
  WatchOptions,
  WriteOptions,
} from "../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../src/kube/errors.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { fakeClient } from "../../unit/cli/client.ts";
import { appliedTo, leavesOf, type Manager, moveTo, without } from "./managed-fields.ts";

interface Change {
  readonly version: number;
  readonly plural: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Stored<AnyObject>;
}

/** How a request fares on its way. `late`: it is carried out after its sender was told that the answer is lost. */
export type Fate = "answered" | "not sent" | "answer lost" | "late" | "dropped";

export interface Way {
  /** Delays a step by some milliseconds. */
  readonly pause: () => Promise<void>;
  readonly fate: () => Fate;
  /** Reports whether watches of a resource are served. */
  readonly isOpen: (plural: string) => boolean;
  /** Reports whether lists of a resource fail, as they do while a conversion webhook refuses. Default: none fails. */
  readonly failsToList?: (plural: string) => boolean;
}

/** A write as it is stored. */
export interface MemoryWrite {
  readonly plural: string;
  readonly by: string;
  readonly object: Stored<AnyObject>;
  /** Absent for a create. */
  readonly before?: Stored<AnyObject>;
}

/** An API server in memory: versions, uids, generations, finalizers, preconditions, and server-side apply by leaves. */
export class MemoryCluster {
  readonly name: string;
  readonly #objects = new Map<string, Stored<AnyObject>>();
  readonly #history: Change[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #now: () => number;
  /** Resources with objects of their own group, which discovery names. */
  readonly #defined = new Set<string>();
  readonly #unserved = new Set<string>();
  /** Called when a write was stored. */
  onWrite: (write: MemoryWrite) => void = () => {};
  #version = 1;
  #oldest = 0;
  #uids = 0;

  constructor(name: string, now: () => number) {
    this.name = name;
    this.#now = now;
  }

  /** Returns the objects of a resource. */
  all(plural: string): Stored<AnyObject>[] {
    return [...this.#objects].flatMap(([key, object]) => (key.startsWith(`${plural}/`) ? [object] : []));
  }

  find(plural: string, name: string): Stored<AnyObject> | undefined {
    return this.#objects.get(`${plural}/${name}`);
  }

  create(plural: string, object: AnyObject, by: string): Stored<AnyObject> {
    this.#served(plural);
    this.#defined.add(plural);
    const { name = "" } = object.metadata ?? {};
    if (this.find(plural, name) !== undefined) throw this.#error("AlreadyExists", `${name} exists`);
    this.#uids += 1;
    const metadata = {
      ...object.metadata,
      name,
      uid: `${this.name}-${this.#uids}`,
      generation: 1,
      creationTimestamp: this.#time(),
    };
    const managedFields = moveTo([], by, leavesOf(object));
    return this.#store(plural, { ...object, metadata: { ...metadata, managedFields } } as never, "ADDED", by);
  }

  update(plural: string, name: string, by: string, change: (object: AnyObject) => AnyObject): Stored<AnyObject> {
    const before = this.#get(plural, name);
    const after = change(before);
    const { uid, resourceVersion } = before.metadata;
    const { metadata = {} } = after as { metadata?: JsonObject };
    if (metadata.uid !== uid || metadata.resourceVersion !== resourceVersion) {
      throw this.#error("Conflict", "another version");
    }
    const [old, made] = [leavesOf(before), leavesOf(after)];
    const changed = new Map([...made].filter(([path, value]) => !jsonEqual(old.get(path), value)));
    const managers = (metadata.managedFields ?? []) as unknown as Manager[];
    const isTold = !jsonEqual(managers, before.metadata.managedFields ?? []);
    const managedFields = isTold ? managers : moveTo(managers, by, changed, new Set(made.keys()));
    return this.#replace(plural, before, { ...after, metadata: { ...metadata, managedFields } } as never, by);
  }

  apply(
    plural: string,
    name: string,
    by: string,
    { body: wanted, force = false }: { readonly body: AnyObject; readonly force?: boolean | undefined },
  ): Stored<AnyObject> {
    const before = this.#get(plural, name);
    const { uid, resourceVersion } = wanted.metadata ?? {};
    if (uid !== undefined && uid !== before.metadata.uid) throw this.#error("Conflict", "another object");
    if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
      throw this.#error("Conflict", "another version");
    }
    const applied = appliedTo(before, by, { wanted, force });
    if ("conflicts" in applied) {
      const message = 'conflict with "another" using v1';
      const causes = applied.conflicts.map((field) => ({ type: "FieldManagerConflict", field, message }));
      throw this.#error("Conflict", "fields of another manager", { causes });
    }
    return this.#replace(plural, before, applied.object, by);
  }

  delete(plural: string, name: string, by: string, { uid, resourceVersion }: DeleteOptions = {}): void {
    const found = this.#get(plural, name);
    if ((uid ?? found.metadata.uid) !== found.metadata.uid) throw this.#error("Conflict", "another object");
    if ((resourceVersion ?? found.metadata.resourceVersion) !== found.metadata.resourceVersion) {
      throw this.#error("Conflict", "another version");
    }
    if ((found.metadata.finalizers ?? []).length === 0) this.#remove(plural, found);
    else if (found.metadata.deletionTimestamp === undefined) {
      const metadata = { ...found.metadata, deletionTimestamp: this.#time() };
      this.#store(plural, { ...found, metadata }, "MODIFIED", by);
    }
  }

  /** Removes a resource with all objects, or serves it again. */
  serve(plural: string, isServed: boolean): void {
    if (isServed) this.#unserved.delete(plural);
    else {
      for (const object of this.all(plural)) this.#remove(plural, object);
      this.#unserved.add(plural);
    }
    this.#wake();
  }

  /** Watches that are behind have to list again. */
  compact(): void {
    this.#oldest = this.#version;
    this.#wake();
  }

  /** Ends waits of watches, which look again whether they are served. */
  wake(): void {
    this.#wake();
  }

  /** Returns a client whose requests fare as `way` says. */
  client(by: string, way: Way): ClusterClient {
    const send = async <T>(act: () => T): Promise<T> => {
      await way.pause();
      const fate = way.fate();
      if (fate === "not sent") throw this.#error("NotSent", "no connection");
      if (fate === "late")
        void way
          .pause()
          .then(way.pause)
          .then(act)
          .catch(() => undefined);
      if (fate === "late" || fate === "dropped") throw this.#error("AnswerLost", "no answer");
      const answer = act();
      await way.pause();
      if (fate === "answer lost") throw this.#error("AnswerLost", "no answer");
      return answer;
    };
    const list = ({ plural }: Resource<KubeObject>, options: ListOptions = {}): Promise<unknown> =>
      send(() => {
        this.#served(plural);
        if (way.failsToList?.(plural) === true) throw this.#error("ServerError", "conversion webhook failed");
        const items = this.all(plural).filter((object) => isSelected(object, options));
        return { items, resourceVersion: String(this.#version), size: 1 };
      });
    return fakeClient({
      cluster: this.name,
      raw: (({ path }: RawRequest) => send(() => this.#discovery(path))) as never,
      list: list as never,
      find: (({ plural }: Resource<KubeObject>, { name }: { name: string }) =>
        send(() => this.find(plural, name))) as never,
      create: (({ plural }: Resource<KubeObject>, object: AnyObject, { fieldManager = by }: WriteOptions = {}) =>
        send(() => this.create(plural, object, fieldManager))) as never,
      patch: ((
        { plural }: Resource<KubeObject>,
        { name }: { name: string },
        patch: Patch,
        options: WriteOptions = {},
      ) =>
        send(() =>
          this.#patch(plural, name, patch, { ...options, fieldManager: options.fieldManager ?? by }),
        )) as never,
      delete: (({ plural }: Resource<KubeObject>, { name }: { name: string }, options: DeleteOptions = {}) =>
        send(() => this.delete(plural, name, by, options))) as never,
      watch: (({ plural }: Resource<KubeObject>, options: WatchOptions) => this.#watch(plural, options, way)) as never,
    });
  }

  #discovery(path: string): unknown {
    const version = { version: "v1" };
    if (path === "/apis") return { groups: [{ name: "example.com", versions: [version], preferredVersion: version }] };
    return { resources: [...this.#defined].filter((name) => !this.#unserved.has(name)).map((name) => ({ name })) };
  }

  async *#watch(plural: string, options: WatchOptions, way: Way): AsyncGenerator<unknown> {
    const { signal, onOpen, resourceVersion } = options;
    await way.pause();
    const fate = way.fate();
    if (fate !== "answered" && fate !== "answer lost") throw this.#error("NotSent", "no connection");
    this.#served(plural);
    let version = Number(resourceVersion);
    if (version < this.#oldest) throw this.#error("Gone", "too old");
    onOpen?.();
    let place = this.#history.findIndex((change) => change.version > version);
    if (place === -1) place = this.#history.length;
    // Objects that the watch showed: one that is selected no more is deleted for it.
    const shown = new Set<string>();
    for (const change of this.#history.slice(0, place)) {
      if (change.plural !== plural) continue;
      if (change.type !== "DELETED" && isSelected(change.object, options)) shown.add(change.object.metadata.name);
      else shown.delete(change.object.metadata.name);
    }
    while (!signal.aborted) {
      if (!way.isOpen(plural)) throw this.#error("AnswerLost", "the watch was cut");
      const change = this.#history[place];
      if (change === undefined) {
        if (this.#unserved.has(plural)) return;
        await new Promise<void>((resolve) => {
          const wake = (): void => {
            this.#listeners.delete(wake);
            signal.removeEventListener("abort", wake);
            resolve();
          };
          this.#listeners.add(wake);
          signal.addEventListener("abort", wake, { once: true });
        });
        continue;
      }
      place += 1;
      version = change.version;
      if (change.plural !== plural) continue;
      const { name } = change.object.metadata;
      const isShown = change.type !== "DELETED" && isSelected(change.object, options);
      const wasShown = shown.has(name);
      if (!isShown && !wasShown) continue;
      await way.pause();
      if (isShown) shown.add(name);
      else shown.delete(name);
      const type = !isShown ? "DELETED" : wasShown ? "MODIFIED" : "ADDED";
      yield { type, object: change.object, size: 1 };
    }
  }

  #patch(plural: string, name: string, patch: Patch, { subresource, fieldManager = "" }: WriteOptions): unknown {
    const { type, body } = patch;
    if (type === "apply")
      return this.apply(plural, name, fieldManager, { body: body as AnyObject, force: patch.force });
    return this.update(plural, name, fieldManager, (object) => {
      const after =
        type === "merge"
          ? merged(object, body)
          : patched(object, body as Operation[], () => this.#error("Unprocessable", "test failed"));
      const { status, ...rest } = after as AnyObject;
      // A status write changes the status alone, and any other leaves it.
      if (subresource === "status")
        return { ...object, status, metadata: { ...object.metadata, ...preconditionsOf(after as AnyObject) } } as never;
      return { ...rest, ...(object.status === undefined ? {} : { status: object.status }) };
    });
  }

  #replace(plural: string, before: Stored<AnyObject>, after: Stored<AnyObject>, by: string): Stored<AnyObject> {
    if (jsonEqual(withoutVersions(before), withoutVersions(after))) return before;
    const content = ({ metadata: _, status: __, ...rest }: Stored<AnyObject>): object => rest;
    const isChanged = !jsonEqual(content(before), content(after));
    const generation = (before.metadata.generation ?? 1) + (isChanged ? 1 : 0);
    const { uid, creationTimestamp, deletionTimestamp } = before.metadata;
    const times = {
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    };
    const metadata = { ...after.metadata, uid, generation, ...times };
    const stored = this.#store(plural, { ...after, metadata }, "MODIFIED", by);
    if (deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0) this.#remove(plural, stored);
    return stored;
  }

  #store(plural: string, object: Stored<AnyObject>, type: Change["type"], by: string): Stored<AnyObject> {
    this.#version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    const before = this.find(plural, stored.metadata.name);
    this.#objects.set(`${plural}/${stored.metadata.name}`, stored);
    this.#history.push({ version: this.#version, plural, type, object: stored });
    this.onWrite({ plural, by, object: stored, ...(before === undefined ? {} : { before }) });
    this.#wake();
    return stored;
  }

  #remove(plural: string, object: Stored<AnyObject>): void {
    this.#version += 1;
    this.#objects.delete(`${plural}/${object.metadata.name}`);
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.#history.push({ version: this.#version, plural, type: "DELETED", object: last });
    this.#wake();
  }

  #get(plural: string, name: string): Stored<AnyObject> {
    this.#served(plural);
    const found = this.find(plural, name);
    if (found === undefined) throw this.#error("NotFound", `${plural} ${name} is not there`);
    return found;
  }

  #served(plural: string): void {
    if (this.#unserved.has(plural)) throw this.#error("NotFound", "the server could not find the requested resource");
  }

  #wake(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #time(): string {
    return `${new Date(this.#now()).toISOString().slice(0, 19)}Z`;
  }

  #error(
    code: KubeErrorCode,
    detail: string,
    details?: { readonly causes: readonly { type: string; field: string }[] },
  ): KubeError {
    const fields = { code, cluster: this.name, verb: "write", resource: "objects" };
    return new KubeError(detail, { ...fields, ...(details === undefined ? {} : { details }) });
  }
}

function preconditionsOf({ metadata = {} }: AnyObject): object {
  const { uid, resourceVersion, annotations } = metadata;
  return { uid, resourceVersion, ...(annotations === undefined ? {} : { annotations }) };
}

function withoutVersions({ metadata, ...rest }: Stored<AnyObject>): object {
  const { resourceVersion: _, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

function merged(object: unknown, body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  const result: Record<string, unknown> = isJsonObject(object) ? { ...object } : {};
  for (const [key, value] of Object.entries(body)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = merged(result[key], value);
  }
  return result;
}

interface Operation {
  readonly op: "add" | "replace" | "test" | "remove";
  readonly path: string;
  readonly value?: unknown;
}

function patched(object: AnyObject, operations: readonly Operation[], failed: () => KubeError): AnyObject {
  let result: JsonObject = object as never;
  for (const { op, path, value } of operations) {
    const keys = path
      .split("/")
      .slice(1)
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    if (op === "test") {
      if (!jsonEqual(valueAt(result, keys), value)) throw failed();
    } else result = op === "remove" ? without(result, keys) : (setAt(result, keys, value) as JsonObject);
  }
  return result as never;
}

function isSelected(
  { metadata }: Stored<AnyObject>,
  { labelSelector, fieldSelector, namespace }: ListOptions,
): boolean {
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  if (fieldSelector !== undefined && fieldSelector !== `metadata.name=${metadata.name}`) return false;
  const { labels = {} } = metadata;
  return (labelSelector?.split(",") ?? []).every((term) => {
    if (term.startsWith("!")) return labels[term.slice(1)] === undefined;
    const [key = "", value] = term.split("=");
    return value === undefined ? labels[key] !== undefined : labels[key] === value;
  });
}
