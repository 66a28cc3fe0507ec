import { withoutAmounts } from "../../../kube/messages.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import type { RefusedSince } from "../../../pods/proxy-conditions.ts";
import { REPEAT_EVENT_AFTER_MS } from "../../../runtime/held-writes.ts";
import { RepeatedWrites, type Wanted } from "../../../runtime/repeated-writes.ts";
import type { MemberReason, Why } from "./needs.ts";
import { type Rest, restAfterRefusal } from "./refusal-backoff.ts";

/** One try to run a proxy in a member. */
export interface Attempt {
  /** When its delegate was created or first seen; epoch ms. */
  readonly since: number;
  /** First failure with an error that may pass by itself; epoch ms. */
  readonly failingSince?: number;
  /** First refusal, for a pod that a lasting refusal would end; epoch ms. */
  readonly refusingSince?: number;
  /** No member had room: it waits there until one has. */
  readonly parked?: boolean;
  /** Why it did not work out; absent while it is under way. */
  readonly refusal?: Refusal;
  /** No other attempt there before this time; epoch ms. */
  readonly until?: number;
  /** The member's `nodesVersion` at the refusal. */
  readonly nodesVersion?: number;
  /** Refusals in a row, for the backoff. */
  readonly refusals: number;
  /** The one short retry after a refusal was used. */
  readonly hurried?: boolean;
}

/** Creates whose result is unknown: the member's responses do not tell. */
export interface Doubt {
  /** When the first of them failed; epoch ms. */
  readonly since: number;
  /** When the last one failed; epoch ms. */
  readonly lastAt: number;
  /** The last one's error. */
  readonly message: string;
}

/** kube-apiserver gives up what it has begun after its --request-timeout, a minute by default. */
export const CREATE_ENDS_MS = 60_000;

/** What the controller remembers of one proxy uid, as plain data. Losing it costs time, never correctness. */
export interface Memory {
  /** The proxy came while this controller led: no earlier leader can have made a delegate for it. */
  readonly fresh: boolean;
  /** Members whose connection is new: they may hold a delegate until they have been read. */
  readonly unproven?: readonly string[];
  /** Members confirmed to hold no delegate after the previous leader's writes settled. */
  readonly denied?: readonly string[];
  /** By member. */
  readonly attempts: Readonly<Record<string, Attempt>>;
  /** Member where a create was sent and the delegate has not been seen: no other member gets the pod. */
  readonly uncertain?: string;
  /** The failures of that create, where its response was lost. */
  readonly doubt?: Doubt;
  /** Lost member whose node the proxy is being bound to: that Binding may be done late. */
  readonly binding?: string;
  /** Member where room is reserved until the delegate elsewhere has gone. */
  readonly promised?: string;
  /** The last member where room was reserved: the only one that may still count it. */
  readonly room?: string;
  /** The last condition or event that told why the proxy waits. */
  readonly told?: Told;
  /** Uid of the last delegate that was created for it. */
  readonly made?: string;
  /** Uid of the delegate that its member was asked for and does not have. */
  readonly gone?: string;
  /** Writes that are not sent before a time (epoch ms), since they were refused, changed nothing or are undone each time. */
  readonly ineffective?: Readonly<Record<string, number>>;
  /** Writes that a cluster goes on refusing, by action and cluster. */
  readonly refused?: Readonly<Record<string, LastingRefusal>>;
  /** First and last failure of writes that go on failing; epoch ms. */
  readonly failing?: Readonly<Record<string, { readonly since: number; readonly lastAt: number }>>;
  /** The resize that the delegate's member has refused. */
  readonly resize?: RefusedResize;
}

/** What the author was told, and when. */
export interface Told {
  readonly message: string;
  /** Epoch ms. */
  readonly at?: number;
  /** Absent where it is no reason to wait. */
  readonly reason?: string;
  readonly refusals?: readonly MemberReason[];
}

/** A write that a cluster goes on refusing, as the author was told. */
export interface LastingRefusal extends RefusedSince {
  /** When its event was written; epoch ms. */
  readonly at: number;
  /** When the refusal counts as over, unless it is repeated; epoch ms. */
  readonly until: number;
}

/** A resize that a member has refused. */
export interface RefusedResize extends ResizeRefusal {
  /** The change of the spec, as JSON. */
  readonly spec: string;
  /** Until when it is not tried again; epoch ms. */
  readonly until: number;
}

