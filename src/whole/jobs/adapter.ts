import { defined } from "../../api/defined.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { Copier } from "../../controllers/copying/copier.ts";
import { copyIn, type KnownCopies, type WholeAdapter } from "../../controllers/whole/adapter.ts";
import type { Observed as Known } from "../../controllers/whole/model.ts";
import type { Source } from "../../copies/source.ts";
import { explain } from "../../placement/rank.ts";
import { ownerOf } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import { asksForShares, choiceFor, type JobRules, mayHave } from "./choice.ts";
import { decide } from "./decide.ts";
import { demandFor, forCopy, isWantedIn, JobsInMembers } from "./in-member.ts";
import { isFinished, WHOLE_JOB, waitsInMember } from "./kind.ts";
import type { JobMember, Observed, Shown } from "./model.ts";
import { type JobShare, membersOfJob, sharesOf } from "./shares.ts";
import { JOBS } from "./type.ts";
import { JOB_WRITES } from "./writes.ts";

export interface JobAdapterOptions {
  readonly rules: JobRules;
  readonly registry: Pick<Registry, "member" | "members" | "cluster">;
  readonly clock: Pick<Clock, "now">;
}

const { kind: KIND } = WHOLE_JOB.resource;
// The first list of a member's Jobs is read within this time after the member answers, its types and a retry included.
const FIRST_LIST_MS = 10_000;

/** Gives each Job to one member, or divides it over several, whose own Job controllers make its pods. */
export class JobAdapter implements WholeAdapter<Job, readonly JobShare[], Shown, Observed> {
  readonly names: typeof JOBS.names = JOBS.names;
  readonly writes: typeof JOB_WRITES = JOB_WRITES;
  readonly replacesCopies = false;
  readonly membersOnRecord: typeof membersOfJob = membersOfJob;
  readonly demandFor: typeof demandFor = demandFor;
  readonly decide: typeof decide = decide;
  readonly #options: JobAdapterOptions;
  readonly #inMembers: JobsInMembers;

  constructor(options: JobAdapterOptions) {
    this.#options = options;
    this.#inMembers = new JobsInMembers(options.rules);
  }

  /** Gives the Job to the members on record alone, with the author's overrides. */
  sourceFor(job: Stored<Job>, member: Member, { copies }: KnownCopies<Job>): Source<Job> {
    if (!isWantedIn(job, member.name)) return { state: "missing" };
    const given = this.#inMembers.of(job, member.candidate());
    if (given.state !== "present") return given;
    const { namespace = "", name } = job.metadata;
    const object = forCopy(given.object, copies.of(member, KIND, namespace, name));
    return object === given.object ? given : { state: "present", object };
  }

  reset(): void {
    this.#inMembers.reset();
  }

  isWantedIn(job: Stored<Job>, { name }: Member): boolean {
    return isWantedIn(job, name);
  }

  isTakenBack(found: Stored<Job> | undefined): boolean {
    return found !== undefined;
  }

  observe(known: Known<Job, Shown>, copier: Copier<Job>): Observed {
    const { object: job } = known;
    const shares = sharesOf(job);
    const onRecord = shares ?? membersOfJob(job).map((member) => ({ member }));
    const places = onRecord.map((share) => this.#placeOf(job, share, copier));
    const isPlaced = places.length > 0 && places.every(({ refusal }) => refusal === undefined);
    return {
      ...known,
      places,
      ...(shares === undefined ? { isUnreadable: true } : {}),
      ...(isPlaced || isFinished(job) ? {} : { choice: this.#choiceFor(job, places, copier) }),
    };
  }

  #placeOf(job: Stored<Job>, share: JobShare, copier: Copier<Job>): JobMember {
    const { member: recorded } = share;
    const { registry } = this.#options;
    const member = registry.member(recorded);
    if (member === undefined) {
      return { member: recorded, share, state: registry.cluster(recorded) === undefined ? "gone" : "silent" };
    }
    const name = copier.nameOf(KIND, job);
    const { found, isUsable, refusal, refusedUntil, held } = copyIn(copier, member, name);
    const given = found === undefined || waitsInMember(job, found) ? copier.sourceFor(member, name) : undefined;
    // Another version of the Job is sent at once, whatever was refused before.
    const isRefused = held === "Refused" && refusal?.isUncertain === false;
    const settlesAt = found === undefined ? copier.settlesAt(member, name) : undefined;
    return {
      member: recorded,
      share,
      state: isUsable ? "usable" : "silent",
      ...defined({ copy: found && ownerOf(found)?.uid === job.metadata.uid ? found : undefined, settlesAt }),
      ...(copier.isChanging(member, name) ? { isChanging: true } : {}),
      ...defined({ problem: given?.state === "unknown" ? given.message : undefined }),
      ...(isRefused && refusedUntil !== undefined
        ? { refusal: { message: refusal.message, until: refusedUntil } }
        : {}),
    };
  }

  #choiceFor(job: Stored<Job>, places: readonly JobMember[], copier: Copier<Job>): NonNullable<Observed["choice"]> {
    const { rules, registry } = this.#options;
    const candidates = registry.members().map((member) => member.candidate());
    const isNew = places.length === 0;
    const isAwaited = (name: string): boolean => isNew && asksForShares(job) && this.#isBeingRead(name, copier);
    const unread = (name: string): string | undefined => {
      const member = registry.member(name);
      if (member === undefined || isAwaited(name)) return undefined;
      const mayMoveTo = !isNew && places.every((place) => place.member !== name);
      return whyUnread(member, copier) ?? (mayMoveTo ? this.#refusedBy(member, job, copier) : undefined);
    };
    const choice = choiceFor(job, { rules, candidates, unread });
    if ("problem" in choice) return { fitting: [], why: choice.problem };
    const { ranking, preferences } = choice;
    const fitting = mayHave(ranking);
    const reasons = new Map(ranking.refusals.map(({ cluster, reason }) => [cluster, reason]));
    const awaits = candidates.some(({ name, closed }) => {
      const isClosedAlone = closed !== undefined && reasons.get(name) === closed.reason;
      return isAwaited(name) && (isClosedAlone || fitting.includes(name));
    });
    return { fitting, why: explain(ranking.refusals), ...defined({ preferences }), ...(awaits ? { awaits } : {}) };
  }

  /** Reports whether the member, or its Jobs, are being read, and nothing indicates that this fails. */
  #isBeingRead(name: string, { copies }: Copier<Job>): boolean {
    const member = this.#options.registry.member(name);
    if (member === undefined) return false;
    if (member.syncing) return true;
    if (!member.reachable || copies.read(member)) return false;
    // A list that failed before the member answered is tried again at once.
    const isFirst = this.#options.clock.now() < member.reachableSince + FIRST_LIST_MS;
    return isFirst || copies.isBeingRead(member);
  }

  /** Returns why the member refused the Job a while ago: without this, a Job that two members refuse would go to and fro. */
  #refusedBy(member: Member, job: Stored<Job>, copier: Copier<Job>): string | undefined {
    const { refusal, refusedUntil = 0 } = copier.standing(member, copier.nameOf(KIND, job));
    const isRefused = refusal?.isUncertain === false && this.#options.clock.now() < refusedUntil;
    return isRefused ? refusal.message : undefined;
  }
}

function whyUnread(member: Member, { copies }: Copier<Job>): string | undefined {
  if (copies.read(member)) return undefined;
  const reason = copies.failing(member);
  const remedy = "if this lasts, let it join again, since an earlier version was not given access to Jobs";
  return `its Jobs cannot be read yet${reason === undefined ? "" : ` (${reason})`}; ${remedy}`;
}
