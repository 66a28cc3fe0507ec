import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { jsonEqual } from "../../../src/api/json.ts";
import type { KubeObject, ObjectMeta, ObjectRef } from "../../../src/api/kubernetes.ts";
import type { DeleteOptions, ListOptions, Patch } from "../../../src/kube/client.ts";
import type { Selection } from "../../../src/kube/list.ts";
import { kindName } from "../../../src/kube/resources.ts";
import { appliedTo, type Manager, managersAfter } from "./managed-fields.ts";
import { asStored, ObjectStore, type StoredObject } from "./object-store.ts";
import { patched } from "./patches.ts";
import {
  alreadyExists,
  applyConflict,
  conflict,
  expired,
  internalError,
  invalid,
  notFound,
  notServed,
  type ServedResource,
  uidMismatch,
} from "./refusal.ts";
import { Resources } from "./resources.ts";
import { selectionOf } from "./selection.ts";
import { createdState, deletionOf, finalized, statusWritten, typeOf, withGeneration } from "./strategies.ts";
import { Watch } from "./watch.ts";

/** The options of a write. */
export interface Write {
  /** Field manager. */
  readonly by: string;
  readonly dryRun?: boolean | undefined;
  readonly subresource?: string | undefined;
}

/** A write as it was stored. */
export interface StoredWrite {
  readonly resource: ServedResource;
  readonly by: string;
  readonly object: StoredObject;
  /** Absent for a create. */
  readonly before?: StoredObject;
}

export interface Page {
  readonly items: StoredObject[];
  readonly resourceVersion: string;
  readonly continue?: string;
}

/**
 * An API server in memory: versions, uids, generations, preconditions, finalizers, patches, managed fields, selectors, pages and
 * watches. Without admission, validation of types, defaults, garbage collection, and namespaces that have to exist.
 */
export class ApiServer {
  readonly name: string;
  /** The answer of `/version`. */
  kubernetesVersion: { readonly major: string; readonly minor: string; readonly gitVersion: string } = {
    major: "1",
    minor: "36",
    gitVersion: "v1.36.0",
  };
  readonly resources: Resources = new Resources();
  /** Whether writes note their manager. A test may leave it out whose clock is not this server's. */
  notesManagers = true;
  /** Called when a write was stored. A deletion is none. */
  onWrite: (write: StoredWrite) => void = () => {};
  /** Called when a client's deletion has removed an object. */
  onRemoval: (resource: ServedResource, object: StoredObject) => void = () => {};
  /** Changes what is created before it is stored, as admission does. */
  admit: (resource: ServedResource, object: AnyObject) => AnyObject = (_resource, object) => object;
  readonly #store: ObjectStore;
  readonly #now: () => number;
  readonly #pages = new Map<string, { readonly version: string; readonly items: readonly StoredObject[] }>();
  readonly #watches = new Set<Watch>();
  #uids = 0;
  #names = 0;

  /** `keptChanges`: changes of each resource that watches can begin before, at least. */
  constructor(name = "fake", now: () => number = Date.now, keptChanges?: number) {
    this.name = name;
    this.#now = now;
    this.#store = new ObjectStore(keptChanges);
  }

  /** The server's clock; epoch ms. */
  now(): number {
    return this.#now();
  }

