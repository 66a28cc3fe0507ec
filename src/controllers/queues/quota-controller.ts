import { objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, ResourceFlavor } from "../../api/kueue.ts";
import { clusterQueues, resourceFlavors } from "../../api/resources.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal } from "../../kube/errors.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { ControllerEvents } from "../events.ts";
import { capacities, type Flavor, type FlavorCapacity, selectsMembers } from "./capacity.ts";
import { memberRoom } from "./member-rooms.ts";
import {
  changedGroups,
  contentOf,
  decide,
  type FollowedFlavor,
  type ObservedQueue,
  type QuotaAction,
} from "./quota-decide.ts";
import { quotaWish } from "./quota-wishes.ts";

export interface QuotaOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "clusters" | "members">;
  readonly proxies: Pick<ReadStore<Pod>, "byIndex" | "synced">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly events: Events<ControllerEvents>;
}

type Result = Promise<Expectation<ObservedQueue> | undefined>;

const WRITE = "quota";
// Many events of members come together, and each sum goes through all nodes and proxies.
const SUMS_EVERY_MS = 1_000;

/** Keeps quotas of Kueue's ClusterQueues true that ask for it, while the host serves them. The key is the queue's name. */
export class QuotaController {
  readonly #options: QuotaOptions;
  readonly #queues: Reflector<ClusterQueue>;
  readonly #flavors: Reflector<ResourceFlavor>;
  readonly #loop: Controller<string, ObservedQueue, QuotaAction>;
  readonly #guard: WriteGuard;
  #sums: { readonly at: number; readonly value: ReadonlyMap<string, FlavorCapacity> } | undefined;

