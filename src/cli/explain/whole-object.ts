import { defined } from "../../api/defined.ts";
import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import { valueAt } from "../../api/json.ts";
import type { KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import { conditionsOf, statusOf } from "../../copies/object-status.ts";
import { hasWholeLabel, isWantedInMembers } from "../../copies/objects.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type FollowedObjects, followedObjects } from "../../scheduling/followed-objects.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { Simulation } from "../../simulation/simulation.ts";
import { type MemberPart, TONES } from "../../whole/member-part.ts";
import { NO_PLACE, type WholePlace, type WholeType } from "../../whole/type.ts";
import { findTypeNamed, type NamedType } from "../shared/delegated-types.ts";
import { hiddenLine, MEMBERS, ofViewers } from "../shared/hidden.ts";
import { OF_PROXIES, readable } from "../shared/reading.ts";
import { readWithoutProxies, type SeenHost } from "../simulation/host-state.ts";
import { SUBJECT_NAMES } from "../simulation/subjects.ts";
import { unmetConditions } from "./delegated-type.ts";
import { lastOf, lastTimeOf } from "./events.ts";
import { findMembers, type HostMembers, memberAmong, notReady, readinessOf, removing } from "./members.ts";
import type { Trouble } from "./model.ts";
import { whyNowhere } from "./pending.ts";
import { partsOf, readWhole, toldTroubles } from "./whole.ts";

/** An object that members get whole, as `legation status` shows it. */
export interface WholeObjectStatus {
  readonly kind: string;
  /** Undefined for a type that is not namespaced. */
  readonly namespace: string | undefined;
  readonly name: string;
  /** Members are to have it. */
  readonly whole: boolean;
  /** Pods that name it and have not ended, in each member and in none. Absent: its type goes to members by itself. */
  readonly namedBy?: readonly { readonly cluster: string | undefined; readonly pods: number }[];
  readonly isDeleting: boolean;
  /** The object's own; copies in step have the same. */
  readonly generation: number | undefined;
  /** A few words on how far an object of a built-in type is. */
  readonly progress: string | undefined;
  readonly members: readonly ObjectInMember[];
  /** Conditions of its status. A missing reason or message is empty. */
  readonly conditions: readonly Readonly<Record<"type" | "status" | "reason" | "message", string>>[];
  /** Why no member gets it, or why one does not begin with it. */
  readonly notPlaced: string | undefined;
  readonly troubles: readonly Trouble[];
  /** Words for what is not shown, since the account may not read it. */
  readonly hidden?: string | undefined;
}

/** `state`: `NotReachable`, `Excluded`, the state of a member's record, or that of a built-in type. */
export type ObjectInMember = { readonly cluster: string } & Omit<MemberPart, "member">;

/** The host's objects that tell of a whole object. */
export interface WholeObjectFacts {
  /** Absent where the account may not read DelegatedTypes. */
  readonly type?: Stored<DelegatedType> | undefined;
  /** Absent: objects of the type go to members by its DelegatedType. */
  readonly builtIn?: WholeType | undefined;
  readonly object: Stored<AnyObject>;
  readonly told: readonly KubeEvent[];
  /** Absent where the account may not read the members, and for a built-in type. */
  readonly host?: HostState | undefined;
  /** Members of an object of a built-in type. Absent where the account may not read them. Default: those of `host`. */
  readonly members?: HostMembers | undefined;
  readonly now: number;
}

/** Reads an object of the type that a user names. Rejects with `Failure` if there is none, else with KubeError. */
export async function readWholeObject(
  client: ClusterClient,
  { word, ...ref }: { readonly word: string; readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<WholeObjectStatus> {
  return readObjectOf(await findTypeNamed(client, word, signal, SUBJECT_NAMES), client, ref, signal);
}

/** Reads an object of a type, its events and the members. Rejects like `readWholeObject`. */
export async function readObjectOf(
  { resource, type, builtIn }: NamedType,
  client: ClusterClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<WholeObjectStatus> {
  const ref = resource.namespaced ? { namespace, name } : { name };
  const own = resource.namespaced ? [namespace] : [];
  // An object of a built-in type does not move: its own members alone matter.
  const readHost = async (found: Stored<AnyObject>): Promise<Partial<SeenHost> & { members?: HostMembers }> => {
    if (builtIn === undefined) return readWithoutProxies(client, own, signal);
    return { members: await findMembers(client, builtIn.membersOf(found), signal) };
  };
  const { object, told, facts } = await readWhole(
    client,
    { resource, ref },
    (found) => readable(readHost(found)),
    signal,
  );
  const { hidden = [], ...seen } = facts ?? { hidden: [MEMBERS] };
  const ofType = type === undefined && builtIn === undefined ? [ofViewers("its DelegatedType")] : [];
  const followed = type && followedObjects(type);
  const namedBy =
    followed &&
    podsByMember(await listAll(client, pods, { namespace, labelSelector: OF_PROXIES, signal }), followed, name);
  const shown = { type, builtIn, object: { kind: resource.kind, ...object }, told, ...seen, now: Date.now() };
  return {
    ...wholeObjectStatus(shown),
    ...(namedBy === undefined ? {} : { namedBy }),
    hidden: hiddenLine([...hidden, ...ofType]),
  };
}

export function wholeObjectStatus(facts: WholeObjectFacts): WholeObjectStatus {
  const { type, builtIn, object, told, host, members = host, now } = facts;
  const { metadata, kind = type?.spec.kind ?? "" } = object;
  const whole = isWantedInMembers(object);
  const isPlaced = whole && host !== undefined && type !== undefined;
  const place = isPlaced ? new Simulation(host, now).placeObject(object, type) : NO_PLACE;
  const parts = partsOf(object, builtIn);
  const isOver = builtIn?.isFinished(object) ?? false;
  const waiting = builtIn === undefined || isOver ? undefined : whyWaiting(object, parts, told);
  const hasEnded = (cluster: string): boolean => isOver || (builtIn?.isFinishedIn(object, cluster) ?? false);
  const lostIn = (cluster: string): string | undefined =>
    members === undefined || hasEnded(cluster) ? undefined : whyLost(cluster, members);
  return {
    kind,
    namespace: metadata.namespace,
    name: metadata.name,
    whole,
    isDeleting: metadata.deletionTimestamp !== undefined || (!whole && hasWholeLabel(object)),
    generation: metadata.generation,
    progress: builtIn?.progressOf(object),
    members: membersOf(parts, place, lostIn),
    conditions: (conditionsOf(statusOf(object)) ?? []).map(({ type: name, status, reason, message }) => ({
      type: String(name),
      status: String(status),
      reason: typeof reason === "string" ? reason : "",
      message: typeof message === "string" ? message : "",
    })),
    notPlaced: isPlaced ? whyNowhere(place) : waiting,
    troubles: [
      ...(type === undefined ? [] : typeTroubles(type)),
      ...(builtIn === undefined || members === undefined
        ? []
        : parts.flatMap(({ member }) => (hasEnded(member) ? [] : memberTrouble(member, kind, members)))),
      ...(isOver ? [] : toldTroubles(told, TOLD)),
    ],
  };
}

function podsByMember(
  proxies: readonly Stored<Pod>[],
  { of }: FollowedObjects,
  name: string,
): NonNullable<WholeObjectStatus["namedBy"]> {
  const naming = proxies.filter((pod) => !isTerminal(pod) && of(pod).some((object) => object.name === name));
  return [...Map.groupBy(naming, memberOf)].map(([cluster, those]) => ({ cluster, pods: those.length }));
}

function membersOf(
  parts: readonly MemberPart[],
  place: WholePlace,
  lostIn: (cluster: string) => string | undefined,
): ObjectInMember[] {
  const records = new Map(parts.map(({ member, ...part }) => [member, part]));
  const excluded = new Map(place.others.map(({ cluster, message }) => [cluster, message]));
  const names = new Set([...records.keys(), ...place.clusters.map(({ cluster }) => cluster), ...excluded.keys()]);
  return [...names].sort().map((cluster): ObjectInMember => {
    const record = records.get(cluster);
    const message = excluded.get(cluster);
    if (record === undefined && message !== undefined) return { cluster, state: "Excluded", message };
    const lost = lostIn(cluster);
    if (lost === undefined) return { cluster, state: "Waiting", ...defined({ message }), ...record };
    const was = record === undefined ? "" : `; it was ${record.state}`;
    return { cluster, ...record, state: "NotReachable", message: `${lost}${was}` };
  });
}

/** Returns why the record of a member may be old. */
function whyLost(name: string, members: HostMembers): string | undefined {
  const member = memberAmong(members, name);
  if (member === undefined) return "its Cluster was removed";
  const { ready, reason } = readinessOf(member.cluster, member.node);
  return ready === "True" ? undefined : `it is not ready: ${reason}`;
}

/** Returns what becomes of an object of a built-in type, which does not move, in a member that leaves or is lost. */
function memberTrouble(name: string, kind: string, members: HostMembers): Trouble[] {
  const member = memberAmong(members, name);
  if (member === undefined) {
    return [{ what: `Cluster ${name}, which had the ${kind}, was removed: the controller ends the ${kind} as Failed` }];
  }
  const removal = removing(member.cluster);
  if (removal !== undefined) return [removal];
  const found = notReady(member.cluster, member.node, `the ${kind} may run on there, and the status shown is old`);
  const remedy = `it does not move; where ${name} is gone for good, \`legation unjoin ${name} --force\` ends it as Failed`;
  return found === undefined ? [] : [{ ...found, remedy }];
}

/** Returns why no member gets an object, or one does not begin with it, in the words of the last event. */
function whyWaiting(object: AnyObject, parts: readonly MemberPart[], told: readonly KubeEvent[]): string | undefined {
  // An object that its author suspended waits for nobody else.
  const isSuspended = valueAt(object, ["spec", "suspend"]) === true;
  const waits = ({ state }: MemberPart): boolean =>
    TONES[state] === "waiting" && !(isSuspended && state === "Suspended");
  if (parts.length > 0 && !parts.some(waits)) return undefined;
  const last = lastOf(told, "NotPlaced");
  // Times of events have whole seconds. Without a member the same reason may stand: it is told once in fifty minutes.
  const placed = parts.length === 0 ? undefined : lastOf(told, "Placed");
  const isPast = last !== undefined && placed !== undefined && lastTimeOf(placed) > lastTimeOf(last);
  return isPast ? undefined : last?.message;
}

function typeTroubles(type: Stored<DelegatedType>): Trouble[] {
  const { name, deletionTimestamp } = type.metadata;
  if (deletionTimestamp === undefined) return unmetConditions(type).map(({ trouble }) => trouble);
  const what = `DelegatedType ${name} is being deleted: members keep their copies as their own`;
  return [{ what, since: deletionTimestamp }];
}

// Events of the object's status and fields.
const TOLD = ["FieldConflict", "FieldContested", "CopyContested", "CopyDeleted", "StatusRefused", "StatusContested"];
