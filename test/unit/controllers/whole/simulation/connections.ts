import type { Member } from "../../../../../src/clusters/member.ts";
import type { ControllerEvents } from "../../../../../src/controllers/events.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import type { Candidate } from "../../../../../src/placement/candidate.ts";
import type { Events } from "../../../../../src/runtime/event-bus.ts";
import type { Fate } from "../../../../support/api-server/client.ts";
import { candidateNamed } from "../../../../support/builders/candidate.ts";
import { member, withState } from "../../../../support/builders/member.ts";
import type { FakeClock } from "../../../../support/clock/fake-clock.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { MEMBERS, type MemberName } from "./rules.ts";

export interface ConnectionOptions {
  readonly clusters: Readonly<Record<MemberName, SimulatedCluster>>;
  readonly labels: Readonly<Record<MemberName, Readonly<Record<string, string>>>>;
  readonly random: () => number;
  readonly clock: FakeClock;
  readonly log: (line: string) => void;
  readonly emit: Emit;
}

/** Tells the controller of a Cluster, by name, or of a member's connection. */
export type Emit = Events<ControllerEvents>["emit"];

interface Connection {
  /** The member answers requests. */
  answers: boolean;
  /** The Cluster exists. */
  joined: boolean;
  /** When its pods are watched again, epoch ms: until then it counts as one that does not answer, and is not lost. */
  falteringUntil: number;
  /** When it was last lost, or without a Cluster; epoch ms. */
  absentAt: number;
  /** Grows with each change, so that a pause ends nothing that began later. */
  changes: number;
}

// Of a member that a decision took for lost, the write that follows may be done this much later.
const WRITE_ENDS_MS = 2_000;

