import type { AnyObject, DelegatedType } from "../../../api/delegated-type.ts";
import { NOT_WHOLE_VALUE, WHOLE_KEY, WHOLE_VALUE } from "../../../api/keys.ts";
import { type ObjectKey, objectKey, objectRef, type Stored } from "../../../api/kubernetes.ts";
import { isOfServices } from "../../../api/service-fields.ts";
import type { Member } from "../../../clusters/member.ts";
import type { CopiedKind } from "../../../copies/kind.ts";
import { isOnRecord, type MemberRecord, nextMembers, type Place } from "../../../copies/object-members.ts";
import {
  asksToOrphan,
  delegatedKind,
  hasOtherCopies,
  isAdopted,
  isHeld,
  isOrphan,
  isWanted,
  recordedMember,
} from "../../../copies/objects.ts";
import { isExported } from "../../../copies/services.ts";
import type { Source } from "../../../copies/source.ts";
import { findByList } from "../../../kube/list.ts";
import { cutAt, LONGEST_PROBLEM } from "../../../kube/messages.ts";
import { explain } from "../../../placement/rank.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import { Controller } from "../../../runtime/controller.ts";
import { WriteGuard } from "../../../runtime/write-guard.ts";
import type { ObjectRules } from "../../../scheduling/whole/object-placement.ts";
import { Copier } from "../../copying/copier.ts";
import { shortDigest } from "../../copying/digests.ts";
import type { CopyRef, ObjectName } from "../../copying/model.ts";
import type { PodCopierOptions } from "../../copying/pod-copier.ts";
import type { RestoredHost } from "../../restored-host.ts";
import { Executor } from "../execute.ts";
import { decide } from "./decide.ts";
import { ALL_MARKS, isDefinitionLost, leaveSlices, MARKS_OF_WHOLE, removeMarks } from "./left-behind.ts";
import type { ObjectDecision, Observed } from "./model.ts";
import { ObjectPlacements, type PlacedInMember } from "./object-placements.ts";
import { ObjectStatuses } from "./object-statuses.ts";
import { ObjectWrites } from "./writes.ts";

export interface ObjectControllerOptions extends Omit<PodCopierOptions, "proxies" | "events"> {
  readonly restoredHost: RestoredHost;
  readonly rules: ObjectRules;
  /** Counts and failures of the type may have changed. */
  readonly onChange: () => void;
}

// Writes of copies in flight that no single object causes in a fleet of a few members.
const BUSY_WRITES = 4;
// A copy that the host has after all, or that an operator has to look at, is asked for again.
const KEPT_MS = 60_000;

/** Gives the annotated objects of one type to members, and writes their status back. The copier keeps the copies. */
export class ObjectController {
  readonly #options: ObjectControllerOptions;
  readonly #type: DelegatedType;
  readonly #kind: CopiedKind<AnyObject>;
  readonly statuses: ObjectStatuses;
  readonly #copier: Copier<AnyObject>;
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #writes: ObjectWrites;
  readonly #loop: Controller<ObjectKey, Observed, ObjectDecision["actions"][number]>;
  /** When each object's status was last sent; epoch ms. Losing it costs one write. */
  readonly #sent = new Map<ObjectKey, NonNullable<Observed["sent"]>>();
  /** Since when each object's record of members is not as they are; epoch ms. */
  readonly #membersStaleSince = new Map<ObjectKey, number>();
  /** Objects that some member lacked, or had in another version, when they were last reconciled. */
  readonly #waiting = new Set<ObjectKey>();
  /** Objects that were unhealthy in some member then. */
  readonly #unhealthy = new Set<ObjectKey>();
  readonly #placements: ObjectPlacements;
  #isRetired = false;

