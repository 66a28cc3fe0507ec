import { OUTDATED_ANNOTATION, WISHES_LABEL, WISHES_VALUE } from "../../api/keys.ts";
import { type KubeObject, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { setLatest } from "../../api/latest-entries.ts";
import { isWish, WISHING_KINDS, type WorkloadRef } from "../../api/workload-wishes.ts";
import { unlessAborted } from "../../kube/abort.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { findByList } from "../../kube/list.ts";
import { isBound } from "../../pods/pod-state.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import {
  type FoundWishes,
  type PodWishes,
  WISHING,
  type WishingWorkload,
  wishesOf,
  workloadKey,
} from "../../scheduling/workload.ts";

export interface WorkloadWishesOptions extends ControllerOptions {
  readonly host: ClusterClient;
  /** Called when a workload's wishes are known or have changed. */
  readonly onChange: (namespace: string) => void;
}

// The watch mostly shows a workload before its pods.
const UNSEEN_MS = 1_000;
// Workloads that were read since no watch shows them. The oldest is forgotten first, and read again if a pod needs it.
const KEPT = 1_000;

/** Follows the metadata of workloads whose wishes their pods do not carry. Others are not watched. */
export class WorkloadWishes implements PodWishes {
  readonly #options: WorkloadWishesOptions;
  readonly #reflectors: ReadonlyMap<WorkloadRef["kind"], Reflector<KubeObject>>;
  readonly #tried: readonly Promise<void>[];
  /** Workloads that no watch showed: gone, or written while no webhook marked them. */
  readonly #read = new Map<string, WishingWorkload>();
  readonly #asked = new Set<string>();
  readonly #abort = new AbortController();

  constructor(options: WorkloadWishesOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    const tried: Promise<void>[] = [];
    const reflect = (kind: WorkloadRef["kind"]): Reflector<KubeObject> => {
      const refused = Promise.withResolvers<void>();
      const reflector: Reflector<KubeObject> = new Reflector({
        ...{ client, clock, log },
        resource: WISHING[kind],
        labelSelector: `${WISHES_LABEL}=${WISHES_VALUE}`,
        metadataOnly: true,
        transform: wishesOnly,
        onEvent: (event) => this.#onEvent(event),
        onState: () => {
          if (reflector.failing?.code === "Forbidden") refused.resolve();
        },
      });
      tried.push(Promise.race([reflector.whenSynced(), refused.promise]));
      return reflector;
    };
    this.#reflectors = new Map(WISHING_KINDS.map((kind) => [kind, reflect(kind)]));
    this.#tried = tried;
  }

  /** Reads all before pods. An older ClusterRole lacks these rights: pods that need them then wait with a reason. */
  async start(signal: AbortSignal): Promise<void> {
    for (const reflector of this.#reflectors.values()) reflector.start();
    await unlessAborted(Promise.all(this.#tried), signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error("the controller stops"));
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.stop()));
  }

  /** Returns the wishes of the pod's workload. One that is unseen is read soon, if the pod still needs a place. */
  of(pod: Stored<Pod>): FoundWishes {
    const wishes = wishesOf(pod, (namespace, workload) => this.find(namespace, workload));
    if (wishes.unseen !== undefined && !isBound(pod)) this.#ask(pod, wishes.unseen);
    return wishes;
  }

  find(namespace: string, workload: WorkloadRef): WishingWorkload | undefined {
    const { kind, name } = workload;
    const stored = this.#reflectors.get(kind)?.store.get(objectKey({ namespace, name }));
    if (stored !== undefined) return workloadIn(stored);
    return this.#read.size === 0 ? undefined : this.#read.get(workloadKey(namespace, workload));
  }

  #onEvent(event: ReflectorEvent<KubeObject>): void {
    const { namespace = "" } = event.object.metadata;
    const before = event.type === "updated" ? event.previous.metadata.annotations : undefined;
    if (event.type === "updated" && sameText(before, event.object.metadata.annotations)) return;
    this.#options.onChange(namespace);
  }

  #ask({ metadata: { namespace = "" } }: Stored<Pod>, workload: WorkloadRef): void {
    const key = workloadKey(namespace, workload);
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    this.#options.clock.after(UNSEEN_MS, () => void this.#readUnseen(namespace, workload, key));
  }

  async #readUnseen(namespace: string, workload: WorkloadRef, key: string): Promise<void> {
    const { host, log, onChange } = this.#options;
    const { signal } = this.#abort;
    try {
      if (signal.aborted || this.find(namespace, workload) !== undefined) return;
      const place = { namespace, name: workload.name };
      const found = await findByList(host, WISHING[workload.kind], place, signal, { metadataOnly: true });
      setLatest(this.#read, key, found === undefined ? { annotations: {} } : workloadIn(wishesOnly(found)), KEPT);
      onChange(namespace);
    } catch (err) {
      if (!signal.aborted) log.debug({ err, namespace, workload }, "cannot read the workload of a pod");
    } finally {
      this.#asked.delete(key);
    }
  }
}

function workloadIn({ metadata: { uid, annotations = {} } }: Stored<KubeObject>): WishingWorkload {
  return { uid, annotations };
}

function wishesOnly({ metadata }: Stored<KubeObject>): Stored<KubeObject> {
  const { name, namespace = "", uid, resourceVersion } = metadata;
  const kept = Object.entries(metadata.annotations ?? {}).filter(([key]) => isWish(key) || key === OUTDATED_ANNOTATION);
  return { metadata: { name, namespace, uid, resourceVersion, annotations: Object.fromEntries(kept.sort()) } };
}

function sameText(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
