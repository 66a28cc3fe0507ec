import { type Amounts, addAmounts, exceeds } from "../api/quantity.ts";
import { percent } from "../api/wording.ts";
import type { Candidate, Refusal, Rule } from "./candidate.ts";
import { notEnoughLeft, tooLarge, type Why } from "./refusal-messages.ts";
import type { RequestMutation } from "./requests.ts";

/** Members for one pod, best first. */
export interface Ranking {
  readonly fitting: readonly string[];
  /** Members that fit but lack room, the least overfull first: the pod may wait there. */
  readonly full: readonly string[];
  /** Full members whose scheduler may preempt this host's pods for it. */
  readonly preemptable: readonly string[];
  /** The best member if its API server were not late: worth a short wait. */
  readonly awaited?: string;
  /** Refusals of all other members, full ones included. */
  readonly refusals: readonly Refusal[];
}

export interface RankInput {
  readonly requests: Amounts;
  readonly requestsIn?: (candidate: Candidate) => Amounts;
  /** Returns the requests that a member's admission makes of the pod's; `requestsIn` has them. Undefined: none are known. */
  readonly mutationIn?: (candidate: Candidate) => RequestMutation | undefined;
  /** The pod's priority. Undefined if it preempts no pods. */
  readonly priority?: number;
  /** Returns why a member that has room for the pod lacks room for those that start with it. Absent: the pod starts alone. */
  readonly gangShortage?: (candidate: Candidate) => Why | undefined;
  /** The first rule that filters a member gives the reason; earlier scores outrank later ones. */
  readonly rules?: readonly Rule[];
  readonly candidates: readonly Candidate[];
  /** Returns what a rule refuses a member for, which may change while the member does not. Absent: nothing. */
  readonly lackIn?: (candidate: Candidate) => string | undefined;
  /** The last ranking for equal pods. Absent: the pod's place depends on more than its shape and the members. */
  readonly shared?: SharedRanking | undefined;
}

/** The last ranking for pods of which a member takes all or none. `rank` judges anew only the members that changed. */
export interface SharedRanking {
  readonly judged: Judged[];
  /** The candidate of which each was judged. Undefined: it changes in place, and is judged each time. */
  readonly current: (Candidate | undefined)[];
  readonly lacks: (string | undefined)[];
  readonly fitting: SortedMembers;
  readonly full: SortedMembers;
  ranking: Ranking;
}

/** Returns the ranking of no members. */
export function nothingRanked(): SharedRanking {
  const ranking = { fitting: [], full: [], preemptable: [], refusals: [] };
  return { judged: [], current: [], lacks: [], fitting: new SortedMembers(), full: new SortedMembers(), ranking };
}

/** Ranks members: prompt ones first, then by the rules' scores, then those whose other tenants were read, then by load. */
export function rank(input: RankInput): Ranking {
  const { candidates, lackIn, rules = [], shared = nothingRanked() } = input;
  const { judged, fitting, full } = shared;
  const sortedWith = ({ refusal }: Scored): SortedMembers => (refusal === undefined ? fitting : full);
  const anew: JudgedAnew[] = [];
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index];
    if (candidate === undefined) continue;
    const lack = lackIn?.(candidate);
    // Few of a thousand members have changed, and the others are not even looked at.
    if (shared.current[index] === candidate && shared.lacks[index] === lack) continue;
    anew.push({ index, candidate, lack, now: judge(candidate, input) });
  }
  const gone = judged.splice(candidates.length);
  if (anew.length === 0 && gone.length === 0) return shared.ranking;
  const before = [...gone, ...anew.flatMap(({ index }) => judged[index] ?? [])];
  for (const one of before) if (isScored(one)) sortedWith(one).delete(one);
  for (const { index, candidate, lack, now } of anew) {
    if (isScored(now)) sortedWith(now).add(now);
    judged[index] = now;
    shared.lacks[index] = lack;
    shared.current[index] = candidate.tracked === true ? candidate : undefined;
  }
  const areRefusalsNew = [...before, ...anew.map(({ now }) => now)].some(({ refusal }) => refusal !== undefined);
  const awaited = awaitedOf(fitting.members, rules);
  shared.ranking = {
    fitting: [...fitting.names],
    full: [...full.names],
    preemptable: full.members.filter(({ mayMakeRoom }) => mayMakeRoom).map(nameOf),
    ...(awaited === undefined ? {} : { awaited: awaited.name }),
    refusals: areRefusalsNew ? judged.flatMap(({ refusal }) => refusal ?? []) : shared.ranking.refusals,
  };
  return shared.ranking;
}

