import { z } from "zod";
import type { KubeObject, ObjectRef, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, Patch } from "../../../src/kube/client.ts";
import type { KubeError, KubeErrorCode } from "../../../src/kube/errors.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { isStored } from "../../../src/kube/resources.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

const entries = z.array(
  z.looseObject({ name: z.string(), clientConfig: z.looseObject({ caBundle: z.string().optional() }) }),
);
const configuration = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().optional() }).optional(),
  webhooks: entries,
});

/** An API server's store in memory: what the webhook uses of one, with optimistic locking. */
export class MemoryClient implements ClusterClient {
  readonly cluster: string = "host";
  /** Every write, as `verb plural/name`. */
  readonly writes: string[] = [];
  /** Called before each write; may change the store, as another replica would. */
  beforeWrite: () => void = () => {};
  /** When set, every call is refused with it. */
  failure: KubeErrorCode | undefined;
  readonly #objects = new Map<string, KubeObject>();
  #version = 0;

  readonly get: ClusterClient["get"] = unused;
  readonly list: ClusterClient["list"] = unused;
  readonly createSubresource: ClusterClient["createSubresource"] = unused;
  readonly delete: ClusterClient["delete"] = unused;
  readonly raw: ClusterClient["raw"] = unused;
  readonly watch: ClusterClient["watch"] = unused;
  readonly upgrade: ClusterClient["upgrade"] = unused;
  readonly stream: ClusterClient["stream"] = unused;

  async close(): Promise<void> {}

  /** Stores an object whatever is there, without a write. */
  put(resource: Resource<KubeObject>, object: KubeObject): void {
    this.#version += 1;
    const { name = "", ...metadata } = object.metadata ?? {};
    const resourceVersion = String(this.#version);
    const stored = { ...object, metadata: { ...metadata, name, uid: `uid-${name}`, resourceVersion } };
    this.#objects.set(keyOf(resource, refOf(object)), stored);
  }

  peek<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Stored<T> | undefined {
    const found: unknown = structuredClone(this.#objects.get(keyOf(resource, ref)));
    return isStored<T>(found) ? found : undefined;
  }

  /** Forgets an object, without a write. */
  drop(resource: Resource<KubeObject>, ref: ObjectRef): void {
    this.#objects.delete(keyOf(resource, ref));
  }

  async find<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<Stored<T> | undefined> {
    this.#check("get");
    return this.peek(resource, ref);
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> {
    this.#write("create", resource, refOf(object));
    if (this.#objects.has(keyOf(resource, refOf(object)))) throw error("AlreadyExists", "create");
    return this.#store(resource, object);
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> {
    this.#write("update", resource, refOf(object));
    const stored = this.#objects.get(keyOf(resource, refOf(object)));
    if (stored?.metadata?.resourceVersion !== object.metadata?.resourceVersion) throw error("Conflict", "update");
    return this.#store(resource, object);
  }

  /** A strategic merge of the one field that the webhook patches: `webhooks`, by name. */
  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: Patch): Promise<Stored<T>> {
    this.#write("patch", resource, ref);
    const stored = this.#objects.get(keyOf(resource, ref));
    if (stored === undefined) throw error("NotFound", "patch");
    const { metadata, webhooks: changes } = configuration.parse(patch.body);
    const version = metadata?.resourceVersion;
    if (version !== undefined && version !== stored.metadata?.resourceVersion) throw error("Conflict", "patch");
    const webhooks = configuration.parse(stored).webhooks.map((entry) => {
      const change = changes.find(({ name }) => name === entry.name);
      return { ...entry, clientConfig: { ...entry.clientConfig, ...change?.clientConfig } };
    });
    return this.#store(resource, Object.assign({ ...stored }, { webhooks }));
  }

  #write(verb: string, { plural }: Resource<KubeObject>, { name }: ObjectRef): void {
    this.#check(verb);
    this.beforeWrite();
    this.writes.push(`${verb} ${plural}/${name}`);
  }

  #store<T extends KubeObject>(resource: Resource<T>, object: KubeObject): Stored<T> {
    this.put(resource, object);
    const stored = this.peek(resource, refOf(object));
    if (stored === undefined) throw new Error("not stored");
    return stored;
  }

  #check(verb: string): void {
    if (this.failure !== undefined) throw error(this.failure, verb);
  }
}

/** The caBundles of a webhook configuration, in the order of its entries. */
export function bundlesOf(object: unknown): (string | undefined)[] {
  return configuration
    .parse(object)
    .webhooks.map(({ clientConfig: { caBundle } }) =>
      caBundle === undefined ? undefined : Buffer.from(caBundle, "base64").toString(),
    );
}

function keyOf({ plural }: Resource<KubeObject>, { namespace = "", name }: ObjectRef): string {
  return `${plural}/${namespace}/${name}`;
}

function refOf({ metadata: { name = "", namespace } = {} }: KubeObject): ObjectRef {
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function error(code: KubeErrorCode, verb: string): KubeError {
  return kubeError(code, code, { cluster: "host", verb, resource: "test" });
}

function unused(): never {
  throw new Error("the webhook does not use this");
}
