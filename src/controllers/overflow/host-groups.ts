import { defined } from "../../api/defined.ts";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { isDeleting } from "../../pods/pod-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { FindPod } from "../../scheduling/groups.ts";

// A pod of the group that the host's scheduler places just now is seen by the next one that is due.
const GROUPS_FRESH_MS = 3000;

interface Reading {
  /** End of the read; epoch ms. */
  readonly at: number;
  readonly ids: ReadonlySet<string>;
  readonly pods: ReadonlyMap<string, Stored<Pod>>;
}

export interface HostGroupsOptions {
  readonly host: ClusterClient;
  readonly clock: Pick<Clock, "now">;
  readonly groupOf: (pod: Stored<Pod>, find: FindPod) => string | undefined;
}

/** Groups with pods on the host's own nodes. Read only when a pod of a group is about to be delegated. */
export class HostGroups {
  readonly #options: HostGroupsOptions;
  readonly #namespaces = new Map<string, Reading>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: HostGroupsOptions) {
    this.#options = options;
  }

  has(namespace: string, id: string): boolean | undefined {
    return this.#fresh(namespace)?.ids.has(id);
  }

  /** Undefined unless the namespace was read lately. */
  pod(namespace: string, uid: string): Stored<Pod> | undefined {
    return this.#fresh(namespace)?.pods.get(uid);
  }

  /** Calls during a read share it. Rejects with KubeError. */
  async read(namespace: string, signal: AbortSignal): Promise<void> {
    let reading = this.#underWay.get(namespace);
    if (reading === undefined) {
      reading = this.#read(namespace, signal).finally(() => this.#underWay.delete(namespace));
      this.#underWay.set(namespace, reading);
    }
    await reading;
  }

  #fresh(namespace: string): Reading | undefined {
    const known = this.#namespaces.get(namespace);
    return known === undefined || this.#isOld(known) ? undefined : known;
  }

  #isOld({ at }: Reading): boolean {
    return this.#options.clock.now() - at > GROUPS_FRESH_MS;
  }

  /** Ignores pods that failed or are being deleted: they hold their group nowhere, as in members. */
  async #read(namespace: string, signal: AbortSignal): Promise<void> {
    const found = await listAll(this.#options.host, pods, {
      namespace,
      labelSelector: `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`,
      fieldSelector: "spec.nodeName!=",
      dropManagedFields: true,
      signal,
    });
    const known = new Map(found.map((pod) => [pod.metadata.uid, ownedOnly(pod)]));
    const holding = found.filter((pod) => !isDeleting(pod) && pod.status?.phase !== "Failed");
    const ids = new Set(holding.flatMap((pod) => this.#options.groupOf(pod, (uid) => known.get(uid)) ?? []));
    for (const [name, reading] of this.#namespaces) if (this.#isOld(reading)) this.#namespaces.delete(name);
    // Counts from the end of the read: its callers decide by it, however long it took.
    this.#namespaces.set(namespace, { at: this.#options.clock.now(), ids, pods: known });
  }
}

function ownedOnly({ metadata: { name, uid, resourceVersion, ownerReferences } }: Stored<Pod>): Stored<Pod> {
  return { metadata: { name, uid, resourceVersion, ...defined({ ownerReferences }) } };
}
