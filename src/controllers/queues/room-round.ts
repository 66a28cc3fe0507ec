import type { Cluster } from "../../api/cluster.ts";
import { delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import { objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { isTrue, kueueCondition, type Workload } from "../../api/kueue-workload.ts";
import { addAmounts, formatAmounts, parseAmounts } from "../../api/quantity.ts";
import { counted } from "../../api/wording.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type SimulatedPlace, Simulation } from "../../simulation/simulation.ts";
import type { Verdict } from "./decide-room.ts";
import { MembersAtBest } from "./room-ever.ts";
import { type Coming, type ComingPods, comingPods, type PodSources } from "./room-pods.ts";

/** A workload with its pods that are proxies, as they are in the state of the host. */
export interface QueuedWorkload {
  readonly workload: Stored<Workload>;
  readonly pods: readonly Stored<Pod>[];
}

export interface RoundInput {
  readonly host: HostState;
  /** Workloads that were told of room, and hold it until they end. */
  readonly told: readonly QueuedWorkload[];
  readonly asking: readonly QueuedWorkload[];
  readonly sources: PodSources;
  readonly now: number;
}

// What the API server takes of a check's message.
const LONGEST_MESSAGE = 16_384;

/** Answers all workloads that ask, from one state of the host: what one gets, the next does not. Yields between steps. */
export function* judge(input: RoundInput): Generator<undefined, ReadonlyMap<string, Verdict>> {
  const { host, now } = input;
  const simulation = new Simulation({ ...host, clusters: host.clusters.map(withoutOthers), proxies: [] }, now);
  yield* simulation.fill(host.proxies);
  const atBest = new MembersAtBest(host, now);
  const modes = new Map(host.namespaces.map(({ metadata }) => [metadata.name, delegationModeOf(metadata.labels)]));
  const coming = ({ workload, pods }: QueuedWorkload): Coming | undefined => {
    const mode = modes.get(workload.metadata.namespace ?? "");
    return mode && comingPods(workload, pods, mode, input.sources);
  };
  for (const queued of input.told.toSorted((one, other) => byReservation(one.workload, other.workload))) {
    const pods = coming(queued);
    if (pods === undefined || "denied" in pods) continue;
    yield* placed(
      pods.sets.flatMap((set) => set.pods),
      simulation,
    );
  }
  const verdicts = new Map<string, Verdict>();
  for (const queued of input.asking.toSorted((one, other) => byPrecedence(one.workload, other.workload))) {
    const { metadata } = queued.workload;
    const pods = coming(queued);
    const verdict =
      pods === undefined
        ? ready(`namespace ${metadata.namespace} has no label ${DELEGATION_LABEL}: its pods run on the host`)
        : yield* verdictOn(pods, simulation, atBest);
    const { message } = verdict;
    const short = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message;
    verdicts.set(objectKey(metadata), { ...verdict, message: short });
  }
  return verdicts;
}

/** Pods are sent to members whose scheduler may still find room. A queue has to know what others leave. */
function withoutOthers(cluster: Stored<Cluster>): Stored<Cluster> {
  const { allocatable, requestedByOthers } = cluster.status ?? {};
  if (allocatable === undefined || requestedByOthers === undefined) return cluster;
  const left = parseAmounts(allocatable);
  addAmounts(left, parseAmounts(requestedByOthers), -1);
  return { ...cluster, status: { ...cluster.status, allocatable: formatAmounts(left), requestedByOthers: {} } };
}

function* verdictOn(coming: Coming, simulation: Simulation, atBest: MembersAtBest): Generator<undefined, Verdict> {
  if ("denied" in coming) return { state: "Rejected", message: `admission refuses its pods: ${coming.denied}` };
  const { sets, hostFirst } = coming;
  if (sets.length === 0) {
    return ready(
      hostFirst
        ? "the host's own scheduler is asked for its pods first: members are for those that it has no room for"
        : "its pods do not ask for delegation, or are there: no more of them goes to a member",
    );
  }
  const pods = sets.flatMap((set) => set.pods);
  const places = yield* placed(pods, simulation);
  if (places.every(({ cluster }) => cluster !== undefined)) return ready(fits(places));
  simulation.withdraw(pods);
  const never = sets.flatMap(({ podSet, pods: [first] }) => {
    const why = first && atBest.whyNever(first);
    return why === undefined ? [] : [`no member could ever run a pod of pod set ${podSet}: ${why}`];
  });
  if (never.length > 0) return { state: "Rejected", message: never.join("; ") };
  return { state: "Retry", message: shortage(sets, places) };
}

function* placed(pods: readonly Stored<Pod>[], simulation: Simulation): Generator<undefined, SimulatedPlace[]> {
  const places: SimulatedPlace[] = [];
  simulation.announce(pods);
  for (const pod of pods) {
    places.push(simulation.place(pod));
    yield;
  }
  return places;
}

function ready(message: string): Verdict {
  return { state: "Ready", message };
}

/** Says how many pods go where: `3 pods fit: 2 in east, 1 in west`. */
function fits(places: readonly SimulatedPlace[]): string {
  const byMember = Map.groupBy(places, ({ cluster = "" }) => cluster);
  const counts = [...byMember].map(([member, those]) => `${those.length} in ${member}`);
  return `${counted(places.length)} ${places.length === 1 ? "fits" : "fit"}: ${counts.sort().join(", ")}`;
}

/** Says per pod set how many pods would wait, and for what. The first one tells of the room that those with a place leave. */
function shortage(sets: readonly ComingPods[], places: readonly SimulatedPlace[]): string {
  let from = 0;
  const reasons = sets.flatMap(({ podSet, pods }) => {
    const own = places.slice(from, from + pods.length);
    from += pods.length;
    const waiting = own.filter(({ cluster }) => cluster === undefined);
    const [first] = waiting;
    if (first === undefined) return [];
    const set = sets.length === 1 ? "" : ` of pod set ${podSet}`;
    return [`${waiting.length} of ${counted(pods.length)}${set} would wait: ${first.message}`];
  });
  return reasons.join("; ");
}

/** The higher priority first, then the older workload. */
function byPrecedence(one: Stored<Workload>, other: Stored<Workload>): number {
  return (other.spec?.priority ?? 0) - (one.spec?.priority ?? 0) || compare(ageOf(one), ageOf(other));
}

function byReservation(one: Stored<Workload>, other: Stored<Workload>): number {
  return compare(reservedAt(one), reservedAt(other));
}

function ageOf({ metadata }: Stored<Workload>): string {
  return `${metadata.creationTimestamp ?? ""} ${objectKey(metadata)}`;
}

function reservedAt(workload: Stored<Workload>): string {
  const reserved = kueueCondition(workload, "QuotaReserved")?.lastTransitionTime;
  // Those that run come before those that do not yet.
  return `${isTrue(workload, "Admitted") ? 0 : 1} ${reserved ?? ""} ${ageOf(workload)}`;
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
