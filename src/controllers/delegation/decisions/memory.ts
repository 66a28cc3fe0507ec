import type { Refusal } from "../../../placement/candidate.ts";
import type { RefusedSince } from "../../../pods/proxy-conditions.ts";
import { Rewrites, type Wanted } from "../../rewrites.ts";
import { TOLD_FOR_MS, toldNow } from "../../told-for.ts";
import {
  type Attempt,
  type Doubt,
  isIneffective,
  type LastingRefusal,
  type Memory,
  type RefusedResize,
} from "./model.ts";

// First wait before a member that refused a pod is tried again, doubled each time up to the maximum.
const RETRY_AFTER_MS = 30_000;
const RETRY_AFTER_MAX_MS = 10 * 60_000;

// Once only: what takes longer is no matter of a moment.
const RETRY_SOON_MS = 2_000;

/**
 * How long a member that refused a pod rests: `growing`, longer each time; `steady`, as long each time, as what is in the way passes by
 * itself; `brief`, for a moment the first time, and then growing.
 */
export type Rest = "brief" | "steady" | "growing";

// Whoever undoes Legation's writes in an API server may be gone by then.
export const INEFFECTIVE_MS: number = 5 * 60_000;

// A refused write is retried after INEFFECTIVE_MS at the latest, which renews the entry.
const REFUSED_UNTIL_MS = INEFFECTIVE_MS + 60_000;
// Longer than any pause between two attempts.
const FAILING_FORGOTTEN_MS = 2 * 60_000;

interface Entry {
  fresh: boolean;
  unproven?: Set<string>;
  denied?: Set<string>;
  attempts: Map<string, Attempt>;
  uncertain?: string;
  doubt?: Doubt;
  binding?: string;
  promised?: string;
  room?: string;
  reported?: string;
  reportedAt?: number;
  reportedReason?: string;
  ineffective?: Map<string, number>;
  resize?: RefusedResize;
  refused?: Map<string, LastingRefusal>;
  /** When writes that go on failing first failed, and when last; epoch ms. */
  failing?: Map<string, { readonly since: number; readonly lastAt: number }>;
  gone?: string;
  made?: string;
}

/** What stands for a delegate's marks among patches that have no effect. */
export const MARKS = "marks";

const NOTHING: Memory = { fresh: true, attempts: new Map() };

/** What the delegation controller remembers of proxies while it leads, by proxy uid. */
export class Memories {
  readonly #entries = new Map<string, Entry>();
  readonly #rewrites = new Rewrites();
  readonly #onPlace: (proxyUid: string, member: string | undefined) => void;

  /** `onPlace` hears of each member that a proxy is about to get, or turns out not to. */
  constructor(onPlace: (proxyUid: string, member: string | undefined) => void = () => undefined) {
    this.#onPlace = onPlace;
  }

  of(proxyUid: string): Memory {
    return this.#entries.get(proxyUid) ?? NOTHING;
  }

  /** Marks a proxy that was there before this controller led: an earlier leader may have acted on it. */
  noteInherited(proxyUid: string): void {
    this.#entry(proxyUid).fresh = false;
  }

  /** What a member has shown counts no more: it may have a delegate of the proxy, until it has been read again. */
  noteUnproven(proxyUid: string, member: string): void {
    const entry = this.#entry(proxyUid);
    entry.unproven = (entry.unproven ?? new Set()).add(member);
    entry.denied?.delete(member);
  }

  /** The member was asked for the delegate of a proxy that was there before this controller led, and does not have it. */
  noteDenied(proxyUid: string, member: string): void {
    const entry = this.#entries.get(proxyUid);
    // The proxy may be gone by now.
    if (entry !== undefined) entry.denied = (entry.denied ?? new Set()).add(member);
  }

  /** A delegate is being created in the member. An attempt under way keeps its time. */
  noteAttempt(proxyUid: string, member: string, now: number, parked = false): void {
    const entry = this.#entry(proxyUid);
    delete entry.promised;
    entry.room = member;
    this.#onPlace(proxyUid, member);
    dropBegun(entry, member);
    const earlier = entry.attempts.get(member);
    if (earlier !== undefined && earlier.refusal === undefined) return;
    const { refusals = 0, hurried } = earlier ?? {};
    const kept = { refusals, ...(hurried === true ? { hurried } : {}), ...(parked ? { parked } : {}) };
    entry.attempts.set(member, { since: now, ...kept });
  }

  /**
   * The attempt under way has failed with an error that may pass by itself; `refusing`: with a refusal of the pod itself. Returns when it
   * first did so; epoch ms.
   */
  noteFailing(proxyUid: string, member: string, now: number, refusing = false): number {
    const { attempts } = this.#entry(proxyUid);
    const attempt = attempts.get(member) ?? { since: now, refusals: 0 };
    const { failingSince = now, refusingSince = refusing ? now : undefined } = attempt;
    attempts.set(member, { ...attempt, failingSince, ...(refusingSince === undefined ? {} : { refusingSince }) });
    return refusing ? (refusingSince ?? now) : failingSince;
  }

