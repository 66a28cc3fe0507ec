import { type KubeObject, type ObjectRef, objectKey } from "../../../src/api/kubernetes.ts";
import { pods } from "../../../src/kube/resources.ts";
import type { ApiServer } from "../api-server/api-server.ts";
import type { StoredObject } from "../api-server/object-store.ts";
import type { ServedResource } from "../api-server/refusal.ts";

/** The objects of an API server in memory, told apart by their kind. Without one they are pods. */
export class World {
  readonly #server: ApiServer;

  constructor(server: ApiServer) {
    this.#server = server;
  }

  get version(): number {
    return Number(this.#server.version);
  }

  /** The pods by their keys. */
  get objects(): ReadonlyMap<string, StoredObject> {
    return new Map(this.#server.all(pods).map((object) => [objectKey(object.metadata), object]));
  }

  /** Creates the object, or updates it when there is one of this name. */
  put<T extends KubeObject>(object: T): StoredObject {
    return this.#server.put(this.#resourceOf(object), object);
  }

  remove(object: KubeObject): StoredObject | undefined {
    return this.#server.drop(this.#resourceOf(object), refOf(object));
  }

  /** Forgets the history: every watch that begins before now gets 410. */
  compact(): void {
    this.#server.compact();
  }

  /** Keeps the state as it is; what is returned puts it back, and nothing after it has ever been. */
  backUp(): () => void {
    return this.#server.backUp();
  }

  #resourceOf({ kind = pods.kind }: KubeObject): ServedResource {
    return this.#server.resources.ofKind(kind) ?? pods;
  }
}

function refOf({ metadata: { name = "", namespace } = {} }: KubeObject): ObjectRef {
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}