/** The members as their controller sees them: answering, faltering, lost, leaving and joining, and watches with gaps. */
export class Connections {
  readonly #options: ConnectionOptions;
  readonly #connections = Object.fromEntries(
    MEMBERS.map((name) => [
      name,
      { answers: true, joined: true, falteringUntil: 0, absentAt: Number.NEGATIVE_INFINITY, changes: 0 },
    ]),
  ) as unknown as Readonly<Record<MemberName, Connection>>;
  /** When the gap of each watch ends, epoch ms, and whether lists fail until then. */
  readonly #gaps = new Map<string, { readonly until: number; readonly isUnlistable: boolean }>();
  readonly #connected: Member[] = [];
  #connect: (name: MemberName) => ClusterClient = () => {
    throw new Error("no controller runs");
  };

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The members with a Cluster. */
  get members(): readonly Member[] {
    return this.#connected;
  }

  answers(name: MemberName): boolean {
    return this.#connections[name].answers;
  }

  /** Reports whether a release had to wait for the member. */
  isAwaited(name: MemberName): boolean {
    const connection = this.#connections[name];
    if (this.#of(name) === undefined || this.#of(name)?.lost === true) return false;
    return this.#options.clock.now() - connection.absentAt > WRITE_ENDS_MS;
  }

  isOpen(name: MemberName, plural: string): boolean {
    return this.answers(name) && this.#gap(name, plural) === undefined;
  }

  failsToList(name: MemberName, plural: string): boolean {
    return this.#gap(name, plural)?.isUnlistable === true;
  }

  /** Connects a new controller with all members. Until the first probe none is known to answer, or to be lost. */
  start(connect: (name: MemberName) => ClusterClient): void {
    this.#connect = connect;
    // The last write of the one before may follow from their loss.
    for (const name of MEMBERS) this.#rememberLoss(name);
    this.#connected.length = 0;
    for (const name of MEMBERS) if (this.#connections[name].joined) this.#add(name);
  }

  /** Has the member answer, or not: after some failed probes it is lost then. */
  reach(name: MemberName, answers: boolean): void {
    const { log, clusters } = this.#options;
    log(`${name} ${answers ? "answers" : "does not answer"}`);
    const connection = this.#connections[name];
    Object.assign(connection, { answers, ...(answers ? { falteringUntil: 0 } : {}) });
    clusters[name].wake();
    this.#probe(name);
  }

  /** Has the watch of the member's pods reopen, while its API server answers. */
  falter(name: MemberName): void {
    const { log, clock } = this.#options;
    const forMs = this.#upTo(3_000);
    log(`the pods of ${name} are not watched for ${forMs} ms`);
    this.#connections[name].falteringUntil = clock.now() + forMs;
    this.#probe(name);
  }

  /** Cuts the watch of one resource, whose lists fail or are answered meanwhile. */
  cutWatch(name: MemberName, plural: string): void {
    const { log, clock, clusters } = this.#options;
    const forMs = this.#upTo(10_000);
    const isUnlistable = this.#options.random() < 0.6;
    log(`${name}: the watch of ${plural} has a gap of ${forMs} ms${isUnlistable ? ", and lists fail" : ""}`);
    this.#gaps.set(`${name}/${plural}`, { until: clock.now() + forMs, isUnlistable });
    clusters[name].compact();
    void clock.sleep(forMs).then(() => clusters[name].wake());
  }

  /** Deletes the member's Cluster for a while. */
  leave(name: MemberName): void {
    const { log, clock, emit } = this.#options;
    const connection = this.#connections[name];
    if (!connection.joined) return;
    const forMs = this.#upTo(4_000);
    log(`${name} leaves for ${forMs} ms`);
    connection.joined = false;
    const found = this.#of(name);
    if (found !== undefined) this.#connected.splice(this.#connected.indexOf(found), 1);
    emit("cluster", name);
    void clock.sleep(forMs).then(() => this.join(name));
  }

  join(name: MemberName): void {
    const connection = this.#connections[name];
    if (connection.joined) return;
    this.#options.log(`${name} joins`);
    Object.assign(connection, { joined: true, absentAt: this.#options.clock.now() });
    this.#add(name);
    this.#options.emit("cluster", name);
  }

  /** Ends all gaps of watches. */
  mend(): void {
    this.#gaps.clear();
    for (const name of MEMBERS) {
      this.join(name);
      this.reach(name, true);
    }
  }

  #add(name: MemberName): void {
    const candidate = (): Candidate => candidateNamed(name, { labels: this.#options.labels[name] });
    const added = member(name, this.#connect(name), { candidate, reachable: false });
    this.#connected.push(added);
    void this.#options.clock.sleep(this.#upTo(300)).then(() => {
      if (this.#of(name) === added) this.#probe(name);
    });
  }

  #probe(name: MemberName): void {
    const connection = this.#connections[name];
    connection.changes += 1;
    const { changes } = connection;
    const { clock } = this.#options;
    const later = (ms: number, act: () => void): void =>
      void clock.sleep(ms).then(() => {
        if (connection.changes === changes) act();
      });
    const isFaltering = connection.falteringUntil > clock.now();
    if (connection.answers && !isFaltering) {
      this.#set(name, { reachable: true, lost: false, reachableSince: clock.now() });
      return;
    }
    this.#set(name, { reachable: false });
    if (connection.answers) later(connection.falteringUntil - clock.now(), () => this.#probe(name));
    else later(this.#upTo(3_000), () => this.#set(name, { lost: true }));
  }

  #set(name: MemberName, state: Partial<Member>): void {
    const found = this.#of(name);
    if (found === undefined) return;
    this.#rememberLoss(name);
    withState(found, state);
    this.#options.emit("connection", found);
  }

  #rememberLoss(name: MemberName): void {
    if (this.#of(name)?.lost === true) this.#connections[name].absentAt = this.#options.clock.now();
  }

  #of(name: MemberName): Member | undefined {
    return this.#connected.find((one) => one.name === name);
  }

  #gap(name: MemberName, plural: string): { readonly isUnlistable: boolean } | undefined {
    const gap = this.#gaps.get(`${name}/${plural}`);
    return gap !== undefined && this.#options.clock.now() < gap.until ? gap : undefined;
  }

  #upTo(ms: number): number {
    return Math.floor(this.#options.random() * ms);
  }
}

/** How a request of the controller to a member fares. */
export function fateOf(answers: boolean, fate: () => Fate, pick: (fates: readonly Fate[]) => Fate): Fate {
  return answers ? fate() : pick(["not sent", "late", "dropped"]);
}