/** Time after which a write that was refused, or had no effect, is tried again. */
export const INEFFECTIVE_MS: number = 5 * 60_000;
// A refused write is tried again after INEFFECTIVE_MS at the latest, which renews the entry.
const REFUSED_UNTIL_MS = INEFFECTIVE_MS + 60_000;
// Longer than any pause between two attempts.
const FAILING_FORGOTTEN_MS = 2 * 60_000;

/** Stands for the delegate's marks among the ineffective writes. */
export const MARKS = "marks";

const NOTHING: Memory = { fresh: true, attempts: {} };

/** Reports whether a write is not to be sent now. */
export function isIneffective({ ineffective }: Memory, write: string, now: number): boolean {
  return now < (ineffective?.[write] ?? 0);
}

/** Reports whether a member that has not been read may hold a delegate of the proxy. */
export function mayHold({ fresh, unproven }: Memory, member: string): boolean {
  return !fresh || unproven?.includes(member) === true;
}

/** The delegation controller's memory, by proxy uid. A `Memory` that was read never changes. */
export class Memories {
  readonly #memories = new Map<string, Memory>();
  readonly #repeated = new RepeatedWrites();
  readonly #onPlace: (proxyUid: string, member: string | undefined) => void;

  /** `onPlace` hears of each member that a proxy is about to get, or turns out not to. */
  constructor(onPlace: (proxyUid: string, member: string | undefined) => void = () => undefined) {
    this.#onPlace = onPlace;
  }

  of(proxyUid: string): Memory {
    return this.#memories.get(proxyUid) ?? NOTHING;
  }

  /** The proxy existed before this controller led. */
  noteInherited(proxyUid: string): void {
    this.#change(proxyUid, (memory) => ({ ...memory, fresh: false }));
  }