  get version(): string {
    return String(this.#store.version);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  /** Stores an object as a test has it: no rule of a write applies. */
  put<T extends KubeObject>(resource: ServedResource, given: T): StoredObject {
    this.resources.define(resource);
    const object = onWire(given);
    const { name = "" } = object.metadata ?? {};
    const known = this.find(resource, { ...object.metadata, name });
    const metadata = { name, uid: known?.metadata.uid ?? this.#uid(), resourceVersion: "", ...object.metadata };
    const { apiVersion, kind } = typeOf(resource);
    return this.#store.put(kindName(resource), { apiVersion, kind, ...object, metadata });
  }

  /** Removes an object whatever holds it. */
  drop(resource: ServedResource, place: ObjectRef): StoredObject | undefined {
    const found = this.find(resource, place);
    return found && this.#store.remove(kindName(resource), found);
  }

  find(resource: ServedResource, place: ObjectRef): StoredObject | undefined {
    return this.#store.find(kindName(resource), place);
  }

  all(resource: ServedResource): StoredObject[] {
    return this.#store.all(kindName(resource));
  }

  count(resource: ServedResource): number {
    return this.#store.count(kindName(resource));
  }

  /** Removes a resource with all objects, or serves it again. */
  serve(resource: ServedResource, isServed: boolean): void {
    if (!isServed) for (const object of this.all(resource)) this.#store.remove(kindName(resource), object);
    this.resources.serve(resource, isServed);
    this.wake();
  }

  /** Expires all versions before the present one. */
  compact(): void {
    this.#store.compact();
    this.expirePages();
    this.wake();
  }

  expirePages(): void {
    this.#pages.clear();
  }

  backUp(): () => void {
    return this.#store.backUp();
  }

  /** Sends a bookmark to each open watch. */
  bookmark(): void {
    for (const watch of this.#watches) watch.bookmark(this.version);
  }

  /** Ends each open watch in good order, as an API server does now and then. */
  endWatches(): void {
    for (const watch of [...this.#watches]) watch.end();
  }

  /** Has the readers of watches look again, whether what they depend on has changed. */
  wake(): void {
    for (const watch of [...this.#watches]) watch.wake();
  }

  get(resource: ServedResource, place: ObjectRef): StoredObject {
    this.#check(resource);
    const found = this.find(resource, place);
    if (found === undefined) throw notFound(resource, place.name);
    return found;
  }

  list(resource: ServedResource, options: Omit<ListOptions, "signal"> = {}): Page {
    this.#check(resource);
    const { limit = Number.POSITIVE_INFINITY, continue: token } = options;
    const [id = "", from = "0"] = token?.split("@") ?? [];
    const known = this.#pages.get(id);
    if (token !== undefined && known === undefined) throw expired("The provided continue parameter is too old");
    const isSelected = selectionOf(resource.plural, options);
    const page = known ?? { version: this.version, items: this.all(resource).filter(isSelected) };
    const begin = Number(from);
    const end = begin + limit;
    const items = page.items.slice(begin, end);
    if (end >= page.items.length) return { items, resourceVersion: page.version };
    const key = known === undefined ? `${this.version}.${this.#pages.size}` : id;
    this.#pages.set(key, page);
    return { items, resourceVersion: page.version, continue: `${key}@${end}` };
  }

  /** Opens a watch. The reader closes it. */
  watch(resource: ServedResource, { resourceVersion, ...selection }: Selection & { resourceVersion: string }): Watch {
    this.#check(resource);
    const isSelected = selectionOf(resource.plural, selection);
    const from = Number(resourceVersion);
    const collection = kindName(resource);
    const oldest = this.#store.oldest(collection);
    if (from > 0 && from < oldest) throw expired(`too old resource version: ${resourceVersion} (${oldest})`);
    const isServed = (): boolean => this.resources.isServed(resource);
    const watch = new Watch(isSelected, isServed, () => {
      unsubscribe();
      this.#watches.delete(watch);
    });
    // Any version will do for the client: the watch begins with what there is.
    if (from === 0) for (const object of this.all(resource)) watch.show(object);
    else for (const change of this.#store.since(collection, from)) watch.tell(change);
    const unsubscribe = this.#store.subscribe((change) => {
      if (change.collection === collection) watch.tell(change);
    });
    this.#watches.add(watch);
    return watch;
  }

  create(resource: ServedResource, sent: KubeObject, write: Write): StoredObject {
    this.#check(resource);
    const object = onWire(sent);
    const { resourceVersion, uid: _, generateName = "", ...given } = object.metadata ?? {};
    if (resourceVersion !== undefined && resourceVersion !== "") {
      throw internalError("resourceVersion should not be set on objects to be created");
    }
    const name = given.name ?? (generateName === "" ? "" : `${generateName}${this.#suffix()}`);
    if (name === "") throw invalid(resource, "", "metadata.name: Required value: name or generateName is required");
    if (this.find(resource, { ...given, name }) !== undefined) throw alreadyExists(resource, name);
    const metadata = {
      ...(generateName === "" ? {} : { generateName }),
      ...given,
      name,
      uid: this.#uid(),
      creationTimestamp: this.#time(),
    };
    const { deletionTimestamp: _deleted, deletionGracePeriodSeconds: _grace, ...created } = metadata;
    const admitted = this.admit(resource, { ...typeOf(resource), ...object, metadata: created });
    const made = createdState(resource, admitted);
    const managed = this.#managed(undefined, made, write);
    const stored = asStored({ ...made, metadata: { ...made.metadata, resourceVersion: "", ...managed } });
    if (write.dryRun === true) return stored;
    return this.#put(resource, stored, write.by);
  }

  replace(resource: ServedResource, object: KubeObject, write: Write): StoredObject {
    const { name = "" } = object.metadata ?? {};
    return this.update(resource, { ...object.metadata, name }, write, (before) => {
      checkPreconditions(resource, before, { ...object.metadata });
      return onWire(object);
    });
  }

  /** Changes an object as a client that has just read it. */
  update(
    resource: ServedResource,
    place: ObjectRef,
    write: Write,
    change: (object: StoredObject) => AnyObject,
  ): StoredObject {
    const before = this.get(resource, place);
    const wanted = change(before);
    checkPatched(resource, before, wanted.metadata ?? {});
    const { name, uid, resourceVersion } = before.metadata;
    const metadata = { ...wanted.metadata, name, uid, resourceVersion, ...this.#managed(before, wanted, write) };
    return this.#commit(resource, before, { ...wanted, metadata }, write);
  }

  patch(resource: ServedResource, place: ObjectRef, patch: Patch, write: Write): StoredObject {
    if (patch.type === "apply") return this.#apply(resource, place, { ...patch, body: { ...patch.body } }, write);
    return this.update(resource, place, write, (object) => patched(resource, object, patch));
  }

  delete(
    resource: ServedResource,
    place: ObjectRef,
    options: DeleteOptions & { readonly by?: string } = {},
  ): StoredObject {
    const found = this.get(resource, place);
    checkPreconditions(resource, found, options);
    const deleted = deletionOf(resource, found, options.gracePeriodSeconds, this.#now());
    if (deleted === undefined) {
      const last = this.#store.remove(kindName(resource), found);
      this.onRemoval(resource, last);
      return last;
    }
    return jsonEqual(deleted, found) ? found : this.#put(resource, deleted, options.by ?? "", found);
  }

  #apply(
    resource: ServedResource,
    place: ObjectRef,
    { body, force = false }: { readonly body: AnyObject; readonly force?: boolean },
    write: Write,
  ): StoredObject {
    const by = this.#manager(write, "Apply");
    const { status, ...rest } = onWire(body);
    const wanted = write.subresource === "status" && status !== undefined ? { ...rest, status } : rest;
    const { namespace, name } = place;
    const metadata = { ...body.metadata, ...(namespace === undefined ? {} : { namespace }), name };
    const found = this.find(resource, place);
    if (found === undefined) {
      if (write.subresource !== undefined) throw notFound(resource, place.name);
      if (metadata.uid !== undefined) throw uidMismatch(resource, place.name, metadata.uid, "");
      const made = this.create(resource, { ...rest, metadata }, { ...write, dryRun: true });
      const applied = appliedTo({ ...made, metadata: { ...made.metadata, managedFields: [] } }, by, { wanted, force });
      const object = "object" in applied ? applied.object : made;
      return write.dryRun === true ? object : this.#put(resource, object, write.by);
    }
    checkPatched(resource, found, metadata);
    const applied = appliedTo(found, by, { wanted, force });
    if ("object" in applied) return this.#commit(resource, found, applied.object, write);
    throw applyConflict(applied.conflicts, found.apiVersion);
  }

  /** Stores the changed object, whose managers are told already. */
  #commit(resource: ServedResource, before: StoredObject, wanted: StoredObject, write: Write): StoredObject {
    const part = statusWritten(resource, before, wanted, write.subresource);
    const { name, deletionTimestamp, finalizers = [] } = before.metadata;
    const isAdded = part.metadata.finalizers?.some((one) => !finalizers.includes(one)) === true;
    if (deletionTimestamp !== undefined && isAdded) {
      const why = "no new finalizers can be added if the object is being deleted";
      throw invalid(resource, name, `metadata.finalizers: Forbidden: ${why}`);
    }
    const after = withGeneration(resource, before, part);
    if (jsonEqual(before, after)) return before;
    if (write.dryRun === true) return after;
    if (!finalized(after)) return this.#put(resource, after, write.by, before);
    // The last finalizer went: the object goes as it was, without a modification before.
    this.onWrite({ resource, by: write.by, object: after, before });
    this.#store.remove(kindName(resource), before);
    return after;
  }

  #put(resource: ServedResource, object: StoredObject, by: string, before?: StoredObject): StoredObject {
    const stored = this.#store.put(kindName(resource), object);
    this.onWrite({ resource, by, object: stored, ...(before === undefined ? {} : { before }) });
    return stored;
  }

  #check(resource: ServedResource): void {
    this.resources.define(resource);
    if (!this.resources.isServed(resource)) throw notServed();
  }

  #managed(before: StoredObject | undefined, after: AnyObject, write: Write): Pick<ObjectMeta, "managedFields"> {
    return this.notesManagers ? { managedFields: managersAfter(before, after, this.#manager(write, "Update")) } : {};
  }

  #manager({ by, subresource }: Write, operation: Manager["operation"]): Manager {
    return { manager: by, operation, time: this.#time(), ...(subresource === undefined ? {} : { subresource }) };
  }

  #uid(): string {
    this.#uids += 1;
    return `${this.name}-${this.#uids}`;
  }

  #suffix(): string {
    this.#names += 1;
    return this.#names.toString(36).padStart(5, "x");
  }

  #time(): string {
    return `${new Date(this.#now()).toISOString().slice(0, 19)}Z`;
  }
}

/** Checks the metadata that a patch leads to, in which the uid is no precondition but a field that does not change. */
function checkPatched(
  resource: ServedResource,
  before: StoredObject,
  { uid = "", resourceVersion = "" }: Pick<DeleteOptions, "uid" | "resourceVersion">,
): void {
  checkPreconditions(resource, before, { resourceVersion });
  if (uid === "" || uid === before.metadata.uid) return;
  throw invalid(resource, before.metadata.name, `metadata.uid: Invalid value: "${uid}": field is immutable`);
}

function checkPreconditions(
  resource: ServedResource,
  { metadata }: StoredObject,
  { uid = "", resourceVersion = "" }: Pick<DeleteOptions, "uid" | "resourceVersion">,
): void {
  const { name } = metadata;
  if (resourceVersion !== "" && resourceVersion !== metadata.resourceVersion) {
    const why = "the object has been modified; please apply your changes to the latest version and try again";
    throw conflict(resource, name, why);
  }
  if (uid !== "" && uid !== metadata.uid) throw uidMismatch(resource, name, uid, metadata.uid);
}

/** Returns a copy as it comes over the wire, so that later changes of a test's object change nothing here. */
function onWire(object: object): AnyObject {
  return JSON.parse(JSON.stringify(object));
}
