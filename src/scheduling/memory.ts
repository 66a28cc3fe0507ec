import { byName } from "../api/json.ts";
import type { Refusal } from "../placement/candidate.ts";
import type { WaitRefusal } from "../placement/needs.ts";
import type { RefusedWrite } from "../pods/proxy-conditions.ts";
import { type HeldWrites, heldUntil } from "../runtime/held-writes.ts";
import type { Told } from "../runtime/told.ts";

/** An attempt to run a proxy in a member. */
export interface Attempt {
  /** When its delegate was created or first seen; epoch ms. */
  readonly since: number;
  /** No member had room: it waits in one until it has. */
  readonly parked?: boolean;
  /** Why it did not work out; absent while it is under way. */
  readonly refusal?: Refusal;
  /** No other attempt in the member before this time; epoch ms. */
  readonly until?: number;
  readonly nodesVersion?: number;
  readonly refusalCount: number;
  /** The one short retry after a refusal was used. */
  readonly hurried?: boolean;
}

/** Creates whose result is unknown: the first failed at `since`, the last at `lastAt` with this error; epoch ms. */
export interface UncertainCreate {
  readonly since: number;
  readonly lastAt: number;
  readonly message: string;
}

export interface SentBinding {
  readonly member: string;
  /** Absent: the member is lost and may or may not have a delegate. */
  readonly delegateUid?: string;
  readonly memberNode?: string;
}

export interface SentRecord {
  readonly delegateUid: string;
  readonly memberNode: string;
}

/** The controller's memory of one proxy uid, as plain data. Losing it costs time, never correctness. */
export interface Memory {
  /** The proxy came while this controller led: no earlier leader can have made a delegate for it. */
  readonly fresh: boolean;
  /** Members whose connection is new: they may hold a delegate until they have been read. */
  readonly unproven?: readonly string[];
  /** Members confirmed to hold no delegate after the previous leader's requests ended. */
  readonly confirmedAbsent?: readonly string[];
  readonly attempts: Readonly<Record<string, Attempt>>;
  /** Member where a create was sent and the delegate has not been seen: no other member gets the pod. */
  readonly uncertain?: string;
  readonly uncertainCreate?: UncertainCreate;
  /** The Binding that was sent, until the host shows it: without a response it may be done late. */
  readonly binding?: SentBinding;
  /** The record of a delegate that was sent to a bound proxy, until the host shows it. */
  readonly recording?: SentRecord;
  /** Member where room is reserved until the delegate elsewhere has gone. */
  readonly reserved?: string;
  /** The last member where room was reserved: the only one that may still count it. */
  readonly lastReserved?: string;
  readonly reported?: Reported;
  /** Uid of the last delegate that was created for it. */
  readonly made?: string;
  /** Uid of the delegate that its member was asked for and does not have. */
  readonly gone?: string;
  /** Writes that are held, since they were refused, changed nothing or are undone each time; by name or as JSON. */
  readonly held?: HeldWrites<RefusedWrite>;
}

/** The writes of a report to the author: condition and event, or one of them. */
export interface Telling {
  /** The event alone, before the API server forgets it. */
  readonly again?: true;
  /** The condition alone: only numbers of the message differ. */
  readonly amounts?: true;
}

/** The last reason that was reported to the author. `message` is the condition's, `at` the time of the event. */
export interface Reported extends Told {
  /** Absent where it is no reason to wait. */
  readonly reason?: string;
  readonly refusals?: readonly WaitRefusal[];
  /** How often the condition alone got other numbers since, and when it last did; epoch ms. Absent: never. */
  readonly amounts?: { readonly count: number; readonly at: number };
}

/** Stands for the delegate's marks among the held writes. */
export const DELEGATE_MARKS = "patch marks";
/** Stands for a resize that the member refuses. Its content is the change of the spec, as JSON. */
export const RESIZE = "resize";

/** The memory of a proxy that came while this controller leads. */
export const NOTHING: Memory = { fresh: true, attempts: byName() };

/** Names the create of a delegate in a member among the writes that fail. */
export function delegateCreationIn(member: string): string {
  return `create ${member}`;
}

export function refusedCreationIn(member: string): string {
  return `refused create ${member}`;
}

export function isWriteHeld({ held }: Memory, write: string, now: number): boolean {
  return heldUntil(held, { write, now }) !== undefined;
}

/** Reports whether a member that has not been read may hold a delegate of the proxy. */
export function mayHold({ fresh, unproven }: Memory, member: string): boolean {
  return !fresh || unproven?.includes(member) === true;
}