  /** The member's connection is new, so what it had shown counts no more. */
  noteUnproven(proxyUid: string, member: string): void {
    this.#change(proxyUid, ({ unproven = [], denied = [], ...memory }) => ({
      ...memory,
      unproven: [...unproven.filter((name) => name !== member), member],
      denied: denied.filter((name) => name !== member),
    }));
  }

  /** The member was asked for the delegate of an inherited proxy, and does not have it. */
  noteDenied(proxyUid: string, member: string): void {
    this.#changeKnown(proxyUid, ({ denied = [], ...memory }) => ({
      ...memory,
      denied: [...denied.filter((name) => name !== member), member],
    }));
  }

  /** A delegate is being created in the member. An attempt under way keeps its time. */
  noteAttempt(proxyUid: string, member: string, now: number, parked = false): void {
    this.#onPlace(proxyUid, member);
    this.#change(proxyUid, ({ promised: _, ...memory }) => {
      const attempts = finished(memory, member);
      const earlier = attempts[member];
      if (earlier !== undefined && earlier.refusal === undefined) return { ...memory, room: member, attempts };
      const { refusals = 0, hurried } = earlier ?? {};
      const kept = { refusals, ...(hurried === true ? { hurried } : {}), ...(parked ? { parked } : {}) };
      return { ...memory, room: member, attempts: { ...attempts, [member]: { since: now, ...kept } } };
    });
  }

  /**
   * The attempt has failed with an error that may pass by itself; `refusing`: with a refusal of the pod. Returns since when it does
   * so; epoch ms.
   */
  noteFailing(proxyUid: string, member: string, now: number, refusing = false): number {
    const attempt = this.of(proxyUid).attempts[member] ?? { since: now, refusals: 0 };
    const { failingSince = now, refusingSince = refusing ? now : undefined } = attempt;
    this.#attempt(proxyUid, member, {
      ...attempt,
      failingSince,
      ...(refusingSince === undefined ? {} : { refusingSince }),
    });
    return refusing ? (refusingSince ?? now) : failingSince;
  }

  /** Room may have become free in the member that refused the pod: it is asked now. One more refusal does not prolong the backoff. */
  noteOpen(proxyUid: string, member: string, now: number): void {
    const attempt = this.#memories.get(proxyUid)?.attempts[member];
    if (attempt?.refusal === undefined) return;
    const refusals = Math.max(0, attempt.refusals - 1);
    this.#attempt(proxyUid, member, { ...attempt, until: now, refusals, hurried: true });
  }

  /** Room is reserved for the pod in the member. */
  notePromised(proxyUid: string, member: string): void {
    this.#onPlace(proxyUid, member);
    this.#change(proxyUid, (memory) => ({ ...memory, promised: member, room: member }));
  }

  /** The member did not take the pod. Returns for how long it rests; ms. */
  noteRefusal(proxyUid: string, refusal: Refusal, nodesVersion: number, now: number, rest: Rest = "growing"): number {
    const { room, attempts } = this.of(proxyUid);
    if (room === refusal.cluster) this.#onPlace(proxyUid, undefined);
    const earlier = attempts[refusal.cluster] ?? { since: now, refusals: 0 };
    const { restMs, ...backoff } = restAfterRefusal(earlier, rest);
    const { since } = earlier;
    this.#attempt(proxyUid, refusal.cluster, { since, refusal, until: now + restMs, nodesVersion, ...backoff });
    return restMs;
  }

  /**
   * A create was sent: the delegate may exist until the member has shown or denied it. One whose response was lost may be done
   * even after a delegate was deleted: the attempt begins anew, so that no other member is tried before that is over.
   */
  noteUncertain(proxyUid: string, member: string, lost?: { readonly at: number; readonly message: string }): void {
    this.#change(proxyUid, (memory) => {
      if (lost === undefined) return { ...memory, uncertain: member };
      const { since = lost.at } = (memory.uncertain === member ? memory.doubt : undefined) ?? {};
      const doubt = { since, lastAt: lost.at, message: lost.message };
      const attempt = memory.attempts[member];
      const isUnderWay = attempt !== undefined && attempt.refusal === undefined;
      const attempts = isUnderWay
        ? { ...memory.attempts, [member]: { since: lost.at, refusals: attempt.refusals } }
        : memory.attempts;
      return { ...memory, uncertain: member, doubt, attempts };
    });
  }

  /** A Binding of the proxy to the node of a lost member is being sent. */
  noteBinding(proxyUid: string, member: string): void {
    this.#change(proxyUid, (memory) => ({ ...memory, binding: member }));
  }

  /** The member has created the delegate of this uid. */
  noteMade(proxyUid: string, member: string, delegateUid: string): void {
    this.noteUncertain(proxyUid, member);
    this.#change(proxyUid, (memory) => {
      const made = { ...memory, made: delegateUid };
      const attempt = memory.attempts[member];
      if (attempt === undefined) return made;
      const { failingSince: _, refusingSince: __, ...sound } = attempt;
      return { ...made, attempts: { ...memory.attempts, [member]: sound } };
    });
  }

  /**
   * The member shows the delegate; an earlier leader's gets its time from now on. One that `ends` without having had a node gives
   * the proxy no place.
   */
  noteFound(proxyUid: string, member: string, now: number, ends = false): void {
    const { uncertain, promised, attempts } = this.of(proxyUid);
    if (promised === undefined && !ends) this.#onPlace(proxyUid, member);
    if (uncertain !== member && attempts[member] !== undefined) return;
    this.#change(proxyUid, (memory) => ({
      ...(uncertain === member ? settled(memory) : memory),
      attempts: { ...memory.attempts, [member]: memory.attempts[member] ?? { since: now, refusals: 0 } },
    }));
  }

  /** The member in doubt is known not to have the delegate. */
  noteAbsent(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    this.#changeKnown(proxyUid, settled);
  }

  /** The proxy has no place any more, nor a promise of one. */
  noteUnplaced(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    this.#changeKnown(proxyUid, ({ promised: _, ...memory }) => ({ ...memory, attempts: finished(memory) }));
  }

  /** A pod in overflow mode was not bound: only the members' refusals are kept. */
  noteGivenUp(proxyUid: string): void {
    const refused = Object.entries(this.of(proxyUid).attempts).filter(([, { refusal }]) => refusal !== undefined);
    this.#memories.delete(proxyUid);
    if (refused.length > 0) this.#memories.set(proxyUid, { ...NOTHING, attempts: Object.fromEntries(refused) });
  }

  /** The author was told this. */
  noteReported(proxyUid: string, { reason, message, refusals }: Why, now: number): void {
    const next = { reason, message, at: now, ...(refusals === undefined ? {} : { refusals }) };
    this.#change(proxyUid, (memory) => ({ ...memory, told: next }));
  }

  /** The API server took the write and changed nothing, or refused it. */
  noteIneffective(proxyUid: string, write: string, now: number): void {
    this.#change(proxyUid, ({ ineffective = {}, ...memory }) => {
      const known = Object.entries(ineffective).filter(([, until]) => until > now);
      return { ...memory, ineffective: { ...Object.fromEntries(known), [write]: now + INEFFECTIVE_MS } };
    });
  }

  /** Reports whether the author was told this last, in an event that has not expired. */
  isTold(proxyUid: string, message: string, now: number): boolean {
    const { told } = this.of(proxyUid);
    return told?.message === message && now < (told.at ?? 0) + REPEAT_EVENT_AFTER_MS;
  }

  isIneffective(proxyUid: string, write: string, now: number): boolean {
    return isIneffective(this.of(proxyUid), write, now);
  }

  /** The member does not take this resize of the delegate. */
  noteRefusedResize(proxyUid: string, resize: Omit<RefusedResize, "until">, now: number): void {
    this.#change(proxyUid, (memory) => ({ ...memory, resize: { ...resize, until: now + INEFFECTIVE_MS } }));
  }

  /** The member took the resize. */
  noteResized(proxyUid: string): void {
    this.#changeKnown(proxyUid, ({ resize: _, ...memory }) => memory);
  }

  /** A write for the pod is refused. Reports whether the author is to be told. */
  noteRefused(proxyUid: string, write: string, refused: RefusedSince, now: number): boolean {
    const before = this.of(proxyUid).refused?.[write];
    const isTold = before !== undefined && withoutAmounts(before.message) === withoutAmounts(refused.message);
    const isNews = !isTold || now >= before.at + REPEAT_EVENT_AFTER_MS;
    const since = before?.since ?? refused.since;
    const told = isNews ? { ...refused, since, at: now } : before;
    this.#change(proxyUid, (memory) => ({
      ...memory,
      refused: { ...memory.refused, [write]: { ...told, until: now + REFUSED_UNTIL_MS } },
    }));
    return isNews;
  }

  /** The write has failed with an answer that is no lasting refusal. Returns since when it does so; epoch ms. */
  noteFailingWrite(proxyUid: string, write: string, now: number): number {
    const before = this.of(proxyUid).failing?.[write];
    const since = before === undefined || now >= before.lastAt + FAILING_FORGOTTEN_MS ? now : before.since;
    this.#change(proxyUid, (memory) => ({
      ...memory,
      failing: { ...memory.failing, [write]: { since, lastAt: now } },
    }));
    return since;
  }

  /** The write does not go on failing. */
  noteAnswered(proxyUid: string, write: string): void {
    if (this.of(proxyUid).failing?.[write] === undefined) return;
    this.#change(proxyUid, ({ failing, ...memory }) => ({ ...memory, failing: without(failing, write) }));
  }

  /** The write is done. Reports whether it had been refused. */
  noteTaken(proxyUid: string, write: string): boolean {
    this.noteAnswered(proxyUid, write);
    if (this.of(proxyUid).refused?.[write] === undefined) return false;
    this.#change(proxyUid, ({ refused, ...memory }) => ({ ...memory, refused: without(refused, write) }));
    return true;
  }

  /** The member was asked for the delegate of this uid, and does not have it. */
  noteGone(proxyUid: string, delegateUid: string): void {
    this.#change(proxyUid, (memory) => ({ ...memory, gone: delegateUid }));
  }

  /** Records a write that was done. Reports whether another writer has undone it so often that it is left for a while. */
  noteWritten(proxyUid: string, wanted: Wanted, now: number): boolean {
    return this.#repeated.note(proxyUid, wanted, now);
  }

  /** The proxy is bound or gone. */
  forget(proxyUid: string): void {
    this.#memories.delete(proxyUid);
  }

  #attempt(proxyUid: string, member: string, attempt: Attempt): void {
    this.#change(proxyUid, (memory) => ({ ...memory, attempts: { ...memory.attempts, [member]: attempt } }));
  }

  #changeKnown(proxyUid: string, change: (memory: Memory) => Memory): void {
    if (this.#memories.has(proxyUid)) this.#change(proxyUid, change);
  }

  #change(proxyUid: string, change: (memory: Memory) => Memory): void {
    this.#memories.set(proxyUid, change(this.of(proxyUid)));
  }
}

/** Nothing is in doubt any more. */
function settled({ uncertain: _, doubt: __, ...memory }: Memory): Memory {
  return memory;
}

/** Returns the attempts without those that ended without a refusal. An uncertain one stays: its create may still be done. */
function finished({ attempts, uncertain }: Memory, except?: string): Memory["attempts"] {
  const kept = Object.entries(attempts).filter(
    ([member, { refusal }]) => member === except || refusal !== undefined || member === uncertain,
  );
  return Object.fromEntries(kept);
}

function without<T>(record: Readonly<Record<string, T>> = {}, key: string): Record<string, T> {
  const { [key]: _, ...rest } = record;
  return rest;
}
