import { defined } from "../../../api/defined.ts";
import type { AnyObject, DelegatedType } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import { NOT_WHOLE_VALUE, WHOLE_KEY, WHOLE_VALUE } from "../../../api/keys.ts";
import { type ObjectKey, objectKey, type Stored } from "../../../api/kubernetes.ts";
import { isOfServices } from "../../../api/service-fields.ts";
import type { Member } from "../../../clusters/member.ts";
import type { Registry } from "../../../clusters/registry.ts";
import {
  isOnRecord,
  type MemberRecord,
  membersOfObject,
  nextMembers,
  type ObjectMember,
} from "../../../copies/object-members.ts";
import {
  asksToOrphan,
  delegatedKind,
  hasOtherCopies,
  hasWholeFinalizer,
  isAdopted,
  isOrphan,
  isWantedInMembers,
  recordedMember,
} from "../../../copies/objects.ts";
import { flavorExcludes, isHeldBack, isQueuedObject } from "../../../copies/queued-objects.ts";
import { isExported } from "../../../copies/services.ts";
import type { Source } from "../../../copies/source.ts";
import { explain } from "../../../placement/rank.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ObjectRules } from "../../../scheduling/whole/object-placement.ts";
import type { Copier } from "../../copying/copier.ts";
import { shortDigest } from "../../copying/digests.ts";
import type { Demand } from "../../copying/model.ts";
import { copyIn, type UnwantedCopy, type WholeAdapter } from "../adapter.ts";
import type { Observed as Known } from "../model.ts";
import type { WholeController } from "../whole-controller.ts";
import { decide } from "./decide.ts";
import { ALL_MARKS, isDefinitionLost, leaveSlices, MARKS_OF_WHOLE, removeMarks } from "./left-behind.ts";
import type { Observed } from "./model.ts";
import { ObjectPlacements, type PlacedInMember } from "./object-placements.ts";
import { ObjectStatuses } from "./object-statuses.ts";
import { ObjectWrites } from "./writes.ts";

export interface ObjectAdapterOptions {
  readonly rules: ObjectRules;
  readonly registry: Pick<Registry, "members">;
  readonly clock: Pick<Clock, "now">;
  /** Counts and failures of the type may have changed. */
  readonly onChange: () => void;
}

export type WholeObjects = WholeController<AnyObject, string | undefined, JsonObject, Observed>;

// Writes of copies in flight that no single object causes in a fleet of a few members.
const BUSY_WRITES = 4;

/** Gives the annotated objects of one type to the members that placement admits. */
export class ObjectAdapter implements WholeAdapter<AnyObject, string | undefined, JsonObject, Observed> {
  readonly names = { objects: "whole-objects", copies: "whole-object-copies" } as const;
  readonly writes: ObjectWrites;
  readonly replacesCopies = true;
  readonly decide: typeof decide = decide;
  readonly statuses: ObjectStatuses;
  readonly onChange: () => void;
  readonly #options: ObjectAdapterOptions;
  readonly #type: DelegatedType;
  readonly #placements: ObjectPlacements;
  /** Since when each object's record of members is not as they are; epoch ms. */
  readonly #membersStaleSince = new Map<ObjectKey, number>();
  /** Objects that some member lacked, or had in another version, when they were last reconciled. */
  readonly #waiting = new Set<ObjectKey>();
  /** Objects that were unhealthy in some member then. */
  readonly #unhealthy = new Set<ObjectKey>();

  constructor(type: DelegatedType, options: ObjectAdapterOptions) {
    this.#options = options;
    this.#type = type;
    const { clock, onChange } = options;
    this.onChange = onChange;
    this.writes = new ObjectWrites(delegatedKind(type, shortDigest), clock);
    this.statuses = new ObjectStatuses(type, onChange);
    this.#placements = new ObjectPlacements({ type, ...options });
  }