  constructor(options: QuotaOptions) {
    this.#options = options;
    const { host: client, events, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#flavors = new Reflector<ResourceFlavor>({
      client,
      resource: resourceFlavors,
      clock,
      log,
      onEvent: () => this.#enqueueAll(),
    });
    this.#queues = new Reflector<ClusterQueue>({
      client,
      resource: clusterQueues,
      clock,
      log,
      // Shares of others may have changed with it.
      onEvent: () => this.#enqueueAll(),
      onState: (state) => {
        if (state === "watching") this.#flavors.start();
      },
    });
    this.#loop = new Controller<string, ObservedQueue, QuotaAction>(
      {
        name: "queue-quotas",
        observe: (name) => this.#observe(name),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    for (const name of ["memberNodes", "connection", "cluster"] as const) events.on(name, () => this.#enqueueAll());
  }

  start(): void {
    this.#queues.start();
  }

  async stop(): Promise<void> {
    await this.#queues.stop();
    await this.#flavors.stop();
    await this.#loop.stop();
  }

  #enqueueAll(): void {
    for (const { metadata } of this.#queues.store.list()) {
      if (quotaWish(metadata) !== undefined) this.#loop.enqueue(metadata.name);
    }
  }

  #observe(name: string): ObservedQueue | undefined {
    const queue = this.#queues.store.get(objectKey({ name }));
    const wish = queue && quotaWish(queue.metadata);
    if (queue === undefined) this.#guard.forget(name);
    if (queue === undefined || wish === undefined || !this.#flavors.store.synced) return undefined;
    const heldUntil = (content: string): number | undefined => this.#guard.heldUntil(name, WRITE, content);
    if ("problem" in wish) {
      return { queue, problem: wish.problem, floor: {}, flavors: undefined, heldUntil };
    }
    return { queue, floor: wish.floor, flavors: this.#flavorsOf(queue), heldUntil };
  }

  #flavorsOf(queue: Stored<ClusterQueue>): ReadonlyMap<string, FollowedFlavor> | undefined {
    const sums = this.#capacities();
    if (sums === undefined) return undefined;
    const followed = flavorNames(queue).flatMap((flavor) => {
      const capacity = sums.get(flavor);
      return capacity === undefined ? [] : [[flavor, { capacity, share: this.#share(queue, flavor) }] as const];
    });
    return new Map(followed);
  }

  /** Queues that write no share have equal parts of what is left. */
  #share({ metadata }: Stored<ClusterQueue>, flavor: string): number {
    let left = 1;
    let without = 0;
    let own: number | undefined;
    for (const other of this.#queues.store.list()) {
      const wish = quotaWish(other.metadata);
      if (wish === undefined || "problem" in wish || !flavorNames(other).includes(flavor)) continue;
      if (other.metadata.uid === metadata.uid) own = wish.share;
      if (wish.share === undefined) without += 1;
      else left -= wish.share;
    }
    return own ?? Math.max(0, left) / Math.max(1, without);
  }

  /** Returns what flavors that select members have; undefined before all members were read. */
  #capacities(): ReadonlyMap<string, FlavorCapacity> | undefined {
    const { registry, proxies, clock } = this.#options;
    if (!proxies.synced || registry.members().some(({ syncing }) => syncing)) return undefined;
    const now = clock.now();
    if (this.#sums !== undefined && now - this.#sums.at < SUMS_EVERY_MS) return this.#sums.value;
    const known = registry.clusters().map(({ metadata: { name, labels = {} } }) => ({ name, labels }));
    const flavors = this.#flavors.store
      .list()
      .map(flavorOf)
      .filter((flavor) => selectsMembers(flavor, known));
    const value = capacities(
      flavors,
      registry.members().map((member) => memberRoom(member, proxies)),
    );
    this.#sums = { at: now, value };
    return value;
  }

  async #execute(action: QuotaAction, { key, signal, log }: ActionContext<string>): Result {
    const { host, recorder } = this.#options;
    const queue = this.#queues.store.get(objectKey({ name: key }));
    if (queue === undefined) return undefined;
    const resource = resourceOf(clusterQueues, queue);
    const tell = (reason: string, message: string): void => {
      recorder.record(referenceTo(resource, queue), {
        reason,
        message,
        dedupe: `${queue.metadata.uid} ${reason} ${message}`,
      });
    };
    if (action.type === "tell") {
      tell(action.reason, action.message);
      return undefined;
    }
    const { uid, resourceVersion } = queue.metadata;
    // Lists are written as a whole, so nobody else's change may come between.
    const body = {
      metadata: { uid, resourceVersion },
      spec: { resourceGroups: changedGroups(queue, action.changes) },
    };
    const content = contentOf(action.changes);
    try {
      await host.patch(resource, { name: key }, { type: "merge", body }, { signal, metadataOnly: true });
    } catch (error) {
      // The watch shows what came between, or that the queue or its API is gone.
      if (isKubeError(error, "Conflict", "NotFound")) return undefined;
      if (!isRefusal(error) || this.#guard.failed(key, WRITE, error) === "transient") throw error;
      log.warn({ reason: error.detail }, "quotas cannot be written");
      this.#guard.hold(key, WRITE, "Refused", { content });
      tell("QuotaRefused", `quotas that follow members cannot be written: ${error.detail}`);
      return () => true;
    }
    if (this.#guard.written(key, WRITE, { [WRITE]: content }, { content })) {
      tell(
        "QuotaContested",
        "another manager of this ClusterQueue changes nominalQuota back, so it does not follow members; have it leave spec.resourceGroups alone",
      );
    }
    return (after) => after.queue.metadata.resourceVersion !== resourceVersion;
  }
}

function flavorNames({ spec }: ClusterQueue): readonly string[] {
  return (spec?.resourceGroups ?? []).flatMap(({ flavors = [] }) => flavors.map(({ name }) => name));
}

function flavorOf({ metadata, spec }: Stored<ResourceFlavor>): Flavor {
  return { name: metadata.name, nodeLabels: spec?.nodeLabels ?? {}, tolerations: spec?.tolerations ?? [] };
}
