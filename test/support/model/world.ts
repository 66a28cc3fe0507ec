import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { Action, ActionOf } from "../../../src/controllers/delegation/decision/decision.ts";
import { isOverflow } from "../../../src/pods/overflow.ts";
import { isBound } from "../../../src/pods/pod-state.ts";
import type { Memory } from "../../../src/scheduling/memory.ts";
import type { Slot } from "./api-server.ts";
import { recorded } from "./pods.ts";

/** An API server, and the controller's store of it. */
export interface Cluster {
  /** First the store's state, last the true state; between them the events that the watch has still to deliver, in order. */
  readonly versions: readonly Slot[];
}

/** A member: its true state, and the controller's belief. */
export interface MemberState extends Cluster {
  readonly name: string;
  /** Requests and responses get through. */
  readonly linked: boolean;
  readonly reachable: boolean;
  readonly read: boolean;
  readonly departed?: Stored<Pod>;
  readonly outOfService: boolean;
  /** The member has only just answered: earlier requests may still happen. */
  readonly unsettled?: true;
  /** The member's Cluster is gone: the controller does not know the member. */
  readonly left?: true;
}

/** A request that follows from the answer to another one, or one of several that an action sends at once. */
export type FollowUp =
  | { readonly type: "asked"; readonly member: string; readonly proxyUid: string }
  | { readonly type: "taken"; readonly member: string; readonly proxyUid: string }
  | { readonly type: "swept"; readonly member: string; readonly uid: string };

/** A request to create a delegate, which is derived from the proxy when it is sent. */
export type CreateStep = ActionOf<"create"> & { readonly delegate: Pod };

export type Step = Exclude<Action, { readonly type: "create" }> | CreateStep | FollowUp;

/** A request: the dry-run in the member, or the Binding on the host. */
export type OverflowStep = {
  readonly type: "trial" | "overflow";
  readonly uid: string;
  readonly resourceVersion: string;
  readonly member: string;
};

/** The overflow controller's state, for pods that the host's scheduler is asked first for. */
export interface OverflowState {
  /** The host, as the watch of pods without a node shows it. */
  readonly host: Cluster;
  readonly pending: readonly OverflowStep[];
  /** Members that have refused such a pod lately. */
  readonly refused: readonly string[];
}

/** The whole model in one moment. */
export interface World {
  /** Absent if all pods are proxies from the start. */
  readonly overflow?: OverflowState;
  readonly host: Cluster;
  readonly members: readonly MemberState[];
  /** The controller's memory, by proxy uid. */
  readonly memory: Readonly<Record<string, Memory>>;
  /** The remaining steps of the last decision. */
  readonly pending: readonly Step[];
  /** Requests that their senders have given up, and that may still happen. */
  readonly late?: readonly Step[];
  /** The host's pod at the time of its backup, and the delegates that existed. */
  readonly backup?: { readonly slot: Slot; readonly delegates: readonly string[] };
  /** After the restore: held delegates, which the host does not know. */
  readonly held?: readonly string[];
  /** The virtual node of an unreachable member is not Ready. */
  readonly losesNodes?: true;
  /** The number of faults that may still happen. */
  readonly faults: number;
  /** No fault happens. */
  readonly undisturbed?: true;
  /** The number of proxies created so far. */
  readonly created: number;
  /** Proxies that were deleted by force, or whose member was out of service: their delegates may outlive them. */
  readonly abandoned: readonly string[];
}

/** A possible next event, and the world after it. */
export interface Event {
  readonly what: string;
  readonly world: World;
}

/** Returns the world with one more exception from the rules. */
export function marked(world: World, mark: string): World {
  return world.abandoned.includes(mark) ? world : { ...world, abandoned: [...world.abandoned, mark].sort() };
}

/** Returns the true state of a cluster. */
export function truth({ versions }: Cluster): Slot {
  return versions.at(-1);
}

/** Returns the state that the controller sees. */
export function shown({ versions }: Cluster): Slot {
  return versions[0];
}

/** Returns the proxy that the controller sees: its watch selects the label. */
export function shownProxy(host: Cluster): Slot {
  const slot = shown(host);
  return slot === undefined || isOverflow(slot) ? undefined : slot;
}

// More would only repeat the behaviour of two unseen changes.
const UNSEEN = 2;

/** Returns the cluster after a write; a watch that is far behind skips early events, as a list would. */
function written<C extends Cluster>(cluster: C, next: Slot): C {
  const { versions } = cluster;
  if (next === truth(cluster)) return cluster;
  const unseen = [...versions.slice(1), next];
  return { ...cluster, versions: [versions[0], ...unseen.slice(-UNSEEN)] };
}

