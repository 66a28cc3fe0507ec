import type { Annotations, RequestedPlacement } from "../api/annotations.ts";
import type { JsonObject } from "../api/json.ts";
import type { KubeObject, Pod, Stored } from "../api/kubernetes.ts";
import type { Resource } from "../kube/resources.ts";
import type { Candidate } from "../placement/candidate.ts";
import type { PodRules } from "../scheduling/pod-rules.ts";
import type { MemberPart } from "./member-part.ts";

/**
 * A built-in type of objects that members get whole: all that the webhook, queues, simulations and commands know of it. An adapter
 * for the engine beside it says who gets what. `types.ts` and `adapters.ts` register them.
 */
export interface WholeType<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  /** The controller of the objects and that of their copies, in logs and metrics. */
  readonly names: { readonly objects: string; readonly copies: string };
  /** Path of the field that tells controllers of this cluster to leave an object alone. */
  readonly managedBy: readonly string[];
  /** Types whose templates make objects of this one. */
  readonly makers: readonly Maker[];
  /** Tells who writes a DelegatedType of it, or of a maker, why there is none. */
  readonly whyReserved: string;
  /** Path of the pods' spec, which overrides change. */
  readonly podSpec: readonly string[];
  /** Annotations that record an object's members. */
  readonly recordKeys: readonly string[];
  /** Returns why an author's object cannot go to members, each with the annotation that asks for it. `object` is unchecked. */
  problemsOf(
    object: JsonObject,
    written: { readonly annotations: Annotations; readonly placement: RequestedPlacement },
  ): readonly (readonly [key: string, problem: string | false])[];
  membersOf(object: T): readonly string[];
  isFinished(object: T): boolean;
  isFinishedIn(object: T, member: string): boolean;
  /** Formats in a few words how far an object is. */
  progressOf(object: T): string;
  partsOf(object: Stored<T>): readonly MemberPart[];
  workOf(object: Stored<T>): WholeWork;
  /** Returns what a member that has the object has of it. */
  inMember(object: Stored<T>): WholeInMember;
  /** Returns the place that a new object would get. */
  place(object: Stored<T>, options: PlaceOptions): WholePlace;
}

/** A type with a template of objects, such as CronJob, and the path of that template. */
export interface Maker {
  readonly resource: Resource<KubeObject>;
  readonly part: readonly string[];
}

/** A Job or object that goes to members whole, as the admission check judges its pods. */
export interface WholeWork {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** The members that have it, whatever its flavors say. */
  readonly members: readonly string[];
  /** Several members may get its pods. */
  readonly isDivided: boolean;
  /** Pods of each pod set that members have: others' use when they were last counted. */
  readonly live: number;
  readonly succeeded: number;
}

/** A Job or object that goes to members whole, as it is in the member that has it. */
export interface WholeInMember {
  readonly pods: readonly { readonly pod: Pod; readonly count: number }[];
  /** The key by which the member's pods are known as its own, as `ForeignByNode` has them. Absent: it has none. */
  readonly owner?: string;
}

/** Whole objects of a type, or of several, as queues count them. */
export interface QueuedWhole {
  /** Returns the objects of all shards, as Kueue's admission checks judge their pods. */
  work(): readonly WholeWork[];
  /** Returns the objects of all shards that the member of that name has. */
  inMember(cluster: string): readonly WholeInMember[];
}

export interface PlaceOptions {
  readonly rules: Pick<PodRules, "parse" | "optedIn" | "of">;
  readonly candidates: readonly Candidate[];
}

export interface Declined {
  readonly cluster: string;
  readonly reason: string;
  readonly message: string;
}

/** The members that get a whole object. */
export interface WholePlace {
  /** Why no member is looked for. */
  readonly problem?: string;
  readonly clusters: readonly PlannedPart[];
  readonly others: readonly Omit<Declined, "reason">[];
  /** Members of `clusters` that do not get it, and why its author's overrides do not fit there. */
  readonly misfits: readonly Omit<Declined, "reason">[];
}

interface PlannedPart {
  readonly cluster: string;
  /** The member's amounts of a divided object, the one that matters most first. */
  readonly amounts?: Readonly<Record<string, number>>;
  /** Why the member gets it later, or its pods wait there. */
  readonly message?: string;
}

/** The place of an object that no member gets. */
export const NO_PLACE: WholePlace = { clusters: [], others: [], misfits: [] };
