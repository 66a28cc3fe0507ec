import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import type { OptionalResource } from "../../kube/resources.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Decision } from "../../runtime/requeue.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { FlavorCapacity } from "./capacity.ts";
import type { FlavorCapacities } from "./flavor-capacities.ts";

export interface CapacityOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly capacities: Pick<FlavorCapacities, "changed" | "current" | "onChange" | "start">;
  readonly recorder: Pick<EventRecorder, "record">;
}

/** An event about an object. */
interface Told {
  readonly reason: string;
  readonly message: string;
}

/** A merge patch of an object. */
export interface CapacityChange {
  /** What the write says, whatever the object says now. */
  readonly content: string;
  readonly body: object;
  readonly subresource?: "status";
  /** Told with the write. */
  readonly event?: Told;
}

/** A kind of Kueue's objects that say what members have. */
export interface CapacityKind<T extends KubeObject> {
  /** Names the controller in logs and metrics. */
  readonly name: string;
  readonly resource: OptionalResource<T>;
  isAsking(object: T): boolean;
  flavorsOf(object: T): readonly string[];
  /** Returns how an object that asks is to change, or the event that says why it cannot. Undefined: it is true. `wall`: epoch ms. */
  changeOf(
    object: Stored<T>,
    capacities: ReadonlyMap<string, FlavorCapacity>,
    all: readonly Stored<T>[],
    wall: number,
  ): CapacityChange | Told | undefined;
  /** The event about a write that another manager reverts. */
  readonly contested?: Told;
  /** The event about a write that the API server refuses, whose words follow. */
  readonly refused?: Told;
}

const WRITE = "capacity";
// What pods outside queues and other hosts use changes without an event.
const LOOK_EVERY_MS = 10_000;

/** Keeps objects of one kind true to what members have, while the host serves them. The key is the object's name. */
export class CapacityController<T extends KubeObject> {
  readonly #kind: CapacityKind<T>;
  readonly #options: CapacityOptions;
  readonly #objects: Reflector<T>;
  readonly #loop: Controller<string, Stored<T>, CapacityChange | Told>;
  readonly #guard: WriteGuard;

  constructor(kind: CapacityKind<T>, options: CapacityOptions) {
    this.#kind = kind;
    this.#options = options;
    const { host: client, capacities, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#objects = new Reflector<T>({
      ...{ client, clock, log },
      resource: kind.resource,
      // Shares of others may have changed with it, and what flavors are used.
      onEvent: () => capacities.changed(),
      onState: (state) => {
        if (state === "watching") capacities.start();
      },
    });
    this.#loop = new Controller<string, Stored<T>, CapacityChange | Told>(
      {
        name: kind.name,
        observe: (name) => this.#observe(name),
        decide: (object, now, wall) => this.#decide(object, now, wall),
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    capacities.onChange(
      () => {
        for (const { metadata } of this.#objects.store.list()) this.#loop.enqueue(metadata.name);
      },
      () => this.#objects.store.list().flatMap((object) => kind.flavorsOf(object)),
    );
  }

  start(): void {
    this.#objects.start();
  }

  async stop(): Promise<void> {
    await this.#objects.stop();
    await this.#loop.stop();
  }

  #observe(name: string): Stored<T> | undefined {
    const object = this.#objects.store.get(objectKey({ name }));
    if (object !== undefined && this.#kind.isAsking(object)) return object;
    this.#guard.forget(name);
    return undefined;
  }

  #decide(object: Stored<T>, now: number, wall: number): Decision<CapacityChange | Told> {
    const requeueAt = now + LOOK_EVERY_MS;
    const capacities = this.#options.capacities.current();
    if (capacities === undefined) return { actions: [], outcome: "MembersUnread", requeueAt };
    const change = this.#kind.changeOf(object, capacities, this.#objects.store.list(), wall);
    if (change === undefined) return { actions: [], outcome: "InStep", requeueAt };
    if ("reason" in change) return { actions: [change], outcome: change.reason };
    const held = this.#guard.heldUntil(object.metadata.name, WRITE, change.content);
    if (held !== undefined) return { actions: [], outcome: "Held", requeueAt: Math.min(held, requeueAt) };
    return { actions: [change, ...(change.event ? [change.event] : [])], outcome: "Written", requeueAt };
  }

  async #execute(
    change: CapacityChange | Told,
    { key, signal, log }: ActionContext<string>,
  ): Promise<Expectation<Stored<T>> | undefined> {
    const { host, recorder } = this.#options;
    const { contested, refused } = this.#kind;
    const object = this.#objects.store.get(objectKey({ name: key }));
    if (object === undefined) return undefined;
    const resource = resourceOf(this.#kind.resource, object);
    const { uid, resourceVersion } = object.metadata;
    const tell = (event: Told): void => {
      recorder.record(referenceTo(resource, object), { ...event, dedupe: `${uid} ${event.reason} ${event.message}` });
    };
    if ("reason" in change) {
      tell(change);
      return undefined;
    }
    const { content, subresource } = change;
    // Lists are written as a whole, so nobody else's change may come between.
    const body = { metadata: { uid, resourceVersion }, ...change.body };
    return sendGuarded<string, Stored<T>, unknown>({
      guard: this.#guard,
      object: key,
      write: WRITE,
      content: () => content,
      send: () => {
        const options = { ...(subresource && { subresource }), metadataOnly: true, signal };
        return host.patch(resource, { name: key }, { type: "merge", body }, options);
      },
      onWritten: () => {
        const isContested = this.#guard.written(key, WRITE, { [WRITE]: content }, { content });
        if (isContested && contested !== undefined) tell(contested);
        return (after) => after.metadata.resourceVersion !== resourceVersion;
      },
      onRefused: (detail) => {
        log.warn({ reason: detail }, "what members have cannot be written");
        if (refused !== undefined) tell({ ...refused, message: `${refused.message}: ${detail}` });
      },
    });
  }
}