/** Reports whether the watch of proxies never shows the pod. */
function isUnseen(slot: Slot): boolean {
  return slot === undefined || isOverflow(slot);
}

/** Returns the cluster after a write that its watch does not show. */
function unseen<C extends Cluster>(cluster: C, next: Slot): C {
  return next === truth(cluster) ? cluster : { ...cluster, versions: [...cluster.versions.slice(0, -1), next] };
}

/** Returns the pod, if the watch of pods without a node shows it. */
export function waiting(slot: Slot): Slot {
  return slot !== undefined && isOverflow(slot) && !isBound(slot) ? slot : undefined;
}

/** Returns the world with another pod on the host. */
export function onHost(world: World, next: Slot): World {
  const host = isUnseen(truth(world.host)) && isUnseen(next) ? unseen(world.host, next) : written(world.host, next);
  if (host === world.host) return world;
  const { overflow } = world;
  return overflow === undefined
    ? { ...world, host }
    : { ...world, host, overflow: { ...overflow, host: written(overflow.host, waiting(next)) } };
}

/** Returns the world with another pod in a member. */
export function inMember(world: World, name: string, change: (slot: Slot) => Slot): World {
  return changeMember(world, name, (member) => {
    const next = written(member, change(truth(member)));
    // A member that was never listed is listed as a whole.
    return member.read || next === member ? next : { ...next, versions: [undefined, truth(next)] };
  });
}

/** Returns the world with another state of a member. */
export function changeMember(world: World, name: string, change: (member: MemberState) => MemberState): World {
  return { ...world, members: world.members.map((member) => (member.name === name ? change(member) : member)) };
}

export function memberOf(world: World, name: string): MemberState {
  const found = world.members.find((member) => member.name === name);
  if (found === undefined) throw new Error(`the model has no member ${name}`);
  return found;
}

/** Returns a uid that nothing in the world names: reusing names keeps the number of worlds finite. */
export function freeUid(world: World, member: string): string {
  const used = new Set<string | undefined>();
  for (const slot of [...world.host.versions, world.backup?.slot]) {
    if (slot !== undefined) used.add(recorded(slot).uid);
  }
  for (const { versions, departed } of world.members) {
    for (const slot of [...versions, departed]) used.add(slot?.metadata.uid);
  }
  for (const step of [...world.pending, ...(world.late ?? [])])
    used.add("uid" in step ? step.uid : "delegateUid" in step ? step.delegateUid : "");
  for (const { gone } of Object.values(world.memory)) used.add(gone);
  for (const uid of [...(world.held ?? []), ...(world.backup?.delegates ?? [])]) used.add(uid);
  let number = 1;
  while (used.has(`${member}-${number}`)) number += 1;
  return `${member}-${number}`;
}

/** Returns equal keys for equal worlds. */
export function keyOf(world: World): string {
  const { host, members, memory, pending, late = [], faults, created, abandoned, overflow, backup, held } = world;
  const versions = (cluster: Cluster): string => cluster.versions.map((s) => s?.metadata.resourceVersion).join(",");
  const each = members.map(
    (member) =>
      `${versions(member)}:${member.departed?.metadata.resourceVersion ?? ""}:${Number(member.linked)}${Number(member.reachable)}${Number(member.read)}${Number(member.outOfService)}${member.unsettled ?? false}${member.left ?? false}`,
  );
  const brief = (step: Step): string =>
    JSON.stringify(step, (key, value) => (key === "delegate" || key === "message" ? undefined : value));
  const remembered = Object.entries(memory).map(([uid, entry]) => `${uid}${memoryKey(entry)}`);
  const waiting =
    overflow === undefined ? [] : [versions(overflow.host), JSON.stringify(overflow.pending), overflow.refused];
  return [
    versions(host),
    ...each,
    ...remembered,
    ...pending.map(brief),
    "late",
    ...late.map(brief),
    faults,
    created,
    abandoned,
    ...waiting,
    ...(backup === undefined ? [] : [backup.slot?.metadata.resourceVersion, backup.delegates, held]),
  ].join("|");
}

function memoryKey({
  fresh,
  confirmedAbsent,
  uncertain,
  binding,
  recording,
  reserved,
  attempts,
  gone,
}: Memory): string {
  const each = Object.entries(attempts).map(
    ([name, { since, refusal, until, parked }]) => `${name}${since},${refusal?.reason},${until},${parked}`,
  );
  return [
    fresh,
    [...(confirmedAbsent ?? [])].sort().join(),
    uncertain,
    binding?.member,
    binding?.delegateUid,
    recording?.delegateUid,
    reserved,
    gone,
    ...each.sort(),
  ].join(";");
}
