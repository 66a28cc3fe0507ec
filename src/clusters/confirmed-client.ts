import type { KubeObject, ObjectRef, Stored } from "../api/kubernetes.ts";
import type {
  ClusterClient,
  DeleteOptions,
  ListOptions,
  ListPage,
  Patch,
  RawRequest,
  RequestOptions,
  StreamAnswer,
  StreamOptions,
  UpgradeAnswer,
  UpgradeOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "../kube/client.ts";
import { KubeError } from "../kube/errors.ts";
import { pods, type Resource } from "../kube/resources.ts";
import type { CreateThrottle } from "./create-throttle.ts";
import type { JoinedIdentity } from "./identity.ts";

/**
 * A client that sends nothing to another cluster. Callers take absence from its lists and watches as proof of
 * deletion.
 */
export class ConfirmedClient implements ClusterClient {
  readonly #client: ClusterClient;
  readonly #identity: Pick<JoinedIdentity, "problem" | "mistaken" | "confirm">;
  readonly #throttle: Pick<CreateThrottle, "of">;

  constructor(
    client: ClusterClient,
    identity: Pick<JoinedIdentity, "problem" | "mistaken" | "confirm">,
    throttle: Pick<CreateThrottle, "of">,
  ) {
    this.#client = client;
    this.#identity = identity;
    this.#throttle = throttle;
  }

  get cluster(): string {
    return this.#client.cluster;
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: RequestOptions): Promise<Stored<T>> {
    this.#check("get", resource.plural);
    return this.#client.get(resource, ref, options);
  }

  async find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options?: RequestOptions,
  ): Promise<Stored<T> | undefined> {
    this.#check("get", resource.plural);
    return this.#client.find(resource, ref, options);
  }

  async list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ListPage<T>> {
    if (options?.continue === undefined) await this.#identity.confirm();
    this.#check("list", resource.plural);
    return this.#client.list(resource, options);
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>> {
    this.#check("create", resource.plural);
    const send = (): Promise<Stored<T>> => this.#client.create(resource, object, options);
    // Only an uncertain create of a pod keeps the pod from other members, so no other create is throttled.
    if (resource.plural !== pods.plural || options?.dryRun === true) return send();
    const { namespace = "", name = "" } = object.metadata ?? {};
    const { signal, isWanted } = options ?? {};
    return this.#throttle.of({ namespace, name, signal, isWanted }, send);
  }

  async createSubresource(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    body: object,
    options?: RequestOptions,
  ): Promise<unknown> {
    this.#check("create", `${resource.plural}/${subresource}`);
    return this.#client.createSubresource(resource, ref, subresource, body, options);
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>> {
    this.#check("update", resource.plural);
    return this.#client.replace(resource, object, options);
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<Stored<T>> {
    this.#check("patch", resource.plural);
    return this.#client.patch(resource, ref, patch, options);
  }

  async delete(resource: Resource<KubeObject>, ref: ObjectRef, options?: DeleteOptions): Promise<void> {
    this.#check("delete", resource.plural);
    return this.#client.delete(resource, ref, options);
  }

  async raw(request: RawRequest): Promise<unknown> {
    this.#check(request.method.toLowerCase(), request.path);
    return this.#client.raw(request);
  }

  /** Rejects with Gone once another cluster answers: its resource versions mean nothing in the member. */
  async *watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    await this.#identity.confirm();
    this.#check("watch", resource.plural, "Gone");
    const { mistaken } = this.#identity;
    try {
      yield* this.#client.watch(resource, { ...options, signal: AbortSignal.any([options.signal, mistaken]) });
    } catch (error) {
      if (!mistaken.aborted || options.signal.aborted) throw error;
      const message = mistaken.reason instanceof Error ? mistaken.reason.message : "another cluster answers";
      throw new KubeError(message, { code: "Gone", cluster: this.cluster, verb: "watch", resource: resource.plural });
    }
  }

  async upgrade(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: UpgradeOptions,
  ): Promise<UpgradeAnswer> {
    this.#check("get", `${resource.plural}/${subresource}`);
    return this.#client.upgrade(resource, ref, subresource, options);
  }

  async stream(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    subresource: string,
    options: StreamOptions,
  ): Promise<StreamAnswer> {
    this.#check("get", `${resource.plural}/${subresource}`);
    return this.#client.stream(resource, ref, subresource, options);
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #check(verb: string, resource: string, code: "NotSent" | "Gone" = "NotSent"): void {
    const { problem } = this.#identity;
    if (problem !== undefined) throw new KubeError(problem, { code, cluster: this.cluster, verb, resource });
  }
}
