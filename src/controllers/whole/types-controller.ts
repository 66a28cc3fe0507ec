import { withTransitionTime } from "../../api/conditions.ts";
import { defined } from "../../api/defined.ts";
import type { AnyObject, DelegatedType, DelegatedTypeStatus } from "../../api/delegated-type.ts";
import { jsonEqual } from "../../api/json.ts";
import { TYPE_FINALIZER, WHOLE_KEY } from "../../api/keys.ts";
import { type ObjectKey, objectKey, objectRef, type Pod, type Stored, timestamp } from "../../api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../api/resources.ts";
import { isFirst, isInShard, type Shard } from "../../api/shards.ts";
import { hasWholeFinalizer } from "../../copies/objects.ts";
import type { QueuedObjects } from "../../copies/queued-objects.ts";
import { ignoring } from "../../kube/errors.ts";
import { cutAt, LONGEST_PROBLEM } from "../../kube/messages.ts";
import type { Resource } from "../../kube/resources.ts";
import { type ActionContext, Controller, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { followedObjects } from "../../scheduling/followed-objects.ts";
import type { QueuedWhole, WholeInMember, WholeWork } from "../../whole/type.ts";
import type { ControllerEvents } from "../events.ts";
import { Follower, type FollowerOptions } from "../following/follower.ts";
import type { Followers } from "../following/followers.ts";
import { DefinitionFollower } from "./definition-follower.ts";
import { ObjectAdapter, type ObjectAdapterOptions, type WholeObjects } from "./objects/adapter.ts";
import type { ConditionState } from "./objects/object-statuses.ts";
import { objectsInMember, workOfObject } from "./objects/queued-work.ts";
import { WholeController, type WholeOptions } from "./whole-controller.ts";

export interface TypesControllerOptions extends WholeOptions, Pick<ObjectAdapterOptions, "rules"> {
  readonly proxies: ReadStore<Pod>;
  readonly events: Events<ControllerEvents>;
  readonly followers: Pick<Followers, "add" | "remove" | "onTypesRead" | "groupOf"> & {
    readonly devices: FollowerOptions["devices"];
  };
}

/** The controllers of one type, whose objects either go to members by themselves or follow pods. */
interface Running {
  readonly type: Stored<DelegatedType>;
  readonly whole?: { readonly adapter: ObjectAdapter; readonly objects: WholeObjects };
  readonly follower?: Follower;
  /** Absent: members have the definition already. */
  readonly definition?: DefinitionFollower;
}

type Following = Pick<WholeObjects, "onMembers" | "onConnection"> & Partial<Pick<WholeObjects, "onDefaults">>;

interface Observed {
  readonly type: Stored<DelegatedType>;
  readonly running: Running | undefined;
  readonly shard: Shard;
}

type Action =
  /** Asks the host whether the type's objects are served at all, and lets the type go if not. */
  | { readonly type: "ask"; readonly object: Stored<DelegatedType>; readonly resource: Resource<AnyObject> }
  | { readonly type: "patch"; readonly object: Stored<DelegatedType>; readonly finalizers: readonly string[] }
  | { readonly type: "status"; readonly object: Stored<DelegatedType>; readonly status: DelegatedTypeStatus };

// Counts change with each object.
const TYPE_STATUS_PAUSE_MS = 5_000;
// Pods wait for no longer than this for types that cannot be read.
const UNREADABLE_AFTER_MS = 60_000;
// A definition may be deleted or installed at any time.
const ASK_AGAIN_MS = 30_000;
// The API server refuses a condition's message of more than 32,768 characters.
const LONGEST_MESSAGE = 4_000;
const DEFINITION_FOLLOWS = "DefinitionFollows";

/** Runs one controller for each DelegatedType, and reports how many objects wait. */
export class TypesController implements QueuedWhole {
  readonly #options: TypesControllerOptions;
  readonly #types: Reflector<DelegatedType>;
  readonly #running = new Map<ObjectKey, Running>();
  readonly #stopping = new Set<Promise<void>>();
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  readonly #due: KeyedTimers<ObjectKey>;

  constructor(options: TypesControllerOptions) {
    this.#options = options;
    this.#due = new KeyedTimers(options.clock);
    const { host, clock, log, events } = options;
    this.#types = new Reflector<DelegatedType>({
      client: host,
      resource: delegatedTypes,
      clock,
      log,
      onEvent: ({ object }) => this.#onType(objectKey(object.metadata)),
      onState: (state) => {
        if (state === "watching" || this.#areUnreadable()) this.#options.followers.onTypesRead();
      },
    });
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "delegated-types",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    events.on("cluster", (name) => this.#each((one) => one.onMembers(name)));
    events.on("connection", (member) => this.#each((one) => one.onConnection(member)));
    events.on("defaultsChanged", () => this.#each((one) => one.onDefaults?.()));
  }

  start(): void {
    this.#types.start();
  }

  async stop(): Promise<void> {
    await this.#types.stop();
    this.#due.stop();
    await this.#loop.stop();
    for (const key of [...this.#running.keys()]) this.#end(key);
    await Promise.all(this.#stopping);
  }

  work(): readonly WholeWork[] {
    return this.#queued.flatMap((queued) => queued.objects.map((object) => workOfObject(object, queued)));
  }

  inMember(cluster: string): readonly WholeInMember[] {
    return this.#queued.flatMap((queued) => objectsInMember(cluster, queued));
  }

  /** The objects of all shards, of types that a queue holds back. */
  get #queued(): readonly QueuedObjects[] {
    return [...this.#running.values()].flatMap(({ type, whole }) => {
      if (whole === undefined || type.spec.queue === undefined) return [];
      return [{ type, expressions: whole.adapter.statuses, objects: whole.objects.objectsEverywhere() }];
    });
  }

  /** An installation of an earlier version has no types. Other failures pass. */
  #areUnreadable(): boolean {
    const { failing } = this.#types;
    if (failing === undefined) return false;
    if (failing.code === "NotFound" || failing.code === "Forbidden") return true;
    return this.#options.clock.now() - failing.since >= UNREADABLE_AFTER_MS;
  }

  #each(act: (one: Following) => void): void {
    for (const { whole, definition } of this.#running.values()) {
      if (whole !== undefined) act(whole.objects);
      if (definition !== undefined) act(definition);
    }
  }

  #onType(key: ObjectKey): void {
    const type = this.#types.store.get(key);
    if (type === undefined) {
      this.#end(key);
    } else {
      const { whole } = this.#run(key, type);
      if (type.metadata.deletionTimestamp !== undefined) whole?.objects.retire();
    }
    this.#loop.enqueue(key);
  }

  #run(key: ObjectKey, type: Stored<DelegatedType>): Running {
    const before = this.#running.get(key);
    if (before !== undefined && isSameType(before.type, type)) return before;
    this.#end(key);
    const options = { ...this.#options, onChange: () => this.#later(key) };
    const objects = followedObjects(type);
    const { followers } = this.#options;
    const definition =
      type.spec.definition === "Follow" && isFirst(this.#options.shard)
        ? new DefinitionFollower(type.metadata.name, options)
        : undefined;
    const parts = { type, ...defined({ definition }) };
    const running: Running =
      objects === undefined
        ? { ...parts, ...(this.#has(type) ? { whole: this.#wholeObjects(type, options) } : {}) }
        : {
            ...parts,
            follower: new Follower({
              ...options,
              type,
              objects,
              devices: followers.devices,
              groupOf: (pod) => followers.groupOf(pod),
            }),
          };
    this.#running.set(key, running);
    running.whole?.objects.start();
    if (running.follower !== undefined) this.#options.followers.add(running.follower);
    definition?.start();
    return running;
  }

  #has(type: Stored<DelegatedType>): boolean {
    return isFirst(this.#options.shard) || resourceOfType(type).namespaced;
  }

  #wholeObjects(
    type: Stored<DelegatedType>,
    options: TypesControllerOptions & { readonly onChange: () => void },
  ): NonNullable<Running["whole"]> {
    const adapter = new ObjectAdapter(type, options);
    return { adapter, objects: new WholeController(adapter, options) };
  }

  #end(key: ObjectKey): void {
    const running = this.#running.get(key);
    if (running === undefined) return;
    this.#running.delete(key);
    const { whole, follower, definition } = running;
    if (follower !== undefined) this.#options.followers.remove(follower);
    const stopped = Promise.all([whole?.objects.stop(), follower?.stop(), definition?.stop()]).then(() => undefined);
    this.#stopping.add(stopped);
    void stopped.finally(() => this.#stopping.delete(stopped));
  }

  #later(key: ObjectKey): void {
    this.#due.start(key, TYPE_STATUS_PAUSE_MS, () => this.#loop.enqueue(key));
  }

  #observe(key: ObjectKey): Observed | undefined {
    const type = isFirst(this.#options.shard) ? this.#types.store.get(key) : undefined;
    return type && { type, running: this.#running.get(key), shard: this.#options.shard };
  }

  /** Tells operators why members do not get the definition, which no object shows. */
  #tell(type: Stored<DelegatedType>, { conditions = [] }: DelegatedTypeStatus): void {
    const found = conditions.find((condition) => condition.type === DEFINITION_FOLLOWS);
    if (found?.status !== "False") return;
    const { reason, message } = found;
    const dedupe = `${type.metadata.uid}/${message}`;
    this.#options.recorder.record(referenceTo(delegatedTypes, type), { reason, message, dedupe });
  }

  async #execute(action: Action, context: ActionContext<ObjectKey>): Promise<Expectation<Observed> | undefined> {
    const { key, signal } = context;
    if (action.type === "ask") {
      const { shard, host, everywhere = host } = this.#options;
      const listed = everywhere.list(action.resource, { labelSelector: WHOLE_KEY, signal });
      const found = await ignoring(listed, "NotFound");
      if (found !== undefined && (shard.count === 1 || found.items.some(hasWholeFinalizer))) return undefined;
      return this.#execute(releaseOf(action.object), context);
    }
    const { metadata } = action.object;
    const { resourceVersion } = metadata;
    const changed: Expectation<Observed> = ({ type }) => type.metadata.resourceVersion !== resourceVersion;
    const [body, options] =
      action.type === "patch"
        ? [{ metadata: { resourceVersion, finalizers: action.finalizers } }, { signal }]
        : [
            { metadata: { resourceVersion }, status: action.status },
            { signal, subresource: "status" },
          ];
    const patch = this.#options.host.patch(delegatedTypes, objectRef(key), { type: "merge", body }, options);
    const isWritten = (await ignoring(patch, "Conflict", "NotFound")) !== undefined;
    if (isWritten && action.type === "status") this.#tell(action.object, action.status);
    return changed;
  }
}

/** A type that was deleted and created anew is another one: the controller of the first has retired. */
function isSameType(one: Stored<DelegatedType>, other: Stored<DelegatedType>): boolean {
  return one.metadata.uid === other.metadata.uid && jsonEqual(one.spec, other.spec);
}

function releaseOf(type: Stored<DelegatedType>): Extract<Action, { readonly type: "patch" }> {
  const { finalizers = [] } = type.metadata;
  return { type: "patch", object: type, finalizers: finalizers.filter((finalizer) => finalizer !== TYPE_FINALIZER) };
}

function decide({ type, running, shard }: Observed, now: number, wall: number): Decision<Action> {
  const { deletionTimestamp, finalizers = [] } = type.metadata;
  const hasFinalizer = finalizers.includes(TYPE_FINALIZER);
  if (deletionTimestamp !== undefined) {
    if (!hasFinalizer) return { actions: [], outcome: "Retired" };
    const objects = running?.whole?.objects;
    if (objects?.objects().some(hasWholeFinalizer) === true) return { actions: [], outcome: "Retiring" };
    if (objects?.isRead === false || shard.count > 1) {
      const ask = { type: "ask", object: type, resource: resourceOfType(type) } as const;
      return { actions: [ask], outcome: "Retiring", requeueAt: now + ASK_AGAIN_MS };
    }
    return { actions: [releaseOf(type)], outcome: "Releasing" };
  }
  if (!hasFinalizer) {
    return {
      actions: [{ type: "patch", object: type, finalizers: [...finalizers, TYPE_FINALIZER] }],
      outcome: "Holding",
    };
  }
  if (running === undefined) return { actions: [], outcome: "NotRunning" };
  const status = statusOf(type, running, { shard, wall });
  if (jsonEqual(status, type.status)) return { actions: [], outcome: "InStep" };
  return { actions: [{ type: "status", object: type, status }], outcome: "Reporting" };
}

function statusOf(
  type: Stored<DelegatedType>,
  running: Running,
  { shard, wall }: { readonly shard: Shard; readonly wall: number },
): DelegatedTypeStatus {
  const { whole, follower, definition } = running;
  const states = [
    whole && readiness(whole.objects),
    whole?.adapter.statuses.condition(),
    follower && followerReadiness(follower),
    definition && following(definition),
  ].filter((state) => state !== undefined);
  const { generation } = type.metadata;
  const conditions = states.map((state) => ({
    ...withTransitionTime(state, type.status?.conditions, timestamp(wall)),
    message: cutAt(state.message, LONGEST_MESSAGE),
    ...defined({ observedGeneration: generation }),
  }));
  if (whole === undefined) return { conditions, objects: follower?.copies.named().length ?? 0 };
  const all = whole.objects.objectsEverywhere();
  const elsewhere = shard.count === 1 ? [] : all.filter(({ metadata }) => !isInShard(shard, metadata.namespace));
  return { conditions, objects: all.length, ...whole.adapter.counts(elsewhere) };
}

function followerReadiness({ copies }: Follower): ConditionState {
  const failures = copies.failures();
  if (failures.length > 0) return { type: "Ready", status: "False", reason: "NotRead", message: failures.join("; ") };
  const starting = startingIn(copies.membersBeingRead());
  if (starting !== undefined) return starting;
  const message = "objects go to the members of the pods that name them";
  return { type: "Ready", status: "True", reason: "Following", message };
}

function startingIn(members: readonly string[]): ConditionState | undefined {
  if (members.length === 0) return undefined;
  const message = `objects are being read in ${cutAt(members.join(", "), LONGEST_PROBLEM)}`;
  return { type: "Ready", status: "Unknown", reason: "Starting", message };
}

function readiness(running: WholeObjects): ConditionState {
  const failure = running.failure();
  if (failure !== undefined) return { type: "Ready", status: "False", reason: "NotRead", message: failure };
  if (!running.isRead) {
    return { type: "Ready", status: "Unknown", reason: "Starting", message: "objects are being read" };
  }
  const starting = startingIn(running.membersBeingRead());
  if (starting !== undefined) return starting;
  const message = "objects are read here and in all members that answer";
  return { type: "Ready", status: "True", reason: "Following", message };
}

function following(definition: DefinitionFollower): ConditionState {
  const type = DEFINITION_FOLLOWS;
  const problems = definition.problems();
  if (problems === undefined) {
    return { type, status: "Unknown", reason: "Starting", message: "definitions are being read" };
  }
  return problems.length === 0
    ? { type, status: "True", reason: "Following", message: "all members that answer have this cluster's definition" }
    : {
        type,
        status: "False",
        reason: "NotInMember",
        message: problems.map((problem) => cutAt(problem, LONGEST_PROBLEM)).join("; "),
      };
}
