import { type ObjectKey, objectKey, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { ResourceFlavor } from "../../api/kueue.ts";
import type { AdmissionCheck, CheckEntry, Workload } from "../../api/kueue-workload.ts";
import { workloads } from "../../api/resources.ts";
import { claimNames } from "../../copies/claims.ts";
import { applyStatus } from "../../kube/apply-status.ts";
import { TimeSlice } from "../../kube/event-loop.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import { type ActionContext, Controller, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { PacedResync } from "../../runtime/paced-resync.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { HostState } from "../../simulation/host-state.ts";
import type { WholeWork } from "../../whole/type.ts";
import type { ControllerEvents } from "../events.ts";
import { isRoomCheck, placeWithinMs, roomChecks } from "./checks.ts";
import { type Action, decide, holdsQuota, isAsking, type Judged, type Observed, reservationOf } from "./decide-room.ts";
import { KueueController, type KueueOptions } from "./kueue-controller.ts";
import { type CompleteSpec, podsOf, workloadsOfPod } from "./room-pods.ts";
import { judge, type QueuedWorkload } from "./room-round.ts";

export interface RoomOptions extends KueueOptions {
  readonly events: Pick<Events<ControllerEvents>, "on">;
  readonly flavors: Pick<Reflector<ResourceFlavor>, "start" | "store" | "failing">;
  readonly proxies: ReadStore<Pod>;
  /** Returns what placement depends on. Undefined until the claims of these namespaces are known. */
  readonly hostState: (claiming: ReadonlySet<string>) => HostState | undefined;
  readonly complete: CompleteSpec;
  readonly wholeWork: () => readonly WholeWork[];
}

const WORKLOAD_INDEX = "kueue-workload";
// Kueue's own managers, which write the same entries, force theirs, too.
const APPLIED = { fieldManager: "legation", force: true };
const STATUS = "status";
// Workloads that come together are judged together, and a round costs as much as a plan.
const ROUND_EVERY_MS = 1_000;
const FIRST_ROUND_AFTER_MS = 50;

/** Answers Kueue's AdmissionChecks `legation.dev/room`, while the host has any: whether members have room for a workload now. */
export class RoomController {
  readonly #options: RoomOptions;
  readonly #checks: KueueController<AdmissionCheck>;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  readonly #guard: WriteGuard;
  /** Verdicts of the last rounds, until the workload shows them or asks anew. */
  readonly #judged = new Map<ObjectKey, Judged>();
  readonly #rounds: PacedResync<ObjectKey>;
  #workloads: Reflector<Workload> | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #judging: Promise<void> = Promise.resolve();
  readonly #abort = new AbortController();

  constructor(options: RoomOptions) {
    this.#options = options;
    const { events, clock } = options;
    this.#guard = new WriteGuard({ clock });
    const trouble = (): string | undefined => this.#trouble();
    this.#checks = new KueueController(
      roomChecks(trouble, (event) => this.#onCheck(event)),
      options,
    );
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "room",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#answer(action, context),
      },
      options,
    );
    this.#rounds = new PacedResync<ObjectKey>({
      clock,
      // Others have the process as long as a round took, whatever part of that time was its own.
      rests: 1,
      keys: () => this.#asking(),
      reconcile: (keys, done) => {
        this.#judging = this.#round(keys).then(done);
      },
    });
    events.on("flavors", () => {
      if (this.#workloads !== undefined) this.#onState();
    });
  }

  start(): void {
    this.#checks.start();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error("the controller stops"));
    this.#rounds.stop();
    await this.#judging;
    await this.#checks.stop();
    this.#unwatch();
    await this.#ended;
    await this.#loop.stop();
  }

  #onCheck({ object }: ReflectorEvent<AdmissionCheck>): void {
    if (this.#checks.store.list().some(isRoomCheck)) this.#workloads ??= this.#watch();
    else this.#unwatch();
    if (!isRoomCheck(object)) return;
    this.#checks.enqueueAll();
    for (const { metadata } of this.#workloads?.store.list() ?? []) this.#loop.enqueue(objectKey(metadata));
  }

  #watch(): Reflector<Workload> {
    const { host: client, clock, log, proxies, flavors } = this.#options;
    proxies.addIndex(WORKLOAD_INDEX, workloadsOfPod);
    const reflector = new Reflector<Workload>({
      ...{ client, clock, log },
      resource: workloads,
      onEvent: ({ object }) => this.#loop.enqueue(objectKey(object.metadata)),
      onState: () => this.#onState(),
    });
    reflector.start();
    flavors.start();
    return reflector;
  }

  /** A store is current once its watch is open, which no event tells of an empty list. */
  #onState(): void {
    this.#checks.enqueueAll();
    this.#ask();
  }

  #unwatch(): void {
    const reflector = this.#workloads;
    if (reflector === undefined) return;
    this.#workloads = undefined;
    this.#options.proxies.removeIndex(WORKLOAD_INDEX);
    this.#judged.clear();
    this.#ended = Promise.all([this.#ended, reflector.stop()]);
    this.#loop.enqueueKnown(() => true);
  }

  #trouble(): string | undefined {
    if (this.#workloads === undefined) return "Legation does not watch workloads yet";
    for (const { failing, store } of [this.#workloads, this.#options.flavors]) {
      const isShut = failing?.code === "Forbidden" || !store.synced;
      if (failing !== undefined && isShut) return `Legation cannot read objects of Kueue: ${failing.reason}`;
      if (!store.synced) return "Legation is reading objects of Kueue";
    }
    return undefined;
  }

  #entriesOf({ status }: Stored<Workload>): CheckEntry[] {
    return (status?.admissionChecks ?? []).filter(({ name }) => {
      const check = this.#checks.store.get(objectKey({ name }));
      return check !== undefined && isRoomCheck(check);
    });
  }

  #observe(key: ObjectKey): Observed | undefined {
    const workload = this.#workloads?.store.get(key);
    const entries = workload === undefined ? [] : this.#entriesOf(workload);
    if (workload === undefined || entries.length === 0) {
      this.#judged.delete(key);
      this.#guard.forget(key);
      return undefined;
    }
    const checks = entries.flatMap(({ name }) => this.#checks.store.get(objectKey({ name })) ?? []);
    const heldUntil = this.#guard.heldUntil(key, STATUS, reservationOf(workload, entries));
    if (!isAsking(workload, entries)) this.#judged.delete(key);
    else if (!this.#isJudged(workload, entries) && heldUntil === undefined) this.#ask();
    return {
      workload,
      entries,
      judged: this.#judged.get(key),
      placeWithinMs: Math.min(...checks.map(placeWithinMs)),
      pods: holdsQuota(workload) ? podsOf(workload, this.#find) : [],
      heldUntil,
    };
  }

  readonly #find = (value: string): readonly Stored<Pod>[] => {
    return this.#workloads === undefined ? [] : this.#options.proxies.byIndex(WORKLOAD_INDEX, value);
  };

  #isJudged(workload: Stored<Workload>, entries: readonly CheckEntry[]): boolean {
    return this.#judged.get(objectKey(workload.metadata))?.reservation === reservationOf(workload, entries);
  }

  #ask(): void {
    if (!this.#abort.signal.aborted) this.#rounds.request(FIRST_ROUND_AFTER_MS);
  }

  /** Returns the workloads that wait for a verdict. */
  #asking(): ObjectKey[] {
    if (this.#workloads === undefined || this.#trouble() !== undefined) return [];
    const asking = this.#workloads.store.list().filter((workload) => {
      const entries = this.#entriesOf(workload);
      return isAsking(workload, entries) && !this.#isJudged(workload, entries);
    });
    return asking.map(({ metadata }) => objectKey(metadata));
  }

  /** Judges workloads, and has them answered. Resolves to what it took, at least the pace of rounds; ms. Never rejects. */
  async #round(asking: readonly ObjectKey[]): Promise<number> {
    if (asking.length === 0) return 0;
    const { clock, log } = this.#options;
    const { signal } = this.#abort;
    const begunAt = clock.now();
    try {
      const isJudged = await this.#judge(asking, signal);
      // Asked again when this round ends.
      if (!isJudged) this.#ask();
    } catch (err) {
      if (!signal.aborted) log.error({ err }, "cannot judge workloads");
    }
    for (const key of asking) this.#loop.enqueue(key);
    const tookMs = clock.now() - begunAt;
    return Math.max(ROUND_EVERY_MS - tookMs, tookMs);
  }

  /** Judges workloads that ask. Others that were told of room and do not show it yet hold it. Resolves to false while claims are being read. */
  async #judge(keys: readonly ObjectKey[], signal: AbortSignal): Promise<boolean> {
    const { flavors, hostState, complete, wholeWork, clock, log } = this.#options;
    const { store } = this.#workloads ?? {};
    if (store === undefined) return true;
    const now = clock.now();
    const asking = keys.flatMap((key) => store.get(key) ?? []).map((workload) => this.#queued(workload));
    const told = store
      .list()
      .filter((workload) => this.#isTold(workload))
      .map((workload) => this.#queued(workload));
    const claiming = asking.filter(({ workload: { spec } }) =>
      spec?.podSets?.some(({ template }) => claimNames(template).length > 0),
    );
    const host = hostState(new Set(claiming.map(({ workload }) => workload.metadata.namespace ?? "")));
    if (host === undefined) return false;
    const flavor = (name: string): ResourceFlavor | undefined => flavors.store.get(objectKey({ name }));
    const whole = new Map(wholeWork().map((work) => [work.uid, work]));
    const sources = { flavor, complete, whole: (uid: string) => whole.get(uid) };
    const reservations = asking.map(({ workload }) => reservationOf(workload, this.#entriesOf(workload)));
    const round = judge({ host, told, asking, sources, now });
    const slice = new TimeSlice(signal);
    let step = round.next();
    while (step.done !== true) {
      if (slice.due) await slice.next();
      step = round.next();
    }
    for (const [index, { workload }] of asking.entries()) {
      const key = objectKey(workload.metadata);
      const verdict = step.value.get(key);
      const reservation = reservations[index];
      if (verdict !== undefined && reservation !== undefined) this.#judged.set(key, { ...verdict, reservation });
    }
    log.debug({ told: told.length, asking: asking.length, tookMs: clock.now() - now }, "judged workloads");
    return true;
  }

  #queued(workload: Stored<Workload>): QueuedWorkload {
    return { workload, pods: podsOf(workload, this.#find) };
  }

  /** Reports whether a workload holds the room that it was told of, whether it shows it yet or not. */
  #isTold(workload: Stored<Workload>): boolean {
    const entries = this.#entriesOf(workload);
    if (entries.length === 0 || !holdsQuota(workload)) return false;
    if (!isAsking(workload, entries)) return entries.every(({ state }) => state === "Ready");
    return this.#isJudged(workload, entries) && this.#judged.get(objectKey(workload.metadata))?.state === "Ready";
  }

  async #answer(
    { workload, entries }: Action,
    { key, signal, log }: ActionContext<ObjectKey>,
  ): Promise<Expectation<Observed> | undefined> {
    const { uid, resourceVersion } = workload.metadata;
    const { host } = this.#options;
    const content = reservationOf(workload, this.#entriesOf(workload));
    const answered = { ...objectRef(key), uid, resourceVersion };
    const status = { admissionChecks: entries };
    return sendGuarded<ObjectKey, Observed, unknown>({
      guard: this.#guard,
      object: key,
      write: STATUS,
      content: () => content,
      send: () => applyStatus(host, resourceOf(workloads, workload), answered, { ...APPLIED, status, signal }),
      onWritten: () => {
        const { state = "", message } = entries[0] ?? {};
        this.#guard.written(key, STATUS, { [STATUS]: `${state} ${content}` }, { content });
        log.info({ state, message }, "answered an admission check");
        return (observed) => observed.workload.metadata.resourceVersion !== resourceVersion;
      },
      onRefused: (reason) => {
        log.warn({ reason }, "a Workload's admission check cannot be answered");
        this.#judged.delete(key);
      },
    });
  }
}
