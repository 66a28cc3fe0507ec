import type { Pod, Stored } from "../api/kubernetes.ts";
import type { IndexFunction, ReadStore } from "../runtime/store.ts";

export const NAMESPACE_INDEX = "namespace";
export const UID_INDEX = "uid";

/** Indexes of the store of proxies that placement reads. */
export const PLACEMENT_INDEXES: Readonly<Record<string, IndexFunction<Pod>>> = {
  [NAMESPACE_INDEX]: ({ metadata }) => [metadata.namespace ?? ""],
  [UID_INDEX]: ({ metadata }) => [metadata.uid],
};

/** The pods that placement counts: the proxies, and pods that are about to become proxies. */
export class KnownPods {
  readonly #proxies: ReadStore<Pod>;
  readonly #joining = new Map<string, Stored<Pod>>();

  constructor(proxies: ReadStore<Pod>) {
    this.#proxies = proxies;
  }

  get joining(): Iterable<Stored<Pod>> {
    return this.#joining.values();
  }

  get(uid: string): Stored<Pod> | undefined {
    return this.#proxies.byIndex(UID_INDEX, uid)[0] ?? this.#joining.get(uid);
  }

  in(namespace: string): Stored<Pod>[] {
    const joining = [...this.#joining.values()].filter(({ metadata }) => metadata.namespace === namespace);
    return [...this.#proxies.byIndex(NAMESPACE_INDEX, namespace), ...joining];
  }

  isProxy(uid: string): boolean {
    return this.#proxies.countByIndex(UID_INDEX, uid) > 0;
  }

  hasProxiesIn(namespace: string): boolean {
    return this.#proxies.countByIndex(NAMESPACE_INDEX, namespace) > 0;
  }

  join(pod: Stored<Pod>): void {
    this.#joining.set(pod.metadata.uid, pod);
  }

  /** Drops a pod that became a proxy, or will not. Returns it if it was about to. */
  leave(uid: string): Stored<Pod> | undefined {
    const pod = this.#joining.get(uid);
    this.#joining.delete(uid);
    return pod;
  }
}