  /** Something has ended in the member that refused the pod, which may ask again now: that it is refused once more changes nothing. */
  noteOpen(proxyUid: string, member: string, now: number): void {
    const attempts = this.#entries.get(proxyUid)?.attempts;
    const attempt = attempts?.get(member);
    if (attempt?.refusal === undefined) return;
    attempts?.set(member, { ...attempt, until: now, refusals: Math.max(0, attempt.refusals - 1), hurried: true });
  }

  /** Room is kept for the pod in this member. */
  notePromised(proxyUid: string, member: string): void {
    const entry = this.#entry(proxyUid);
    entry.promised = member;
    entry.room = member;
    this.#onPlace(proxyUid, member);
  }

  /** The member did not take the pod. Returns for how long it rests; ms. */
  noteRefusal(proxyUid: string, refusal: Refusal, nodesVersion: number, now: number, rest: Rest = "growing"): number {
    const entry = this.#entry(proxyUid);
    if (entry.room === refusal.cluster) this.#onPlace(proxyUid, undefined);
    const earlier = entry.attempts.get(refusal.cluster);
    const { since = now, refusals: before = 0, hurried: wasHurried = false } = earlier ?? {};
    const isBrief = rest === "brief" && !wasHurried;
    const refusals = before + (isBrief || rest === "steady" ? 0 : 1);
    const growingMs = Math.min(RETRY_AFTER_MAX_MS, RETRY_AFTER_MS * 2 ** Math.max(0, refusals - 1));
    const restMs = isBrief ? RETRY_SOON_MS : rest === "steady" ? RETRY_AFTER_MS : growingMs;
    const hurried = isBrief || wasHurried ? { hurried: true } : {};
    entry.attempts.set(refusal.cluster, { since, refusal, until: now + restMs, nodesVersion, refusals, ...hurried });
    return restMs;
  }

  /**
   * A create was sent: whatever its answer, the delegate may be there until the member has shown or denied it. One whose answer
   * was lost may be done even after a delegate that was there has been deleted: the attempt begins anew, so that no other
   * member is tried before that is over.
   */
  noteUncertain(proxyUid: string, member: string, lost?: { readonly at: number; readonly message: string }): void {
    const entry = this.#entry(proxyUid);
    if (lost !== undefined) {
      const { since = lost.at } = (entry.uncertain === member ? entry.doubt : undefined) ?? {};
      entry.doubt = { since, lastAt: lost.at, message: lost.message };
    }
    entry.uncertain = member;
    const attempt = entry.attempts.get(member);
    if (lost === undefined || attempt === undefined || attempt.refusal !== undefined) return;
    entry.attempts.set(member, { since: lost.at, refusals: attempt.refusals });
  }

  /** Notes that a Binding of the proxy to the node of a lost member is sent. */
  noteBinding(proxyUid: string, member: string): void {
    this.#entry(proxyUid).binding = member;
  }

  /** The member has made the delegate of this uid; nothing has been in the way since. */
  noteMade(proxyUid: string, member: string, delegateUid: string): void {
    this.noteUncertain(proxyUid, member);
    const entry = this.#entry(proxyUid);
    entry.made = delegateUid;
    const attempt = entry.attempts.get(member);
    if (attempt?.failingSince === undefined) return;
    const { failingSince: _, refusingSince: __, ...rest } = attempt;
    entry.attempts.set(member, rest);
  }

  /**
   * The member shows the delegate of a proxy that waits for it; one of an earlier leader's gets its time from now on. One that
   * `ends` without having had a node gives the proxy no place.
   */
  noteFound(proxyUid: string, member: string, now: number, ends = false): void {
    const entry = this.#entry(proxyUid);
    if (entry.uncertain === member) settle(entry);
    if (entry.promised === undefined && !ends) this.#onPlace(proxyUid, member);
    if (!entry.attempts.has(member)) entry.attempts.set(member, { since: now, refusals: 0 });
  }

  /** The member that was in doubt is known not to have the delegate. */
  noteAbsent(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    const entry = this.#entries.get(proxyUid);
    if (entry !== undefined) settle(entry);
  }

  /** The proxy has no place any more, nor a promise of one. */
  noteUnplaced(proxyUid: string): void {
    this.#onPlace(proxyUid, undefined);
    const entry = this.#entries.get(proxyUid);
    if (entry === undefined) return;
    delete entry.promised;
    dropBegun(entry);
  }

