import { defined } from "../api/defined.ts";
import { byName } from "../api/json.ts";
import type { Refusal } from "../placement/candidate.ts";
import type { WaitReason } from "../placement/needs.ts";
import type { RefusedWrite } from "../pods/proxy-conditions.ts";
import type { Clock } from "../runtime/clock.ts";
import { isTold } from "../runtime/told.ts";
import { WriteGuard } from "../runtime/write-guard.ts";
import {
  type Attempt,
  delegateCreationIn,
  type Memory,
  NOTHING,
  refusedCreationIn,
  type SentBinding,
  type SentRecord,
  type Telling,
} from "./memory.ts";
import { type BackoffGrowth, backoffAfterRefusal } from "./retries/backoff.ts";

/** Returns the guard of the writes for proxies, by proxy uid. */
export function proxyWrites(clock: Pick<Clock, "now">): WriteGuard<string, RefusedWrite> {
  return new WriteGuard({ clock });
}

/** The delegation controller's memory, by proxy uid. A `Memory` that was read never changes. */
export class Memories {
  readonly writes: WriteGuard<string, RefusedWrite>;
  readonly #memories = new Map<string, Memory>();
  readonly #onPlace: (proxyUid: string, member: string | undefined) => void;

  /** `onPlace` hears of each member that a proxy is about to get, or turns out not to. */
  constructor(
    clock: Pick<Clock, "now">,
    onPlace: (proxyUid: string, member: string | undefined) => void = () => undefined,
    writes: WriteGuard<string, RefusedWrite> = proxyWrites(clock),
  ) {
    this.writes = writes;
    this.#onPlace = onPlace;
  }

  of(proxyUid: string): Memory {
    const memory = this.#memories.get(proxyUid) ?? NOTHING;
    const held = this.writes.of(proxyUid);
    return held === undefined ? memory : { ...memory, held };
  }

  noteInherited(proxyUid: string): void {
    this.#change(proxyUid, (memory) => ({ ...memory, fresh: false }));
  }

