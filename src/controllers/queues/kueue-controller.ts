import { defined } from "../../api/defined.ts";
import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import type { OptionalResource } from "../../kube/resources.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector, type ReflectorEvent, type ReflectorState } from "../../runtime/reflector.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";

export interface KueueOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly recorder: Pick<EventRecorder, "record">;
}

/** An event about an object. */
interface Told {
  readonly reason: string;
  readonly message: string;
}

/** A merge patch of an object. */
export interface KueueChange {
  /** The whole of what the write says, by which the same write is known again. */
  readonly content: string;
  readonly body: object;
  readonly subresource?: "status";
  /** The event that is told with the write. */
  readonly event?: Told;
}

/** A kind of Kueue's objects without a namespace, and what Legation writes into them. */
export interface KueueKind<T extends KubeObject> {
  /** Names the controller in logs and metrics. */
  readonly name: string;
  readonly resource: OptionalResource<T>;
  readonly onEvent: (event: ReflectorEvent<T>) => void;
  readonly onState?: (state: ReflectorState) => void;
  isAsking(object: T): boolean;
  /**
   * Returns how an object that asks is to change, or the event that says why it cannot. `unknown`: that is not known yet. Undefined: it
   * is true. `wall`: epoch ms.
   */
  changeOf(object: Stored<T>, all: readonly Stored<T>[], wall: number): KueueChange | Told | "unknown" | undefined;
  /** The event about a write that another manager reverts. */
  readonly contested?: Told;
  /** The event about a write that the API server refuses, whose words follow. */
  readonly refused?: Told;
}

const WRITE = "kueue";
// No event tells what pods outside queues and other hosts use.
const LOOK_EVERY_MS = 10_000;

/** Keeps objects of one kind true, while the host serves them. The key is the object's name. */
export class KueueController<T extends KubeObject> {
  readonly #kind: KueueKind<T>;
  readonly #options: KueueOptions;
  readonly #objects: Reflector<T>;
  readonly #loop: Controller<string, Stored<T>, KueueChange | Told>;
  readonly #guard: WriteGuard;

  constructor(kind: KueueKind<T>, options: KueueOptions) {
    this.#kind = kind;
    this.#options = options;
    const { host: client, clock, log } = options;
    const { name, resource, onEvent, onState } = kind;
    this.#guard = new WriteGuard({ clock });
    this.#objects = new Reflector<T>({ client, clock, log, resource, onEvent, ...defined({ onState }) });
    this.#loop = new Controller<string, Stored<T>, KueueChange | Told>(
      {
        name,
        observe: (key) => this.#observe(key),
        decide: (object, now, wall) => this.#decide(object, now, wall),
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
  }

  get store(): ReadStore<T> {
    return this.#objects.store;
  }

  start(): void {
    this.#objects.start();
  }

  async stop(): Promise<void> {
    await this.#objects.stop();
    await this.#loop.stop();
  }

  enqueueAll(): void {
    for (const { metadata } of this.store.list()) this.#loop.enqueue(metadata.name);
  }

  #observe(name: string): Stored<T> | undefined {
    const object = this.store.get(objectKey({ name }));
    if (object !== undefined && this.#kind.isAsking(object)) return object;
    this.#guard.forget(name);
    return undefined;
  }

  #decide(object: Stored<T>, now: number, wall: number): Decision<KueueChange | Told> {
    const requeueAt = now + LOOK_EVERY_MS;
    const change = this.#kind.changeOf(object, this.store.list(), wall);
    if (change === "unknown") return { actions: [], outcome: "Unknown", requeueAt };
    if (change === undefined) return { actions: [], outcome: "InStep", requeueAt };
    if ("reason" in change) return { actions: [change], outcome: change.reason };
    const held = this.#guard.heldUntil(object.metadata.name, WRITE, change.content);
    if (held !== undefined) return { actions: [], outcome: "Held", requeueAt: Math.min(held, requeueAt) };
    return { actions: [change, ...(change.event ? [change.event] : [])], outcome: "Written", requeueAt };
  }

  async #execute(
    change: KueueChange | Told,
    { key, signal, log }: ActionContext<string>,
  ): Promise<Expectation<Stored<T>> | undefined> {
    const { host, recorder } = this.#options;
    const { contested, refused } = this.#kind;
    const object = this.store.get(objectKey({ name: key }));
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
        log.warn({ reason: detail }, "an object of Kueue cannot be written");
        if (refused !== undefined) tell({ ...refused, message: `${refused.message}: ${detail}` });
      },
    });
  }
}