  constructor(type: DelegatedType, options: ObjectControllerOptions) {
    this.#options = options;
    this.#type = type;
    this.#kind = delegatedKind(type, shortDigest);
    this.statuses = new ObjectStatuses(type, options.onChange);
    const { host, registry, rules, recorder, clock, identity } = options;
    const { kind } = this.#kind.resource;
    const { name = kind } = type.metadata;
    this.#guard = new WriteGuard({ clock });
    this.#placements = new ObjectPlacements({ type, rules, registry });
    this.#copier = new Copier<AnyObject>({
      ...options,
      name: "whole-object-copies",
      kinds: [this.#kind],
      clause: "",
      users: {
        areKnown: () => !this.#isRetired && this.#copier.sources.isRead(kind, ""),
        use: (_member, _ref, source) => ({
          demand: source.state === "present" && isHeld(source.object) ? "needed" : "kept",
        }),
        anyNeeds: () => true,
        sourceFor: (member, _ref, source) => this.#sourceFor(member, source),
        onCopy: (_member, ref) => this.#loop.enqueue(objectKey(ref)),
        onSource: (_kind, { metadata }) => {
          this.#loop.enqueue(objectKey(metadata));
          options.onChange();
        },
        onSources: () => this.#onRead(),
        onMember: (member) => this.#onMember(member),
        onMemberState: () => this.enqueueAll(),
      },
      beforeDelete: (member, ref, { copy, signal }) => this.#keptFor(member, ref, { copy, signal }),
    });
    this.#writes = new ObjectWrites(this.#kind, clock);
    const executor = new Executor(this.#writes, {
      host,
      identity,
      registry,
      recorder,
      guard: this.#guard,
      onStatus: (key, shown) => this.#sent.set(key, { at: clock.now(), shown }),
    });
    this.#loop = new Controller<ObjectKey, Observed, ObjectDecision["actions"][number]>(
      {
        name: "whole-objects",
        observe: (key) => this.#observe(key),
        identify: () => ({ type: name }),
        decide,
        execute: (action, context) => executor.execute(action, context),
      },
      options,
    );
  }

  start(): void {
    this.#copier.sources.need(this.#kind.resource.kind, "");
    this.#copier.onMembers();
  }

  async stop(): Promise<void> {
    // A copier that stops looks as if no member were read.
    await this.#loop.stop();
    await this.#copier.stop();
  }

  /** Releases all objects, and leaves their copies as they are. */
  retire(): void {
    this.#isRetired = true;
    this.enqueueAll();
  }

  onMembers(): void {
    this.#copier.onMembers();
    this.#enqueueCopies();
    this.enqueueAll();
  }

  onConnection(member: Member): void {
    if (member.reachable) this.#copier.onMember(member);
    this.enqueueAll();
  }

  /** The namespaces' annotations, or the defaults of all, have changed. */
  onDefaults(): void {
    this.#placements.reset();
    this.#enqueueCopies();
    this.enqueueAll();
  }

  enqueueAll(): void {
    for (const { metadata } of this.objects()) this.#loop.enqueue(objectKey(metadata));
    this.#options.onChange();
  }

  objects(): readonly Stored<AnyObject>[] {
    return this.#copier.sources.all(this.#kind.resource.kind);
  }

  /** Returns how many objects have the finalizer. */
  heldObjects(): number {
    return this.objects().filter(isHeld).length;
  }

  get resource(): CopiedKind<AnyObject>["resource"] {
    return this.#kind.resource;
  }

  /** Counts the objects, those that some member lacks or has in another version, and those that are unhealthy in one. */
  counts(): { readonly objects: number; readonly waiting: number; readonly unhealthy: number } {
    return { objects: this.objects().length, waiting: this.#waiting.size, unhealthy: this.#unhealthy.size };
  }

  /** Returns why objects of the type cannot be read on the host, or in a member. */
  failure(): string | undefined {
    const here = this.#copier.sources.failure(this.#kind.resource.kind, "");
    if (here !== undefined) return here;
    const there = this.#options.registry.members().flatMap((member) => {
      const reason = member.reachable ? this.#copier.copies.failing(member) : undefined;
      return reason === undefined ? [] : [cutAt(`${member.name}: ${reason}`, LONGEST_PROBLEM)];
    });
    return there.length === 0 ? undefined : there.join("; ");
  }

  /** Returns the members that answer, and whose copies are being read for the first time. */
  membersBeingRead(): readonly string[] {
    const { copies } = this.#copier;
    return this.#options.registry
      .members()
      .filter((member) => member.reachable && copies.isBeingRead(member))
      .map(({ name }) => name);
  }

  /** Reports whether the host's objects were read. */
  get isRead(): boolean {
    return this.#copier.sources.isRead(this.#kind.resource.kind, "");
  }

  #onRead(): void {
    for (const member of this.#options.registry.members()) this.#copier.onMember(member);
    this.enqueueAll();
  }

  #onMember(member: Member): void {
    this.#enqueueCopies(member);
    this.enqueueAll();
  }

  #enqueueCopies(only?: Member): void {
    const members = only === undefined ? this.#options.registry.members() : [only];
    for (const object of this.objects()) {
      const name = this.#copier.nameOf(this.#kind.resource.kind, object);
      for (const member of members) this.#copier.enqueue({ member: member.name, ...name });
    }
  }

  #sourceFor(member: Member, source: Source<AnyObject>): Source<AnyObject> {
    if (source.state !== "present") return source;
    return this.#placements.of(source.object).members.get(member.name)?.source ?? { state: "unknown" };
  }

  #choiceFor(object: Stored<AnyObject>): Observed["choice"] {
    if (this.#type.spec.exclusive !== true || recordedMember(object) !== undefined) return undefined;
    const { fitting, refusals } = this.#placements.rank(object);
    return { fitting, why: explain(refusals) };
  }

  #observe(key: ObjectKey): Observed | undefined {
    const { name, namespace = "" } = objectRef(key);
    const source = this.#copier.sources.of({ kind: this.#kind.resource.kind, namespace, name });
    if (source.state !== "present") {
      if (source.state === "missing") {
        this.#guard.forget(key);
        this.#sent.delete(key);
        this.#membersStaleSince.delete(key);
        this.statuses.forget(key);
        this.#count(key, []);
      }
      return undefined;
    }
    const { object } = source;
    const { problem } = this.#placements.of(object);
    const choice = this.#choiceFor(object);
    const sent = this.#sent.get(key);
    const held = this.#guard.of(key);
    const places = this.#placesOf(object);
    this.#count(key, places);
    const status = this.statuses.of(object, places, this.#writes);
    const staleMembers = this.#noteMembers(key, nextMembers(object, places, ""));
    return {
      object,
      isRetired: this.#isRetired,
      ...(problem === undefined ? {} : { problem }),
      ...(choice === undefined ? {} : { choice }),
      places,
      ...(status === undefined ? {} : { status }),
      ...(sent === undefined ? {} : { sent }),
      ...(staleMembers === undefined ? {} : { staleMembers }),
      isBusy: this.#copier.writesInFlight >= BUSY_WRITES,
      ...(held === undefined ? {} : { held }),
    };
  }

  /** Counts the object as it is in the members that get it: no places count it no more. */
  #count(key: ObjectKey, places: readonly Place[]): void {
    const given = places.filter(({ excluded }) => excluded === undefined);
    const isWaiting = given.some(({ inStep, contested }) => !inStep || contested !== undefined);
    const isUnhealthy = given.some(({ health }) => health?.status === "False");
    if (isWaiting === this.#waiting.has(key) && isUnhealthy === this.#unhealthy.has(key)) return;
    setMember(this.#waiting, key, isWaiting);
    setMember(this.#unhealthy, key, isUnhealthy);
    this.#options.onChange();
  }

  /** Returns the record that the object lacks, and since when. */
  #noteMembers(key: ObjectKey, members: readonly MemberRecord[] | undefined): Observed["staleMembers"] {
    if (members === undefined) {
      this.#membersStaleSince.delete(key);
      return undefined;
    }
    const since = this.#membersStaleSince.get(key) ?? this.#options.clock.now();
    this.#membersStaleSince.set(key, since);
    return { members, since };
  }

  #placesOf(object: Stored<AnyObject>): Place[] {
    const name = this.#copier.nameOf(this.#kind.resource.kind, object);
    const { members } = this.#placements.of(object);
    return this.#options.registry.members().map((member) => ({
      ...this.#placeIn(member, name, members.get(member.name)),
      ...(isWanted(object) ? {} : this.#evidenceIn(member, name, object)),
    }));
  }

  /** Returns what a decision on the object's end needs to know of a member without a copy. */
  #evidenceIn(member: Member, name: ObjectName, object: Stored<AnyObject>): Partial<Place> {
    const settlesAt = this.#copier.settlesAt(member, name);
    return {
      isLost: member.lost,
      isClosed: this.#copier.copies.isDenied(member) && !isOnRecord(object, member.name),
      ...(settlesAt === undefined ? {} : { settlesAt }),
    };
  }

  #placeIn(member: Member, name: ObjectName, { excluded, source }: Partial<PlacedInMember> = {}): Place {
    const { copies } = this.#copier;
    const found = copies.of(member, name.kind, name.namespace, name.name);
    const { drift, held, refusal, contested, failing, deletionRefusal, ofSource } = this.#copier.standing(member, name);
    // A member that stores another value than it was sent is not sent it again.
    const isInStep = drift === "none" || held === "NoEffect";
    return {
      member: member.name,
      ...(excluded === undefined ? {} : { excluded }),
      ...(source?.state === "unknown" && source.message !== undefined ? { misfit: source.message } : {}),
      isUsable: member.reachable && copies.isCurrent(member),
      isKnown: !copies.isBeingRead(member),
      hasCopy: found !== undefined,
      ...(found === undefined || !ofSource ? {} : { copy: found, health: this.statuses.healthOf(found) }),
      inStep: ofSource && isInStep,
      ...(refusal === undefined ? {} : { refusal: refusal.message }),
      ...(contested === undefined ? {} : { contested }),
      ...(failing === undefined ? {} : { failing }),
      ...(deletionRefusal === undefined ? {} : { deletionRefusal }),
    };
  }

  /**
   * Asks the host whether the copy's object is gone, or not for the member any more. Returns for how long the copy stays; ms. A
   * copy that is left behind stays for good, as an object of the member's own or of its pods.
   */
  async #keptFor(
    member: Member,
    ref: CopyRef,
    { copy, signal }: { readonly copy: Stored<AnyObject>; readonly signal: AbortSignal },
  ): Promise<number | undefined> {
    const { host } = this.#options;
    const { resource } = this.#kind;
    const found = await findByList(host, resource, ref, signal);
    const isOfFound = found !== undefined && found.metadata.uid === ownerOf(copy)?.uid;
    if (isOfFound && this.#mayBeWanted(found, member)) {
      return this.#copier.standing(member, ref).drift === "immutable" ? undefined : KEPT_MS;
    }
    const isTakenBack = isOfFound && (isDeleting(found) || found.metadata.labels?.[WHOLE_KEY] === NOT_WHOLE_VALUE);
    if (!isTakenBack && this.#options.restoredHost.keeps(member.name, `a ${resource.kind}`, copy.metadata))
      return KEPT_MS;
    if (found === undefined) await this.#options.restoredHost.confirm(member.name, resource.plural, signal);
    const leave = { client: member.client, resource, copy, signal };
    const isDeleted = !isOfFound || isDeleting(found);
    // The copy's record may be older than the object's last change.
    const isOrphaned = isOfFound ? asksToOrphan(found) : isOrphan(copy);
    if (isAdopted(copy) || (isDeleted && (isOrphaned || (await isDefinitionLost(host, { ...leave, isOfFound }))))) {
      if (isOfServices(this.#type)) await leaveSlices(leave);
      await removeMarks(leave, ALL_MARKS);
      return KEPT_MS;
    }
    // The copier of what pods use knows whether any uses it. A definition stays, since all objects of its type would go with it.
    if (!hasOtherCopies(resource)) return undefined;
    // A deleted Service is no pod's any more. The copier of pods' Services removes an export first.
    if (isDeleted && isOfServices(this.#type) && !isExported(copy)) return undefined;
    await removeMarks(leave, MARKS_OF_WHOLE);
    return KEPT_MS;
  }

  /** Reports whether the member is to have the object, or whether its type was deleted for a while. */
  #mayBeWanted(found: Stored<AnyObject>, member: Member): boolean {
    if (isDeleting(found)) return false;
    const { labels = {}, annotations = {} } = found.metadata;
    if (labels[WHOLE_KEY] === undefined) return annotations[WHOLE_KEY] === WHOLE_VALUE;
    return isWanted(found) && this.#placements.of(found).members.get(member.name)?.excluded === undefined;
  }
}

function setMember<T>(set: Set<T>, member: T, isIn: boolean): void {
  if (isIn) set.add(member);
  else set.delete(member);
}
