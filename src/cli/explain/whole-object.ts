import { defined } from "../../api/defined.ts";
import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import { membersOfObject } from "../../copies/object-members.ts";
import { conditionsOf, statusOf } from "../../copies/object-status.ts";
import { hasWholeLabel, isWantedInMembers } from "../../copies/objects.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type FollowedObjects, followedObjects } from "../../scheduling/followed-objects.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type ObjectPlace, Simulation } from "../../simulation/simulation.ts";
import type { WholeType } from "../../whole/type.ts";
import { findTypeNamed } from "../shared/delegated-types.ts";
import { hiddenLine, MEMBERS, ofViewers } from "../shared/hidden.ts";
import { OF_PROXIES, readable } from "../shared/reading.ts";
import { readWithoutProxies, type SeenHost } from "../simulation/host-state.ts";
import { SUBJECT_NAMES } from "../simulation/subjects.ts";
import { unmetConditions } from "./delegated-type.ts";
import { lastOf } from "./events.ts";
import { memberAmong, readinessOf } from "./members.ts";
import type { Trouble } from "./model.ts";
import { whyNowhere } from "./pending.ts";
import { readWhole, toldTroubles } from "./whole.ts";

/** An object of a delegated type, as `legation status` shows it. */
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
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[];
  /** Why no member gets it. */
  readonly notPlaced: string | undefined;
  readonly troubles: readonly Trouble[];
  /** Words for what is not shown, since the account may not read it. */
  readonly hidden?: string | undefined;
}

export interface ObjectInMember {
  readonly cluster: string;
  /** `NotReachable`, `Excluded`, the state of a member's record, or that of a built-in type. */
  readonly state: string;
  readonly generation?: number;
  readonly health?: string;
  /** When it came into this state; RFC 3339. */
  readonly since?: string;
  readonly message?: string;
}

/** The host's objects that tell of a whole object. */
export interface WholeObjectFacts {
  /** Absent where the account may not read DelegatedTypes. */
  readonly type?: Stored<DelegatedType> | undefined;
  /** Absent: objects of the type go to members by its DelegatedType. */
  readonly builtIn?: WholeType | undefined;
  readonly object: Stored<AnyObject>;
  readonly told: readonly KubeEvent[];
  /** Absent where the account may not read the members. */
  readonly host?: HostState | undefined;
  readonly now: number;
}

/** Reads an object of a delegated type, its events and the members. Rejects with `Failure` if there is none, else with KubeError. */
export async function readWholeObject(
  client: ClusterClient,
  { word, namespace, name }: { readonly word: string; readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<WholeObjectStatus> {
  const { resource, type, builtIn } = await findTypeNamed(client, word, signal, SUBJECT_NAMES);
  const ref = resource.namespaced ? { namespace, name } : { name };
  const own = resource.namespaced ? [namespace] : [];
  const readHost = (): Promise<SeenHost | undefined> => readable(readWithoutProxies(client, own, signal));
  const { object, told, facts: seen } = await readWhole(client, { resource, ref }, readHost, signal);
  const ofType = type === undefined && builtIn === undefined ? [ofViewers("its DelegatedType")] : [];
  const followed = type && followedObjects(type);
  const namedBy =
    followed &&
    podsByMember(await listAll(client, pods, { namespace, labelSelector: OF_PROXIES, signal }), followed, name);
  const shown = { type, builtIn, object: { kind: resource.kind, ...object }, told, host: seen?.host, now: Date.now() };
  return {
    ...wholeObjectStatus(shown),
    ...(namedBy === undefined ? {} : { namedBy }),
    hidden: hiddenLine([...(seen?.hidden ?? [MEMBERS]), ...ofType]),
  };
}

export function wholeObjectStatus({ type, builtIn, object, told, host, now }: WholeObjectFacts): WholeObjectStatus {
  const { metadata, kind = type?.spec.kind ?? "" } = object;
  const whole = isWantedInMembers(object);
  const isPlaced = whole && host !== undefined && type !== undefined;
  const place = isPlaced ? new Simulation(host, now).placeObject(object, type) : NO_PLACE;
  return {
    kind,
    namespace: metadata.namespace,
    name: metadata.name,
    whole,
    isDeleting: metadata.deletionTimestamp !== undefined || (!whole && hasWholeLabel(object)),
    generation: metadata.generation,
    progress: builtIn?.progressOf(object),
    members:
      builtIn?.partsOf(object).map(({ member: cluster, state, message = "" }) => ({ cluster, state, message })) ??
      membersOf(object, place, host),
    conditions: (conditionsOf(statusOf(object)) ?? []).map(({ type: name, status, message }) => ({
      type: String(name),
      status: String(status),
      message: typeof message === "string" ? message : "",
    })),
    notPlaced: isPlaced ? whyNowhere(place) : builtIn && lastOf(told, "NotPlaced")?.message,
    troubles: [...(type === undefined ? [] : typeTroubles(type)), ...toldTroubles(told, TOLD)],
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

const NO_PLACE: ObjectPlace = { clusters: [], others: [], misfits: [] };

function membersOf(object: Stored<AnyObject>, place: ObjectPlace, host: HostState | undefined): ObjectInMember[] {
  const records = new Map((membersOfObject(object) ?? []).map(({ member, ...record }) => [member, record]));
  const excluded = new Map(place.others.map(({ cluster, message }) => [cluster, message]));
  const names = new Set([...records.keys(), ...place.clusters.map(({ cluster }) => cluster), ...excluded.keys()]);
  return [...names].sort().map((cluster): ObjectInMember => {
    const record = records.get(cluster);
    const message = excluded.get(cluster);
    if (record === undefined && message !== undefined) return { cluster, state: "Excluded", message };
    const lost = host && whyLost(cluster, host);
    if (lost === undefined) return { cluster, state: "Waiting", ...defined({ message }), ...record };
    const was = record === undefined ? "" : `; it was ${record.state}`;
    return { cluster, ...record, state: "NotReachable", message: `${lost}${was}` };
  });
}

/** Returns why the record of a member may be old. */
function whyLost(name: string, host: HostState): string | undefined {
  const member = memberAmong(host, name);
  if (member === undefined) return "its Cluster was removed";
  const { ready, reason } = readinessOf(member.cluster, member.node);
  return ready === "True" ? undefined : `it is not ready: ${reason}`;
}

function typeTroubles(type: Stored<DelegatedType>): Trouble[] {
  const { name, deletionTimestamp } = type.metadata;
  if (deletionTimestamp === undefined) return unmetConditions(type).map(({ trouble }) => trouble);
  const what = `DelegatedType ${name} is being deleted: members keep their copies as their own`;
  return [{ what, since: deletionTimestamp }];
}

// Events of the object's status and fields.
const TOLD = ["FieldConflict", "FieldContested", "CopyContested", "CopyDeleted", "StatusRefused", "StatusContested"];