  identify(): Readonly<Record<string, string>> {
    return { type: this.#type.metadata.name ?? this.#kind };
  }

  /**
   * Counts the objects that some member lacks or has in another version, and those that are unhealthy in one. `elsewhere`: objects
   * of other shards, which count by their records.
   */
  counts(elsewhere: readonly Stored<AnyObject>[]): { readonly waiting: number; readonly unhealthy: number } {
    const records = elsewhere.map((object) =>
      (membersOfObject(object) ?? []).filter(({ state }) => state !== "Leaving"),
    );
    const withSome = (is: (record: MemberRecord) => boolean): number => records.filter((all) => all.some(is)).length;
    return {
      waiting: this.#waiting.size + withSome(({ state }) => state !== "InStep"),
      unhealthy: this.#unhealthy.size + withSome(({ health }) => health === "False"),
    };
  }

  demandFor(object: Stored<AnyObject>): Demand {
    return hasWholeFinalizer(object) ? "needed" : "kept";
  }

  sourceFor(object: Stored<AnyObject>, { name }: Member): Source<AnyObject> {
    return this.#placements.of(object).members.get(name)?.source ?? { state: "unknown" };
  }

  reset(): void {
    this.#placements.reset();
  }

  forget(key: ObjectKey): void {
    this.#membersStaleSince.delete(key);
    this.statuses.forget(key);
    this.#count(key, []);
  }

  observe(known: Known<AnyObject, JsonObject>, copier: Copier<AnyObject>): Observed {
    const { object } = known;
    const key = objectKey(object.metadata);
    const { problem } = this.#placements.of(object);
    const choice = this.#choiceFor(object);
    const places = this.#placesOf(object, copier);
    this.#count(key, places);
    const status = this.statuses.of(object, places, this.writes);
    const staleMembers = this.#noteMembers(key, nextMembers(object, places, ""));
    return {
      ...known,
      ...defined({ problem, choice }),
      places,
      isQueued: isQueuedObject(object, this.#type),
      isMisplaced: this.#isMisplaced(object, copier),
      ...defined({ status, staleMembers }),
      isBusy: copier.writesInFlight >= BUSY_WRITES,
    };
  }

  /** Reports whether the member is to have the object, or whether its type was deleted for a while. */
  isWantedIn(object: Stored<AnyObject>, { name }: Member): boolean {
    if (isDeleting(object)) return false;
    const { labels = {}, annotations = {} } = object.metadata;
    if (labels[WHOLE_KEY] === undefined) return annotations[WHOLE_KEY] === WHOLE_VALUE;
    return isWantedInMembers(object) && this.#placements.of(object).members.get(name)?.excluded === undefined;
  }

  isTakenBack(found: Stored<AnyObject> | undefined, isOfCopy: boolean): boolean {
    if (found === undefined || !isOfCopy) return false;
    return isDeleting(found) || found.metadata.labels?.[WHOLE_KEY] === NOT_WHOLE_VALUE;
  }

  /** A copy that is left behind stays for good, as an object of the member's own or of its pods. */
  async leave({ host, member, copy, object, signal }: UnwantedCopy<AnyObject>): Promise<boolean> {
    const { resource } = this.writes.kind;
    const left = { client: member.client, resource, copy, signal };
    const isOfFound = object !== undefined;
    const isDeleted = object === undefined || isDeleting(object);
    // The copy's record may be older than the object's last change.
    const isOrphaned = object === undefined ? isOrphan(copy) : asksToOrphan(object);
    if (isAdopted(copy) || (isDeleted && (isOrphaned || (await isDefinitionLost(host, { ...left, isOfFound }))))) {
      if (isOfServices(this.#type)) await leaveSlices(left);
      await removeMarks(left, ALL_MARKS);
      return true;
    }
    // The copier of what pods use knows whether any uses it. A definition stays, since all objects of its type would go with it.
    if (!hasOtherCopies(resource)) return false;
    // A deleted Service is no pod's any more. The copier of pods' Services removes an export first.
    if (isDeleted && isOfServices(this.#type) && !isExported(copy)) return false;
    await removeMarks(left, MARKS_OF_WHOLE);
    return true;
  }

  get #kind(): string {
    return this.writes.kind.resource.kind;
  }

  #choiceFor(object: Stored<AnyObject>): Observed["choice"] {
    if (this.#type.spec.exclusive !== true || recordedMember(object) !== undefined) return undefined;
    const { fitting, refusals } = this.#placements.rank(object);
    return { fitting, why: explain(refusals) };
  }

  #isMisplaced(object: Stored<AnyObject>, copier: Copier<AnyObject>): boolean {
    const member = this.#options.registry.members().find(({ name }) => name === recordedMember(object));
    if (member === undefined || !isWantedInMembers(object)) return false;
    if (flavorExcludes(object, this.#type, member.candidate()) === undefined) return false;
    const { found, isUsable } = copyIn(copier, member, copier.nameOf(this.#kind, object));
    if (!isUsable || found === undefined || ownerOf(found)?.uid !== object.metadata.uid) return false;
    return isHeldBack(found, this.#type) && !this.statuses.hasBegun(found);
  }

  #count(key: ObjectKey, places: readonly ObjectMember[]): void {
    const given = places.filter(({ excluded }) => excluded === undefined);
    const isWaiting = given.some(({ inStep, contested }) => !inStep || contested !== undefined);
    const isUnhealthy = given.some(({ health }) => health?.status === "False");
    if (isWaiting === this.#waiting.has(key) && isUnhealthy === this.#unhealthy.has(key)) return;
    setMember(this.#waiting, key, isWaiting);
    setMember(this.#unhealthy, key, isUnhealthy);
    this.onChange();
  }

  #noteMembers(key: ObjectKey, members: readonly MemberRecord[] | undefined): Observed["staleMembers"] {
    if (members === undefined) {
      this.#membersStaleSince.delete(key);
      return undefined;
    }
    const since = this.#membersStaleSince.get(key) ?? this.#options.clock.now();
    this.#membersStaleSince.set(key, since);
    return { members, since };
  }

  #placesOf(object: Stored<AnyObject>, copier: Copier<AnyObject>): ObjectMember[] {
    const name = copier.nameOf(this.#kind, object);
    const { members } = this.#placements.of(object);
    const { copies } = copier;
    return this.#options.registry.members().map((member): ObjectMember => {
      const { excluded, source }: Partial<PlacedInMember> = members.get(member.name) ?? {};
      const { found, isUsable, ofSource, drift, held, ...standing } = copyIn(copier, member, name);
      const { refusal, contested, failing, deletionRefusal } = standing;
      // A member that stores another value than it was sent is not sent it again.
      const isInStep = drift === "none" || held === "NoEffect";
      const isEnding = !isWantedInMembers(object);
      const settlesAt = isEnding ? copier.settlesAt(member, name) : undefined;
      const isClosed = isEnding && copies.isDenied(member) && !isOnRecord(object, member.name);
      const misfit = source?.state === "unknown" ? source.message : undefined;
      return {
        member: member.name,
        isLost: member.lost,
        isUsable,
        isKnown: !copies.isBeingRead(member),
        hasCopy: found !== undefined,
        ...(found === undefined || !ofSource ? {} : { copy: found, health: this.statuses.healthOf(found) }),
        inStep: ofSource && isInStep,
        ...defined({ excluded, misfit, refusal: refusal?.message, contested, failing, deletionRefusal, settlesAt }),
        ...(isEnding ? { isClosed } : {}),
      };
    });
  }
}

function setMember<T>(set: Set<T>, member: T, isIn: boolean): void {
  if (isIn) set.add(member);
  else set.delete(member);
}
