import type { KubeObject, ObjectRef, Stored } from "../../../../src/api/kubernetes.ts";
import { parseLabelSelector, selectorMatches } from "../../../../src/api/label-selector.ts";
import type { ClusterClient, ListOptions, Patch, RawRequest } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { isStored, type Resource } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const served = (...kinds: readonly (readonly [name: string, kind: string, namespaced: boolean])[]): object => ({
  resources: kinds.map(([name, kind, namespaced]) => ({ name, kind, namespaced, verbs: ["list", "delete"] })),
});
const DISCOVERY: Readonly<Record<string, object>> = {
  "/apis": { groups: [] },
  "/api/v1": served(
    ["namespaces", "Namespace", false],
    ["pods", "Pod", true],
    ["serviceaccounts", "ServiceAccount", true],
  ),
  "/apis/rbac.authorization.k8s.io/v1": served(
    ["clusterroles", "ClusterRole", false],
    ["clusterrolebindings", "ClusterRoleBinding", false],
  ),
  "/apis/legation.dev/v1alpha1": served(["clusters", "Cluster", false]),
};

/** The part of an API server that a join uses, in memory. */
export class MemoryCluster {
  readonly client: ClusterClient;
  /** Called before each creation; may change the store, as another join would. */
  beforeCreate: (object: KubeObject) => Promise<void> | void = () => {};
  /** Makes what is created into what is stored. */
  onCreate: (object: KubeObject) => KubeObject = (object) => object;
  /** Called after each deletion; may change the store, as another client would. */
  afterDelete: (plural: string, ref: ObjectRef) => void = () => {};
  /** Minor version of Kubernetes 1. */
  minor = "36";
  readonly #objects = new Map<string, KubeObject>();
  #version = 0;

  constructor(cluster: string, uid: string) {
    this.client = fakeClient({
      cluster,
      get: async (resource, ref) => this.peek(resource, ref) ?? fail("NotFound", resource.plural),
      find: async (resource, ref) => this.peek(resource, ref),
      list: async (resource, options) => this.#list(resource, options),
      create: async (resource, object, { dryRun } = {}) => {
        if (dryRun !== true) await this.beforeCreate(object);
        const ref = refOf(object);
        if (this.peek(resource, ref) !== undefined) fail("AlreadyExists", resource.plural);
        if (dryRun === true) return { ...object, metadata: { ...object.metadata, uid: "", resourceVersion: "" } };
        this.put(resource, this.onCreate(object));
        return this.peek(resource, ref) ?? fail("NotFound", resource.plural);
      },
      patch: async (resource, ref, patch, { dryRun } = {}) => {
        if (dryRun !== true) this.#patch(resource, ref, patch);
        return this.peek(resource, ref) ?? fail("NotFound", resource.plural);
      },
      delete: async (resource, ref, { uid } = {}) => {
        const found = this.peek(resource, ref) ?? fail("NotFound", resource.plural);
        if (uid !== undefined && uid !== found.metadata.uid) fail("Conflict", resource.plural);
        this.drop(resource, ref);
        this.afterDelete(resource.plural, ref);
      },
      createSubresource: async (resource, ref) => {
        const account = this.peek(resource, ref) ?? fail("NotFound", resource.plural);
        const token = `token-of-${account.metadata.uid}`;
        return { status: { token, expirationTimestamp: new Date(Date.now() + 1e9).toISOString() } };
      },
      raw: async ({ path }: RawRequest) => {
        if (path === "/version") return { major: "1", minor: this.minor };
        return DISCOVERY[path] ?? fail("NotFound", path);
      },
    });
    this.put({ plural: "namespaces" }, { metadata: { name: "kube-system", uid } });
  }

  /** Stores an object whatever is there. */
  put({ plural }: { readonly plural: string }, object: KubeObject & { readonly status?: unknown }): void {
    this.#version += 1;
    const ref = refOf(object);
    const metadata = { uid: `uid-${this.#version}`, ...object.metadata, resourceVersion: String(this.#version) };
    this.#objects.set(keyOf(plural, ref), { ...object, metadata });
  }

  peek<T extends KubeObject>({ plural }: Pick<Resource<T>, "plural">, ref: ObjectRef): Stored<T> | undefined {
    const found: unknown = structuredClone(this.#objects.get(keyOf(plural, ref)));
    return isStored<T>(found) ? found : undefined;
  }

  drop({ plural }: { readonly plural: string }, ref: ObjectRef): void {
    this.#objects.delete(keyOf(plural, ref));
  }

  #list({ plural }: Resource<KubeObject>, options: ListOptions = {}) {
    const { namespace = "", fieldSelector, labelSelector = "" } = options;
    const parsed = parseLabelSelector(labelSelector);
    const name = fieldSelector?.replace("metadata.name=", "");
    const items = [...this.#objects.entries()]
      .filter(([key]) => key.startsWith(namespace === "" ? `${plural}/` : `${plural}/${namespace}/`))
      .map(([, object]) => object)
      .filter(({ metadata }) => name === undefined || metadata?.name === name)
      .filter(({ metadata }) => parsed.ok && selectorMatches(parsed.selector, metadata?.labels ?? {}));
    return { items: structuredClone(items), resourceVersion: String(this.#version), size: 0 };
  }

  #patch(resource: Resource<KubeObject>, ref: ObjectRef, { type, body }: Patch): void {
    const before = this.peek<KubeObject & { readonly data?: object; readonly spec?: object }>(resource, ref);
    const { metadata = {}, ...rest } = body as KubeObject & { data?: object; spec?: object };
    if (type !== "json" && rest.data !== undefined) rest.data = merged(before?.data, rest.data);
    if (type === "merge" && rest.spec !== undefined) rest.spec = merged(before?.spec, rest.spec);
    const labels = merged(before?.metadata.labels, metadata.labels);
    const annotations = merged(before?.metadata.annotations, metadata.annotations);
    this.put(resource, { ...before, ...rest, metadata: { ...before?.metadata, ...metadata, labels, annotations } });
  }
}

/** Applies a merge patch, in which null removes a key. */
function merged<T extends object>(before: T | undefined, patch: T | undefined): T {
  return Object.fromEntries(Object.entries({ ...before, ...patch }).filter(([, value]) => value !== null)) as T;
}

function keyOf(plural: string, { namespace = "", name }: ObjectRef): string {
  return `${plural}/${namespace}/${name}`;
}

function refOf({ metadata: { name = "", namespace } = {} }: KubeObject): ObjectRef {
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

function fail(code: KubeErrorCode, resource: string): never {
  throw kubeError(code, code, { cluster: "memory", verb: "test", resource });
}
