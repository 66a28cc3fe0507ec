import { defined } from "../../api/defined.ts";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { byPrecedence } from "../../pods/scheduling.ts";
import type { Timer } from "../../runtime/clock.ts";
import { Controller } from "../../runtime/controller.ts";
import { LONG_RESTS, PacedResync } from "../../runtime/paced-resync.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { FindPod } from "../../scheduling/groups.ts";
import { UID_INDEX } from "../../scheduling/known-pods.ts";
import { bindsLabels, UnmarkedPods } from "./binding-labels.ts";
import { decide } from "./decide.ts";
import { Executor, type OverflowOptions } from "./execute.ts";
import { HostGroups } from "./host-groups.ts";
import type { Action, Observed, PendingGroup } from "./model.ts";
import { UnschedulableSince } from "./unschedulable-since.ts";

// Members change all the time: pods that wait for room are reconciled together.
const MEMBERS_CHANGED_DELAY_MS = 500;
const FIND_AGAIN_MS = 10_000;
// Events after which a pod that waits may fit in a member.
const WAKING = [
  "cluster",
  "connection",
  "memberNodes",
  "responsive",
  "ended",
  "nodeSpec",
  "homeApi",
  "roomFreed",
  "placesChanged",
  "groupMoved",
  "defaultsChanged",
  "wishes",
] as const;

/** Binds pods that the host has no node for to virtual nodes. Watches them only while they have none. */
export class OverflowController {
  readonly #options: OverflowOptions;
  readonly #pods: Reflector<Pod>;
  readonly #executor: Executor;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  readonly #unschedulable = new UnschedulableSince();
  /** Told for a pod's life, whatever the reason: the event's name says so to a later leader. */
  readonly #reported = new Set<string>();
  readonly #groups: HostGroups;
  readonly #unmarked = new UnmarkedPods();
  readonly #resync: PacedResync<ObjectKey>;
  readonly #ended = new AbortController();
  #findTimer: Timer | undefined;
  #supported = false;

  constructor(options: OverflowOptions) {
    this.#options = options;
    const { host, clock, log, placement } = options;
    this.#pods = new Reflector({
      client: host,
      resource: pods,
      labelSelector: `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`,
      fieldSelector: "spec.nodeName=",
      clock,
      log,
      indexes: { [UID_INDEX]: ({ metadata }) => [metadata.uid] },
      onEvent: (event) => this.#onPod(event),
    });
    this.#groups = new HostGroups({
      host,
      clock,
      groupOf: (pod, find) => placement.groupOf(pod, (uid) => this.#waiting(uid) ?? find(uid))?.id,
    });
    this.#executor = new Executor({
      ...options,
      podOf: (key) => this.#pods.store.get(key),
      groups: this.#groups,
      unmarked: this.#unmarked,
      onReported: (uid) => this.#reported.add(uid),
      onRoom: () => this.#onRoom(),
    });
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "overflow",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
    this.#resync = new PacedResync({
      clock,
      rests: LONG_RESTS,
      keys: () => {
        const waiting = this.#pods.store.list().sort(byPrecedence);
        return waiting.map(({ metadata }) => objectKey(metadata));
      },
      reconcile: (keys, done) => this.#loop.enqueueBehind(keys, done),
    });
    for (const name of WAKING) options.events.on(name, () => this.#onRoom());
  }

  /** Reads the pods without a node; the delegation controller must have started. */
  async start(signal: AbortSignal): Promise<void> {
    const { host } = this.#options;
    this.#supported = await bindsLabels(host, signal);
    this.#pods.start();
    await this.#pods.whenSynced(signal);
    void this.#findUnmarked();
  }

  async #findUnmarked(): Promise<void> {
    const { host, registry, clock, log } = this.#options;
    const members = registry.clusters().map(({ metadata }) => metadata.name);
    try {
      for (const key of await this.#unmarked.find(host, members, this.#ended.signal)) this.#loop.enqueue(key);
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      if (!isKubeError(error)) throw error;
      log.warn({ code: error.code }, error.message);
      this.#findTimer = clock.after(FIND_AGAIN_MS, () => void this.#findUnmarked());
    }
  }

  async stop(): Promise<void> {
    this.#ended.abort(new Error("the controller stops"));
    this.#findTimer?.cancel();
    this.#resync.stop();
    await this.#pods.stop();
    await this.#loop.stop();
  }

  #onRoom(): void {
    if (this.#pods.store.size > 0) this.#resync.request(MEMBERS_CHANGED_DELAY_MS);
  }

  bindingTo(member: string): number {
    return this.#executor.bindingTo(member);
  }

  #onPod({ type, object }: ReflectorEvent<Pod>): void {
    const { uid } = object.metadata;
    if (type === "deleted") {
      this.#unschedulable.forget(uid);
      this.#reported.delete(uid);
      this.#options.placement.leave(uid);
    } else {
      this.#unschedulable.note(object, this.#options.clock.now());
    }
    this.#loop.enqueue(objectKey(object.metadata));
  }

  #observe(key: ObjectKey): Observed | undefined {
    const pod = this.#unmarked.get(key) ?? this.#pods.store.get(key);
    if (pod === undefined) return undefined;
    const { placement, clock } = this.#options;
    const { uid, namespace = "" } = pod.metadata;
    const find: FindPod = (other) => this.#waiting(other) ?? this.#groups.pod(namespace, other);
    return {
      pod,
      supported: this.#supported,
      optedIn: placement.optedIn(pod),
      seen: this.#unschedulable.of(uid, clock.now()),
      afterMs: placement.overflowAfterSeconds(pod) * 1000,
      reported: this.#reported.has(uid),
      view: () => placement.observe(pod, find),
      group: () => this.#pendingGroup(pod, find),
    };
  }

  #waiting(uid: string): Stored<Pod> | undefined {
    return this.#pods.store.byIndex(UID_INDEX, uid)[0];
  }

  #pendingGroup(pod: Stored<Pod>, find: FindPod): PendingGroup | undefined {
    const group = this.#options.placement.groupOf(pod, find);
    if (group === undefined || group.home !== undefined) return undefined;
    const onHost = this.#groups.has(pod.metadata.namespace ?? "", group.id);
    return { text: group.text, ...defined({ onHost }) };
  }
}
