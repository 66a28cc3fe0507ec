import { type Job, type ObjectKey, objectKey, objectRef, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { type JobShare, membersOfJob, sharesOf } from "../../../copies/job-shares.ts";
import { isFinished, WHOLE_JOB } from "../../../copies/jobs.ts";
import type { Source } from "../../../copies/source.ts";
import { findByList } from "../../../kube/list.ts";
import { jobs } from "../../../kube/resources.ts";
import { explain } from "../../../placement/rank.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import { Controller } from "../../../runtime/controller.ts";
import type { Events } from "../../../runtime/event-bus.ts";
import { PacedResync } from "../../../runtime/paced-resync.ts";
import { WriteGuard } from "../../../runtime/write-guard.ts";
import { choiceFor, isDivided, type JobRules, mayHave } from "../../../scheduling/whole/job-choice.ts";
import { Copier } from "../../copying/copier.ts";
import type { CopyRef } from "../../copying/model.ts";
import type { PodCopierOptions } from "../../copying/pod-copier.ts";
import type { ControllerEvents } from "../../events.ts";
import type { RestoredHost } from "../../restored-host.ts";
import { Executor } from "../execute.ts";
import { LOOK_AGAIN_MS } from "../model.ts";
import { decide } from "./decide.ts";
import { demandFor, forCopy, isWantedIn, JobsInMembers } from "./job-in-member.ts";
import type { JobAction, Observed, Place } from "./model.ts";
import { JOB_WRITES } from "./writes.ts";

export interface WholeJobOptions extends Omit<PodCopierOptions, "proxies" | "events"> {
  readonly events: Events<ControllerEvents>;
  readonly restoredHost: RestoredHost;
  readonly rules: JobRules;
}

const { kind: KIND } = WHOLE_JOB.resource;
const MEMBER_INDEX = "member";
// A copy that the host has after all, or that an operator has to look at, is asked for again.
const KEPT_MS = 60_000;
// The first list of a member's Jobs is read within this time after the member answers, its types and a retry included.
const FIRST_LIST_MS = 10_000;

/**
 * Runs Jobs whole in members: gives each to one member, or divides it over several, whose own Job controllers make its pods, and
 * writes the status back. The copier creates, changes and deletes the copies.
 */
export class WholeJobController {
  readonly #options: WholeJobOptions;
  readonly #copier: Copier<Job>;
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #loop: Controller<ObjectKey, Observed, JobAction>;
  /** The status and record that were last sent of each Job. Losing them costs one write. */
  readonly #sent = new Map<ObjectKey, NonNullable<Observed["sent"]>>();
  readonly #inMembers: JobsInMembers;
  /** Ranks Jobs without a member anew, behind all others. */
  readonly #waiting: PacedResync<ObjectKey>;

  constructor(options: WholeJobOptions) {
    this.#options = options;
    const { host, registry, recorder, events, clock } = options;
    this.#guard = new WriteGuard({ clock });
    this.#inMembers = new JobsInMembers(options.rules);
    this.#copier = new Copier<Job>({
      ...options,
      name: "whole-job-copies",
      kinds: [WHOLE_JOB],
      clause: "",
      users: {
        areKnown: () => this.#copier.sources.isRead(KIND, ""),
        use: ({ name }, _ref, source) => ({
          demand: source.state === "present" ? demandFor(source.object, name) : "kept",
        }),
        anyNeeds: () => true,
        sourceFor: (member, ref, source) => this.#sourceFor(member, ref, source),
        onCopy: (_member, name) => this.#loop.enqueue(objectKey(name)),
        onSource: (_kind, { metadata }) => this.#loop.enqueue(objectKey(metadata)),
        onSources: () => this.#onRead(),
        onMember: (member) => this.#enqueueWithCopies(member.name),
        onMemberState: (member) => this.#enqueueOf(member.name),
      },
      indexes: { [MEMBER_INDEX]: membersOrNone },
      beforeDelete: (member, ref, { copy, signal }) => this.#keptFor(member, ref, { copy, signal }),
    });
    const executor = new Executor(JOB_WRITES, {
      host,
      identity: options.identity,
      registry,
      recorder,
      guard: this.#guard,
      onStatus: (key, shown) => this.#sent.set(key, { at: clock.now(), shown }),
      onReport: () => this.#waiting.request(LOOK_AGAIN_MS),
    });
    this.#loop = new Controller<ObjectKey, Observed, JobAction>(
      {
        name: "whole-jobs",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => executor.execute(action, context),
      },
      options,
    );
    this.#waiting = new PacedResync({
      clock,
      keys: () => this.#jobsOf("").map(({ metadata }) => objectKey(metadata)),
      reconcile: (keys, done) => this.#loop.enqueueBehind(keys, done),
    });
    events.on("cluster", (name) => {
      this.#copier.onMembers();
      this.#enqueueWithCopies(name);
      this.#waiting.request(0);
    });
    events.on("connection", (member) => {
      if (member.reachable) this.#copier.onMember(member);
      this.#waiting.request(0);
    });
    events.on("nodeSpec", () => this.#waiting.request(0));
    events.on("defaultsChanged", () => {
      this.#inMembers.reset();
      this.#waiting.request(0);
    });
  }

  start(): void {
    this.#copier.sources.need(KIND, "");
    this.#copier.onMembers();
  }

  async stop(): Promise<void> {
    this.#waiting.stop();
    await this.#copier.stop();
    await this.#loop.stop();
  }

  #onRead(): void {
    for (const member of this.#options.registry.members()) this.#copier.onMember(member);
    this.#waiting.request(0);
  }

  /** Overrides may fit a member whose labels changed. */
  #enqueueWithCopies(member: string): void {
    for (const job of this.#jobsOf(member)) this.#copier.enqueue({ member, ...this.#copier.nameOf(KIND, job) });
    this.#enqueueOf(member);
  }

  #enqueueOf(member: string): void {
    for (const { metadata } of this.#jobsOf(member)) this.#loop.enqueue(objectKey(metadata));
  }

  #jobsOf(member: string): Stored<Job>[] {
    return this.#copier.sources.byIndex(KIND, "", { index: MEMBER_INDEX, value: member });
  }

  /** Gives the Job to the member on record alone, with the author's overrides. */
  #sourceFor(member: Member, { namespace, name }: CopyRef, source: Source<Job>): Source<Job> {
    if (source.state !== "present") return source;
    const job = source.object;
    if (!isWantedIn(job, member.name)) return { state: "missing" };
    const given = this.#inMembers.of(job, member.candidate());
    if (given.state !== "present") return given;
    const object = forCopy(given.object, this.#copier.copies.of(member, KIND, namespace, name));
    return object === given.object ? given : { state: "present", object };
  }

  #observe(key: ObjectKey): Observed | undefined {
    const { name, namespace = "" } = objectRef(key);
    const source = this.#copier.sources.of({ kind: KIND, namespace, name });
    if (source.state !== "present") {
      if (source.state === "missing") {
        this.#guard.forget(key);
        this.#sent.delete(key);
      }
      return undefined;
    }
    const job = source.object;
    const shares = sharesOf(job);
    const known = shares ?? membersOfJob(job).map((member) => ({ member }));
    const places = known.map((share) => this.#placeOf(job, share, { kind: KIND, namespace, name }));
    const isPlaced = places.length > 0 && places.every(({ refusal }) => refusal === undefined);
    const sent = this.#sent.get(key);
    const held = this.#guard.of(key);
    return {
      object: job,
      places,
      ...(shares === undefined ? { isUnreadable: true } : {}),
      ...(isPlaced || isFinished(job) ? {} : { choice: this.#choiceFor(job, places) }),
      ...(sent === undefined ? {} : { sent }),
      ...(held === undefined ? {} : { held }),
    };
  }

  #placeOf(job: Stored<Job>, share: JobShare, name: Omit<CopyRef, "member">): Place {
    const { member: recorded } = share;
    const { registry } = this.#options;
    const member = registry.member(recorded);
    if (member === undefined) {
      return { member: recorded, share, state: registry.cluster(recorded) === undefined ? "gone" : "silent" };
    }
    const copy = this.#copier.copies.of(member, KIND, name.namespace, name.name);
    const { refusal, refusedUntil, held } = this.#copier.standing(member, name);
    const given = copy === undefined ? this.#copier.sourceFor(member, name) : undefined;
    // Another version of the Job is sent at once, whatever was refused before.
    const isRefused = held === "Refused" && refusal?.isUncertain === false;
    const isChanging = this.#copier.isChanging(member, name);
    const settlesAt = copy === undefined ? this.#copier.settlesAt(member, name) : undefined;
    return {
      member: recorded,
      share,
      state: member.reachable && this.#copier.copies.isCurrent(member) ? "usable" : "silent",
      ...(copy === undefined || ownerOf(copy)?.uid !== job.metadata.uid ? {} : { copy }),
      ...(isChanging ? { isChanging } : {}),
      ...(settlesAt === undefined ? {} : { settlesAt }),
      ...(given?.state === "unknown" && given.message !== undefined ? { problem: given.message } : {}),
      ...(isRefused && refusedUntil !== undefined
        ? { refusal: { message: refusal.message, until: refusedUntil } }
        : {}),
    };
  }

  #choiceFor(job: Stored<Job>, places: readonly Place[]): NonNullable<Observed["choice"]> {
    const { rules, registry } = this.#options;
    const candidates = registry.members().map((member) => member.candidate());
    const mayMoveTo = (name: string): boolean => places.length > 0 && places.every(({ member }) => member !== name);
    const isAwaited = (name: string): boolean => places.length === 0 && isDivided(job) && this.#isBeingRead(name);
    const unread = (name: string): string | undefined => {
      if (isAwaited(name)) return undefined;
      return this.#unread(name) ?? (mayMoveTo(name) ? this.#refusedBy(name, job) : undefined);
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
    return {
      fitting,
      why: explain(ranking.refusals),
      ...(preferences === undefined ? {} : { preferences }),
      ...(awaits ? { awaits } : {}),
    };
  }

  /** Reports whether the member, or its Jobs, are being read, and nothing indicates that this fails. */
  #isBeingRead(name: string): boolean {
    const member = this.#options.registry.member(name);
    if (member === undefined) return false;
    if (member.syncing) return true;
    const { copies } = this.#copier;
    if (!member.reachable || copies.read(member)) return false;
    // A list that failed before the member answered is tried again at once.
    const isFirst = this.#options.clock.now() < member.reachableSince + FIRST_LIST_MS;
    return isFirst || copies.isBeingRead(member);
  }

  #unread(name: string): string | undefined {
    const member = this.#options.registry.member(name);
    if (member === undefined || this.#copier.copies.read(member)) return undefined;
    const reason = this.#copier.copies.failing(member);
    const remedy = "if this lasts, let it join again, since an earlier version was not given access to Jobs";
    return `its Jobs cannot be read yet${reason === undefined ? "" : ` (${reason})`}; ${remedy}`;
  }

  /** Returns why the member refused the Job a while ago: without this, a Job that two members refuse would go to and fro. */
  #refusedBy(name: string, job: Stored<Job>): string | undefined {
    const member = this.#options.registry.member(name);
    if (member === undefined) return undefined;
    const { refusal, refusedUntil = 0 } = this.#copier.standing(member, this.#copier.nameOf(KIND, job));
    const isRefused = refusal?.isUncertain === false && this.#options.clock.now() < refusedUntil;
    return isRefused ? refusal.message : undefined;
  }

  /** Asks the host whether the Job of a copy is gone, or has another member. Returns for how long the copy stays; ms. */
  async #keptFor(
    member: Member,
    ref: CopyRef,
    { copy, signal }: { readonly copy: Stored<Job>; readonly signal: AbortSignal },
  ): Promise<number | undefined> {
    const { host, restoredHost } = this.#options;
    const found = await findByList(host, jobs, ref, signal);
    if (found === undefined) {
      if (restoredHost.keeps(member.name, "a Job", copy.metadata)) return KEPT_MS;
      await restoredHost.confirm(member.name, jobs.plural, signal);
      return undefined;
    }
    return found.metadata.uid === ownerOf(copy)?.uid && isWantedIn(found, member.name) ? KEPT_MS : undefined;
  }
}

function membersOrNone(job: Job): readonly string[] {
  const members = membersOfJob(job);
  return members.length === 0 ? [""] : members;
}