/** A member as it was judged for a pod. */
interface Judged {
  /** Undefined: the member has room. */
  readonly refusal: Refusal | undefined;
}

interface JudgedAnew {
  readonly index: number;
  readonly candidate: Candidate;
  readonly lack: string | undefined;
  readonly now: Judged;
}

/** A member that no rule refuses; one without room has a refusal. */
interface Scored extends Judged, Score {
  readonly mayMakeRoom: boolean;
}

function isScored(judged: Judged): judged is Scored {
  return "scores" in judged;
}

/** Members, best first. */
class SortedMembers {
  readonly members: Scored[] = [];
  readonly names: string[] = [];

  add(member: Scored): void {
    const index = this.#indexOf(member);
    this.members.splice(index, 0, member);
    this.names.splice(index, 0, member.name);
  }

  delete(member: Scored): void {
    const index = this.#indexOf(member);
    this.members.splice(index, 1);
    this.names.splice(index, 1);
  }

  /** Returns where the member is, or has to be. */
  #indexOf(member: Scored): number {
    let [from, to] = [0, this.members.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const other = this.members[middle];
      if (other !== undefined && byPreference(other, member) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function judge(candidate: Candidate, input: RankInput): Judged | Scored {
  const { requests: written, requestsIn, mutationIn, gangShortage, rules = [] } = input;
  const { name: cluster, closed } = candidate;
  const refused = firstRefusal(rules, candidate) ?? closed;
  if (refused !== undefined) return { refusal: { cluster, ...refused } };
  const requests = requestsIn?.(candidate) ?? written;
  const own = shortageOf(requests, candidate, mutationIn?.(candidate));
  const shortage = own?.reason === "TooLarge" ? own : (gangShortage?.(candidate) ?? own);
  const refusal = shortage && { cluster, ...shortage };
  const mayRoom = refusal !== undefined && mayMakeRoom(requests, input, candidate);
  return { ...scoreOf(candidate, requests, rules), refusal, mayMakeRoom: mayRoom };
}

/** Returns the best by scores alone, if it is late. Late ones are sorted last. */
function awaitedOf(fitting: readonly Score[], rules: readonly Rule[]): Score | undefined {
  if (fitting.at(-1)?.overdue !== true || !rules.some(({ awaits = false }) => awaits)) return undefined;
  const best = fitting.reduce((first, one) => (byMerit(one, first) < 0 ? one : first));
  return best.overdue ? best : undefined;
}

interface Score {
  readonly name: string;
  readonly overdue: boolean;
  readonly scores: readonly number[];
  readonly guessed: boolean;
  readonly load: number;
  readonly pods: number;
}

function scoreOf(candidate: Candidate, requests: Amounts, rules: readonly Rule[]): Score {
  const { name, overdue = false, used, foreign } = candidate;
  const scores = rules.map(({ score }) => score?.(candidate) ?? 0);
  const guessed = foreign === undefined;
  return { name, overdue, scores, guessed, load: loadOf(requests, candidate), pods: used.pods ?? 0 };
}

/** Explains why the other members that fit do not get the pod. */
export function behindBest(
  input: RankInput,
  { fitting }: Ranking,
  best: string,
): { readonly cluster: string; readonly reason: string; readonly message: string }[] {
  const better = input.candidates.find(({ name }) => name === best);
  return input.candidates.flatMap((candidate) => {
    const { name: cluster } = candidate;
    if (better === undefined || cluster === best || !fitting.includes(cluster)) return [];
    return [{ cluster, reason: "LessPreferred", message: whyBehind(input, candidate, better) }];
  });
}

export function whyBehind(input: RankInput, candidate: Candidate, better: Candidate): string {
  const { requests, requestsIn, rules = [] } = input;
  const own = scoreOf(candidate, requestsIn?.(candidate) ?? requests, rules);
  const other = scoreOf(better, requestsIn?.(better) ?? requests, rules);
  const { name } = better;
  if (own.overdue !== other.overdue) return "its API server is late to answer";
  const rule = own.scores.findIndex((score, index) => score !== other.scores[index]);
  if (rule !== -1) return `${name} is better by ${rules[rule]?.concern ?? "a rule"}`;
  if (own.guessed !== other.guessed) return "what others' pods request there is not known yet";
  if (own.load !== other.load) return roomier(name, percent(own.load), percent(other.load));
  return own.pods === other.pods ? `is as good as ${name}` : `has more pods than ${name}`;
}

function roomier(name: string, own: string, its: string): string {
  if (own === its) return `${name} has slightly more room`;
  return `${name} has more room: with the pod it would be ${its} full, and this member ${own}`;
}

const nameOf = ({ name }: Score): string => name;

function byPreference(a: Score, b: Score): number {
  if (a.overdue !== b.overdue) return a.overdue ? 1 : -1;
  return byMerit(a, b);
}

function byMerit(a: Score, b: Score): number {
  const byKnown = Number(a.guessed) - Number(b.guessed);
  return byScores(a.scores, b.scores) || byKnown || a.load - b.load || a.pods - b.pods || (a.name < b.name ? -1 : 1);
}

function byScores(a: readonly number[], b: readonly number[]): number {
  for (let rule = 0; rule < a.length; rule += 1) {
    const score = a[rule] ?? 0;
    const other = b[rule] ?? 0;
    if (score !== other) return score > other ? -1 : 1;
  }
  return 0;
}

function firstRefusal(rules: readonly Rule[], candidate: Candidate): Why | undefined {
  for (const { filter } of rules) {
    const refused = filter?.(candidate);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function loadOf(requests: Amounts, { used, foreign = {}, allocatable }: Candidate): number {
  let load = 0;
  for (const resource in requests) {
    const wanted = requests[resource] ?? 0;
    if (wanted === 0) continue;
    const has = allocatable[resource] ?? 0;
    load = Math.max(
      load,
      has === 0 ? Number.MAX_VALUE : ((used[resource] ?? 0) + (foreign[resource] ?? 0) + wanted) / has,
    );
  }
  return load;
}

/** Reports whether a member has room for the requests, as far as known. */
export function hasRoom(requests: Amounts, candidate: Candidate): boolean {
  return shortageOf(requests, candidate) === undefined;
}

/** Reports whether preempting this host's pods of lower priority makes enough room. */
function mayMakeRoom(
  requests: Amounts,
  { priority, gangShortage }: Pick<RankInput, "priority" | "gangShortage">,
  candidate: Candidate,
): boolean {
  if (priority === undefined || candidate.preemptible === undefined) return false;
  const used = { ...candidate.used };
  addAmounts(used, candidate.preemptible(priority), -1);
  const without = { ...candidate, used };
  return hasRoom(requests, without) && gangShortage?.(without) === undefined;
}

/** Reports whether this host's pods in a member, the one with these requests among them, request more than its nodes have. */
export function isOverfull(requests: Amounts, candidate: Candidate): boolean {
  const used = { ...candidate.used };
  addAmounts(used, requests, -1);
  return !hasRoom(requests, { ...candidate, used });
}

function shortageOf(requests: Amounts, candidate: Candidate, mutation?: RequestMutation): Why | undefined {
  const { allocatable, largestNode, used } = candidate;
  for (const resource in requests) {
    const wanted = requests[resource] ?? 0;
    if (wanted === 0) continue;
    const largest = largestNode[resource] ?? 0;
    if (exceeds(wanted, largest)) return tooLarge({ resource, wanted, mutation, largest });
    const left = (allocatable[resource] ?? 0) - (used[resource] ?? 0);
    if (exceeds(wanted, left)) return notEnoughLeft({ resource, wanted, mutation, left });
  }
  return undefined;
}

/** Formats refusals for a condition or event: `west: cpu: 4 requested, 2 left; east: not selected`. */
export function explain(refusals: readonly Pick<Refusal, "cluster" | "message">[]): string {
  if (refusals.length === 0) return "no member cluster has joined: see `legation join`";
  return [...refusals]
    .sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
    .map(({ cluster, message }) => `${cluster}: ${message}`)
    .join("; ");
}
