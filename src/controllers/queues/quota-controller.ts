import { objectKey, type Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue } from "../../api/kueue.ts";
import { clusterQueues } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { FlavorCapacities } from "./flavor-capacities.ts";
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
  readonly capacities: Pick<FlavorCapacities, "changed" | "current" | "onChange" | "start">;
  readonly recorder: Pick<EventRecorder, "record">;
}

type Result = Promise<Expectation<ObservedQueue> | undefined>;

const WRITE = "quota";

/** Keeps quotas of Kueue's ClusterQueues true that ask for it, while the host serves them. The key is the queue's name. */
export class QuotaController {
  readonly #options: QuotaOptions;
  readonly #queues: Reflector<ClusterQueue>;
  readonly #loop: Controller<string, ObservedQueue, QuotaAction>;
  readonly #guard: WriteGuard;

  constructor(options: QuotaOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#queues = new Reflector<ClusterQueue>({
      client,
      resource: clusterQueues,
      clock,
      log,
      // Shares of others may have changed with it, and what flavors are used.
      onEvent: () => options.capacities.changed(),
      onState: (state) => {
        if (state === "watching") options.capacities.start();
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
    options.capacities.onChange(
      () => this.#enqueueAll(),
      () => this.#queues.store.list().flatMap(flavorNames),
    );
  }

  start(): void {
    this.#queues.start();
  }

  async stop(): Promise<void> {
    await this.#queues.stop();
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
    if (queue === undefined || wish === undefined) return undefined;
    const heldUntil = (content: string): number | undefined => this.#guard.heldUntil(name, WRITE, content);
    if ("problem" in wish) {
      return { queue, problem: wish.problem, floor: {}, flavors: undefined, heldUntil };
    }
    return { queue, floor: wish.floor, flavors: this.#flavorsOf(queue), heldUntil };
  }

  #flavorsOf(queue: Stored<ClusterQueue>): ReadonlyMap<string, FollowedFlavor> | undefined {
    const sums = this.#options.capacities.current();
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

  async #execute(action: QuotaAction, { key, signal, log }: ActionContext<string>): Result {
    const { host, recorder } = this.#options;
    const queue = this.#queues.store.get(objectKey({ name: key }));
    if (queue === undefined) return undefined;
    const resource = resourceOf(clusterQueues, queue);
    const tell = (event: { readonly reason: string; readonly message: string }): void => {
      const dedupe = `${queue.metadata.uid} ${event.reason} ${event.message}`;
      recorder.record(referenceTo(resource, queue), { ...event, dedupe });
    };
    if (action.type === "tell") {
      tell({ reason: action.reason, message: action.message });
      return undefined;
    }
    const { uid, resourceVersion } = queue.metadata;
    // Lists are written as a whole, so nobody else's change may come between.
    const body = {
      metadata: { uid, resourceVersion },
      spec: { resourceGroups: changedGroups(queue, action.changes) },
    };
    const content = contentOf(action.changes);
    return sendGuarded<string, ObservedQueue, unknown>({
      guard: this.#guard,
      object: key,
      write: WRITE,
      content: () => content,
      send: () => host.patch(resource, { name: key }, { type: "merge", body }, { signal, metadataOnly: true }),
      onWritten: () => {
        if (this.#guard.written(key, WRITE, { [WRITE]: content }, { content })) {
          const message =
            "another manager of this ClusterQueue changes nominalQuota back, so it does not follow members; " +
            "have it leave spec.resourceGroups alone";
          tell({ reason: "QuotaContested", message });
        }
        return (after) => after.queue.metadata.resourceVersion !== resourceVersion;
      },
      onRefused: (detail) => {
        log.warn({ reason: detail }, "quotas cannot be written");
        const message = `quotas that follow members cannot be written: ${detail}`;
        tell({ reason: "QuotaRefused", message });
      },
    });
  }
}

function flavorNames({ spec }: ClusterQueue): readonly string[] {
  return (spec?.resourceGroups ?? []).flatMap(({ flavors = [] }) => flavors.map(({ name }) => name));
}