  /** A pod in overflow mode was not bound: it keeps what members have refused, and nothing else. */
  noteGivenUp(proxyUid: string): void {
    const { attempts } = this.of(proxyUid);
    const refused = [...attempts].filter(([, { refusal }]) => refusal !== undefined);
    this.#entries.delete(proxyUid);
    if (refused.length > 0) this.#entry(proxyUid).attempts = new Map(refused);
  }

  /** The author was told this; `reason` is absent where it was no reason to wait. */
  noteReported(proxyUid: string, told: { readonly reason?: string; readonly message: string }, now: number): void {
    const entry = this.#entry(proxyUid);
    entry.reported = told.message;
    entry.reportedAt = now;
    if (told.reason !== undefined) entry.reportedReason = told.reason;
  }

  /** The API server took the patch and kept what it had: not the same patch again for a while. */
  noteIneffective(proxyUid: string, patch: string, now: number): void {
    const entry = this.#entry(proxyUid);
    const patches = entry.ineffective ?? new Map<string, number>();
    for (const [known, until] of patches) if (until <= now) patches.delete(known);
    patches.set(patch, now + INEFFECTIVE_MS);
    entry.ineffective = patches;
  }

  /** Whether the author was told this last, in an event that is still there to be read. */
  isTold(proxyUid: string, message: string, now: number): boolean {
    const { reported, reportedAt = 0 } = this.of(proxyUid);
    return reported === message && now < reportedAt + TOLD_FOR_MS;
  }

  /** Whether that is not to be tried now. */
  isIneffective(proxyUid: string, patch: string, now: number): boolean {
    return isIneffective(this.of(proxyUid), patch, now);
  }

  /** The member does not take this resize of the delegate. */
  noteRefusedResize(proxyUid: string, resize: Omit<RefusedResize, "until">, now: number): void {
    this.#entry(proxyUid).resize = { ...resize, until: now + INEFFECTIVE_MS };
  }

  /** The member has taken what was to be resized. */
  noteResized(proxyUid: string): void {
    delete this.#entries.get(proxyUid)?.resize;
  }

  /** A write for the pod is refused; true when the author has not been told so, or not lately. */
  noteRefused(proxyUid: string, what: string, refused: RefusedSince, now: number): boolean {
    const entry = this.#entry(proxyUid);
    const before = entry.refused?.get(what);
    const isNews = before === undefined || toldNow(refused.message, before, now) !== before;
    const since = before?.since ?? refused.since;
    const told = isNews ? { ...refused, since, at: now } : before;
    entry.refused = new Map(entry.refused).set(what, { ...told, until: now + REFUSED_UNTIL_MS });
    return isNews;
  }

  /** The write has failed with an answer that is no lasting refusal. Returns since when it goes on doing so; epoch ms. */
  noteFailingWrite(proxyUid: string, what: string, now: number): number {
    const entry = this.#entry(proxyUid);
    const before = entry.failing?.get(what);
    const since = before === undefined || now >= before.lastAt + FAILING_FORGOTTEN_MS ? now : before.since;
    entry.failing = new Map(entry.failing).set(what, { since, lastAt: now });
    return since;
  }

  /** The write does not go on failing. */
  noteAnswered(proxyUid: string, what: string): void {
    this.#entries.get(proxyUid)?.failing?.delete(what);
  }

  /** The write is done; true when it had been refused. */
  noteTaken(proxyUid: string, what: string): boolean {
    this.noteAnswered(proxyUid, what);
    return this.#entries.get(proxyUid)?.refused?.delete(what) ?? false;
  }

  /** The member was asked for the delegate of this uid, and does not have it. */
  noteGone(proxyUid: string, delegateUid: string): void {
    this.#entry(proxyUid).gone = delegateUid;
  }

  /** This was written of it or of its delegate; true when somebody has undone it so often that it is to be left so for a while. */
  noteWritten(proxyUid: string, wanted: Wanted, now: number): boolean {
    return this.#rewrites.note(proxyUid, wanted, now);
  }

  /** The proxy is bound or gone: nothing of its search for a member matters any more. */
  forget(proxyUid: string): void {
    this.#entries.delete(proxyUid);
  }

  #entry(proxyUid: string): Entry {
    let entry = this.#entries.get(proxyUid);
    if (entry === undefined) {
      entry = { fresh: true, attempts: new Map() };
      this.#entries.set(proxyUid, entry);
    }
    return entry;
  }
}

/** Nothing is left to be found out. */
function settle(entry: Entry): void {
  delete entry.uncertain;
  delete entry.doubt;
}

/** An attempt that is over without a refusal begins anew when it comes to that member again; of a creation in doubt nobody knows that it is over. */
function dropBegun(entry: Entry, except?: string): void {
  for (const [member, { refusal }] of entry.attempts) {
    if (member !== except && refusal === undefined && member !== entry.uncertain) entry.attempts.delete(member);
  }
}