  /** The member's connection is new, so what it had shown counts no more. */
  noteUnproven(proxyUid: string, member: string): void {
    this.#change(proxyUid, ({ unproven = [], confirmedAbsent = [], ...memory }) => ({
      ...memory,
      unproven: [...unproven.filter((name) => name !== member), member],
      confirmedAbsent: confirmedAbsent.filter((name) => name !== member),
    }));
  }

  noteConfirmedAbsent(proxyUid: string, member: string): void {
    this.#changeKnown(proxyUid, ({ confirmedAbsent = [], ...memory }) => ({
      ...memory,
      confirmedAbsent: [...confirmedAbsent.filter((name) => name !== member), member],
    }));
  }

  /** A delegate is being created in the member. An attempt under way keeps its time. */
  noteAttempt(proxyUid: string, member: string, now: number, parked = false): void {
    this.#onPlace(proxyUid, member);
    this.#change(proxyUid, ({ reserved: _, ...memory }) => {
      const attempts = finished(memory, member);
      const earlier = attempts[member];
      if (earlier !== undefined && earlier.refusal === undefined) return { ...memory, lastReserved: member, attempts };
      const { refusalCount = 0, hurried } = earlier ?? {};
      const kept = { refusalCount, ...(hurried === true ? { hurried } : {}), ...(parked ? { parked } : {}) };
      return { ...memory, lastReserved: member, attempts: byName({ ...attempts, [member]: { since: now, ...kept } }) };
    });
  }

  /** Room may have become free in the member that refused the pod: it is asked now. One more refusal does not prolong the backoff. */
  noteOpen(proxyUid: string, member: string, now: number): void {
    const attempt = this.#memories.get(proxyUid)?.attempts[member];
    if (attempt?.refusal === undefined) return;
    const refusalCount = Math.max(0, attempt.refusalCount - 1);
    this.#attempt(proxyUid, member, { ...attempt, until: now, refusalCount, hurried: true });
  }

  noteReserved(proxyUid: string, member: string): void {
    this.#onPlace(proxyUid, member);
    this.#change(proxyUid, (memory) => ({ ...memory, reserved: member, lastReserved: member }));
  }

  /** The member did not take the pod. Returns for how long it rests; ms. */
  noteRefusal(
    proxyUid: string,
    refusal: Refusal,
    nodesVersion: number,
    now: number,
    growth: BackoffGrowth = "growing",
  ): number {
    const { lastReserved, attempts } = this.of(proxyUid);
    if (lastReserved === refusal.cluster) this.#onPlace(proxyUid, undefined);
    const earlier = attempts[refusal.cluster] ?? { since: now, refusalCount: 0 };
    const { restMs, ...backoff } = backoffAfterRefusal(earlier, growth);
    const { since } = earlier;
    this.#endFailures(proxyUid, refusal.cluster);
    this.#attempt(proxyUid, refusal.cluster, { since, refusal, until: now + restMs, nodesVersion, ...backoff });
    return restMs;
  }

  /** A lost response may be done even after a delegate was deleted, so the attempt begins anew. */
  noteUncertain(proxyUid: string, member: string, lost?: { readonly at: number; readonly message: string }): void {
    if (lost !== undefined) this.#endFailures(proxyUid, member);
    this.#change(proxyUid, (memory) => {
      if (lost === undefined) return { ...memory, uncertain: member };
      const { since = lost.at } = (memory.uncertain === member ? memory.uncertainCreate : undefined) ?? {};
      const uncertainCreate = { since, lastAt: lost.at, message: lost.message };
      const attempt = memory.attempts[member];
      const isUnderWay = attempt !== undefined && attempt.refusal === undefined;
      const attempts = isUnderWay
        ? byName({ ...memory.attempts, [member]: { since: lost.at, refusalCount: attempt.refusalCount } })
        : memory.attempts;
      return { ...memory, uncertain: member, uncertainCreate, attempts };
    });
  }

  /** A Binding, or the record of a delegate, is being sent: without a response it may be done late. */
  noteSent(proxyUid: string, sent: { readonly binding: SentBinding } | { readonly recording: SentRecord }): void {
    this.#change(proxyUid, (memory) => ({ ...memory, ...sent }));
  }

  /** The host has not done what was sent, and will not. */
  noteNotDone(proxyUid: string, field: "binding" | "recording"): void {
    this.#changeKnown(proxyUid, ({ [field]: _, ...memory }) => memory);
  }

  /** The host has done what was sent, and does not show it yet: the search is over. */
  noteDone(proxyUid: string, field: "binding" | "recording"): void {
    const { [field]: sent } = this.of(proxyUid);
    this.forget(proxyUid);
    if (sent !== undefined) this.#change(proxyUid, (memory) => ({ ...memory, [field]: sent }));
  }

  noteMade(proxyUid: string, member: string, delegateUid: string): void {
    this.noteUncertain(proxyUid, member);
    this.#change(proxyUid, (memory) => ({ ...memory, made: delegateUid }));
    this.#endFailures(proxyUid, member);
  }

  /** An earlier leader's delegate gets its time from now on. One that `ends` without a node gives the proxy no place. */
  noteFound(proxyUid: string, member: string, now: number, ends = false): void {
    const { uncertain, reserved, attempts } = this.of(proxyUid);
    if (reserved === undefined && !ends) this.#onPlace(proxyUid, member);
    if (uncertain !== member && attempts[member] !== undefined) return;
    this.#change(proxyUid, (memory) => ({
      ...(uncertain === member ? withoutUncertain(memory) : memory),
      attempts: byName({ ...memory.attempts, [member]: memory.attempts[member] ?? { since: now, refusalCount: 0 } }),
    }));
  }

  noteAbsent(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    this.#changeKnown(proxyUid, withoutUncertain);
  }

  /** The proxy has no place any more, nor a reservation. */
  noteUnplaced(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    this.#changeKnown(proxyUid, ({ reserved: _, ...memory }) => ({ ...memory, attempts: finished(memory) }));
  }

  /** A pod that was about to become a proxy was not bound: only the members' refusals are kept. */
  noteGivenUp(proxyUid: string): void {
    const refused = Object.entries(this.of(proxyUid).attempts).filter(([, { refusal }]) => refusal !== undefined);
    this.#memories.delete(proxyUid);
    if (refused.length > 0) this.#memories.set(proxyUid, { ...NOTHING, attempts: byName(Object.fromEntries(refused)) });
  }

  noteReported(
    proxyUid: string,
    { reason, message, refusals, again, amounts }: WaitReason & Telling,
    now: number,
  ): void {
    const next = { reason, message, ...defined({ refusals }) };
    this.#change(proxyUid, ({ reported, ...memory }) => {
      if (again === true) return { ...memory, reported: { ...(reported ?? next), at: now } };
      if (amounts !== true) return { ...memory, reported: { ...next, at: now } };
      const count = (reported?.amounts?.count ?? 0) + 1;
      return { ...memory, reported: { ...next, at: reported?.at ?? now, amounts: { count, at: now } } };
    });
  }

  /** Reports whether the author was told this last, in an event that has not expired. */
  isReported(proxyUid: string, message: string, now: number): boolean {
    return isTold(this.of(proxyUid).reported, { message }, now);
  }

  noteGone(proxyUid: string, delegateUid: string): void {
    this.#change(proxyUid, (memory) => ({ ...memory, gone: delegateUid }));
  }

  forget(proxyUid: string): void {
    this.#memories.delete(proxyUid);
    this.writes.forget(proxyUid);
  }

  #endFailures(proxyUid: string, member: string): void {
    for (const write of [delegateCreationIn(member), refusedCreationIn(member)]) this.writes.answered(proxyUid, write);
  }

  #attempt(proxyUid: string, member: string, attempt: Attempt): void {
    this.#change(proxyUid, (memory) => ({ ...memory, attempts: byName({ ...memory.attempts, [member]: attempt }) }));
  }

  #changeKnown(proxyUid: string, change: (memory: Memory) => Memory): void {
    if (this.#memories.has(proxyUid)) this.#change(proxyUid, change);
  }

  #change(proxyUid: string, change: (memory: Memory) => Memory): void {
    this.#memories.set(proxyUid, change(this.#memories.get(proxyUid) ?? NOTHING));
  }
}

function withoutUncertain({ uncertain: _, uncertainCreate: __, ...memory }: Memory): Memory {
  return memory;
}

/** Returns the attempts without those that ended without a refusal. An uncertain one stays: its create may still be done. */
function finished({ attempts, uncertain }: Memory, except?: string): Memory["attempts"] {
  const kept = Object.entries(attempts).filter(
    ([member, { refusal }]) => member === except || refusal !== undefined || member === uncertain,
  );
  return byName(Object.fromEntries(kept));
}
