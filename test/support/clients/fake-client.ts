import type {
  ClusterClient,
  DeleteOptions,
  ListOptions,
  Patch,
  RequestOptions,
  WatchOptions,
  WriteOptions,
} from "../../../src/kube/client.ts";
import type { KubeObject, ObjectRef } from "../../../src/kube/objects.ts";
import type { Resource } from "../../../src/kube/resources.ts";

/** A page of a list, as JSON. */
interface Page {
  readonly items: readonly object[];
  readonly resourceVersion?: string;
  readonly size?: number;
  readonly continue?: string;
}

/**
 * The methods of a client whose responses are JSON of the asked resource's type. A test answers with the fields that the
 * code under test reads.
 */
interface ObjectMethods {
  get(resource: Resource<KubeObject>, ref: ObjectRef, options?: RequestOptions): Promise<object>;
  find(resource: Resource<KubeObject>, ref: ObjectRef, options?: RequestOptions): Promise<object | undefined>;
  list(resource: Resource<KubeObject>, options?: ListOptions): Promise<Page>;
  create(resource: Resource<KubeObject>, object: KubeObject, options?: WriteOptions): Promise<object>;
  replace(resource: Resource<KubeObject>, object: KubeObject, options?: WriteOptions): Promise<object>;
  patch(resource: Resource<KubeObject>, ref: ObjectRef, patch: Patch, options?: WriteOptions): Promise<object>;
  delete(resource: Resource<KubeObject>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  watch(resource: Resource<KubeObject>, options: WatchOptions): AsyncIterable<object>;
}

/** The methods of a client that a test fakes. */
export type FakeMethods = Partial<ObjectMethods & Omit<ClusterClient, keyof ObjectMethods>>;

/** A client of which a test says what the used methods do; any other call fails the test. */
export function fakeClient(methods: FakeMethods): ClusterClient {
  const unexpected = (): never => {
    throw new Error("this request was not expected");
  };
  return {
    cluster: "fake",
    get: unexpected,
    find: unexpected,
    list: unexpected,
    create: unexpected,
    createSubresource: unexpected,
    replace: unexpected,
    patch: unexpected,
    delete: unexpected,
    raw: unexpected,
    watch: unexpected,
    upgrade: unexpected,
    stream: unexpected,
    close: async () => {},
    // Like a real client, takes JSON for objects of the asked type.
    ...(methods as Partial<ClusterClient>),
  };
}
