import { OVERFLOW_LABEL_VALUE, PROXY_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";

/**
 * Pods that are bound to virtual nodes, as far as their Bindings may not have made them proxies: the gate for that is off, or one
 * of several API servers is older. They would have their node, and nobody would run them. No watch of this controller has them.
 */
export class Unmarked {
  readonly #pods = new Map<ObjectKey, Stored<Pod>>();

  /** The pod as it is once it is bound; undefined when it is none of them. */
  get(key: ObjectKey): Stored<Pod> | undefined {
    return this.#pods.get(key);
  }

  /** Those on the member's virtual node, or on their way there. */
  on(member: string): ObjectKey[] {
    const node = virtualNodeName(member);
    return [...this.#pods].flatMap(([key, { spec }]) => (spec?.nodeName === node ? [key] : []));
  }

  /** The pod is about to be bound to the member's virtual node. */
  expect(pod: Stored<Pod>, member: string): void {
    const spec = { containers: [], ...pod.spec, nodeName: virtualNodeName(member) };
    this.#pods.set(objectKey(pod.metadata), { ...pod, spec });
  }

  /** It is a proxy, not bound, or gone. */
  forget(key: ObjectKey): void {
    this.#pods.delete(key);
  }

  /** Reads those that earlier leaders have left on the members' virtual nodes. Rejects with KubeError. */
  async find(host: ClusterClient, members: readonly string[], signal: AbortSignal): Promise<ObjectKey[]> {
    for (const member of members) {
      const { items } = await host.list(pods, {
        labelSelector: `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`,
        fieldSelector: `spec.nodeName=${virtualNodeName(member)}`,
        dropManagedFields: true,
        signal,
      });
      for (const pod of items) if (memberOf(pod) !== undefined) this.#pods.set(objectKey(pod.metadata), pod);
    }
    return [...this.#pods.keys()];
  }
}
