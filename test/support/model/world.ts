import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { Action, ActionOf } from "../../../src/controllers/delegation/model/decision.ts";
import type { Memory } from "../../../src/controllers/delegation/model/memory.ts";
import { isOverflow } from "../../../src/pods/overflow.ts";
import { isBound } from "../../../src/pods/phase.ts";
import type { Slot } from "./api-server.ts";
import { recorded } from "./pods.ts";

/** One API server, and what the controller's store shows of it. */
export interface Cluster {
  /** First what the store shows, last what is true; between them what the watch has still to tell, in its order. */
  readonly versions: readonly Slot[];
}

/** One member, as it is and as the controller believes it to be. */
export interface MemberState extends Cluster {
  readonly name: string;
  /** Requests arrive there, and answers come back. */
  readonly linked: boolean;
  readonly reachable: boolean;
  readonly read: boolean;
  readonly departed?: Stored<Pod>;
  readonly outOfService: boolean;
  /** It has answered only now: what was sent to it before may still be done. */
  readonly unsettled?: true;
  /** Its Cluster is gone: the controller knows nothing of it. */
  readonly left?: true;
}

/** A request that follows from the answer to another one, or one of those that an action sends at once. */
export type FollowUp =
  | { readonly type: "asked"; readonly member: string; readonly proxyUid: string }
  | { readonly type: "taken"; readonly member: string; readonly proxyUid: string }
  | { readonly type: "swept"; readonly member: string; readonly uid: string };

/** A request to create a delegate, which is derived from the proxy when it is sent. */
export type CreateStep = ActionOf<"create"> & { readonly delegate: Pod };

export type Step = Exclude<Action, { readonly type: "create" }> | CreateStep | FollowUp;

/** One request: the dry run in the member, or the Binding on the host. */
export type OverflowStep = {
  readonly type: "trial" | "overflow";
  readonly uid: string;
  readonly resourceVersion: string;
  readonly member: string;
};

/** What a controller has beside that for pods which the host's scheduler is asked first for. */
export interface OverflowState {
  /** The host, as the watch of pods without a node shows it. */
  readonly host: Cluster;
  readonly pending: readonly OverflowStep[];
  /** Members that would not take such a pod lately. */
  readonly refused: readonly string[];
}

/** The whole model in one moment. */
export interface World {
  /** Absent where all pods are proxies from the start. */
  readonly overflow?: OverflowState;
  readonly host: Cluster;
  readonly members: readonly MemberState[];
  /** What the controller remembers, by proxy uid. */
  readonly memory: Readonly<Record<string, Memory>>;
  /** What is left to do of the last decision. */
  readonly pending: readonly Step[];
  /** Requests that their senders have given up, and that may still be done. */
  readonly late?: readonly Step[];
  /** What the host had when its backup was made, and the delegates that there were. */
  readonly backup?: { readonly slot: Slot; readonly delegates: readonly string[] };
  /** After the host was set back: delegates of the lost future, which are kept. */
  readonly held?: readonly string[];
  /** The virtual node of a member that is not reachable is not Ready. */
  readonly losesNodes?: true;
  /** How many faults may still happen. */
  readonly faults: number;
  /** How many proxies there have been. */
  readonly created: number;
  /** Proxies that were deleted by force, or whose member was out of service: nobody waits for their delegates. */
  readonly abandoned: readonly string[];
}

/** One thing that can happen next, and the world after it. */
export interface Event {
  readonly what: string;
  readonly world: World;
}

/** The world with one more exception from the rules. */
export function marked(world: World, mark: string): World {
  return world.abandoned.includes(mark) ? world : { ...world, abandoned: [...world.abandoned, mark].sort() };
}

/** What is true in a cluster now. */
export function truth({ versions }: Cluster): Slot {
  return versions.at(-1);
}

/** What the controller sees of it. */
export function shown({ versions }: Cluster): Slot {
  return versions[0];
}

/** The proxy that the controller sees: its watch selects by their label. */
export function shownProxy(host: Cluster): Slot {
  const slot = shown(host);
  return slot === undefined || isOverflow(slot) ? undefined : slot;
}

// More would only repeat what two unseen changes do.
const UNSEEN = 2;

/** The cluster after a write; a watch that is far behind skips what came first, as a list would. */
function written<C extends Cluster>(cluster: C, next: Slot): C {
  const { versions } = cluster;
  if (next === truth(cluster)) return cluster;
  const unseen = [...versions.slice(1), next];
  return { ...cluster, versions: [versions[0], ...unseen.slice(-UNSEEN)] };
}

/** True for what the watch of proxies never shows. */
function isUnseen(slot: Slot): boolean {
  return slot === undefined || isOverflow(slot);
}

/** The cluster after a write of which its watch tells nothing. */
function unseen<C extends Cluster>(cluster: C, next: Slot): C {
  return next === truth(cluster) ? cluster : { ...cluster, versions: [...cluster.versions.slice(0, -1), next] };
}

/** The pod, if it is one that the watch of pods without a node shows. */
export function waiting(slot: Slot): Slot {
  return slot !== undefined && isOverflow(slot) && !isBound(slot) ? slot : undefined;
}

/** The world with something else on the host. */
export function onHost(world: World, next: Slot): World {
  const host = isUnseen(truth(world.host)) && isUnseen(next) ? unseen(world.host, next) : written(world.host, next);
  if (host === world.host) return world;
  const { overflow } = world;
  return overflow === undefined
    ? { ...world, host }
    : { ...world, host, overflow: { ...overflow, host: written(overflow.host, waiting(next)) } };
}

/** The world with something else in a member. */
export function inMember(world: World, name: string, change: (slot: Slot) => Slot): World {
  return changeMember(world, name, (member) => {
    const next = written(member, change(truth(member)));
    // What was never listed is listed as a whole.
    return member.read || next === member ? next : { ...next, versions: [undefined, truth(next)] };
  });
}

/** The world with another state of a member. */
export function changeMember(world: World, name: string, change: (member: MemberState) => MemberState): World {
  return { ...world, members: world.members.map((member) => (member.name === name ? change(member) : member)) };
}

/** The member of that name. */
export function memberOf(world: World, name: string): MemberState {
  const found = world.members.find((member) => member.name === name);
  if (found === undefined) throw new Error(`the model has no member ${name}`);
  return found;
}

/** A uid that nothing in the world names: worlds that differ only in names would never end. */
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

/** Equal for worlds that are alike. */
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

function memoryKey({ fresh, denied, uncertain, binding, promised, attempts, gone }: Memory): string {
  const each = Object.entries(attempts).map(
    ([name, { since, refusal, until, parked }]) => `${name}${since},${refusal?.reason},${until},${parked}`,
  );
  return [fresh, [...(denied ?? [])].sort().join(), uncertain, binding, promised, gone, ...each.sort()].join(";");
}
