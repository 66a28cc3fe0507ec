import type { KubeObject, ObjectRef, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { isStored, namespaces, type Resource } from "../../../src/kube/resources.ts";
import { ApiServer } from "./api-server.ts";
import { clientOf } from "./client.ts";
import type { ServedResource } from "./refusal.ts";

/** A cluster in memory: an API server with the identity of a cluster, and a client of it. */
export class MemoryCluster extends ApiServer {
  readonly client: ClusterClient = clientOf(this);

  constructor(name: string, uid: string) {
    super(name);
    this.put(namespaces, { metadata: { name: "kube-system", uid } });
  }

  /** Stores an object in place of one that another client has deleted. */
  remake(resource: ServedResource, object: KubeObject & { readonly metadata: ObjectRef }): void {
    this.drop(resource, object.metadata);
    this.put(resource, object);
  }

  /** Returns a copy of an object, which the test may change. */
  peek<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Stored<T> | undefined {
    const found: unknown = structuredClone(this.find(resource, ref));
    return isStored<T>(found) ? found : undefined;
  }
}
