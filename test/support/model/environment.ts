import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { ranked } from "../../../src/controllers/delegation/decision/on-demand.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../../src/pods/pod-state.ts";
import { deletePod, type Slot } from "./api-server.ts";
import { type Decide, execute, fates, observe, plan, restart, seeHost, seeMember, turns } from "./controller.ts";
import { membership, restoration } from "./disasters.ts";
import { lateEvents, lateFaults, settleEvents } from "./late.ts";
import {
  type DecideOverflow,
  executeOverflow,
  hostEvents,
  newOverflowPod,
  overflowFates,
  planOverflow,
  seeWaiting,
} from "./overflow.ts";
import {
  ended,
  foreignPod,
  newProxy,
  recorded,
  running,
  scheduled,
  unschedulable,
  withoutMarks,
  withStatus,
} from "./pods.ts";
import { later } from "./recollection.ts";
import { changeMember, type Event, inMember, type MemberState, marked, onHost, truth, type World } from "./world.ts";

/** The subject of an exploration. */
export interface Scenario {
  readonly decide: Decide;
  /** Pods that are created under the one name, one after the other. */
  readonly pods: number;
  /** Faults on one path. */
  readonly faults: number;
  /** A controller replaces the pods. */
  readonly controlled?: boolean;
  /** Begins when the first pod runs without a fault. */
  readonly running?: boolean;
  /** Begins when the host has no node for the first pod, and a member would take it. */
  readonly offered?: boolean;
  /** Begins after these events, in this order, by their names in a trace. */
  readonly after?: readonly string[];
  /** The virtual nodes of lost members are not Ready. Absent: they stay Ready, as when most members are lost. */
  readonly losesNodes?: boolean;
  /** Requests may happen after their senders gave up or ended. */
  readonly late?: boolean;
  /** A Cluster may be deleted by force, and created again. */
  readonly forgets?: boolean;
  /** The host may be restored from a backup. */
  readonly restores?: boolean;
  /** A client in a member may remove the marks of a recorded delegate. */
  readonly unmarks?: boolean;
  /** The pods are in overflow mode; this decides when the host's scheduler has found no node. */
  readonly overflow?: DecideOverflow;
}

/** Returns the initial world: two empty members that answer. */
export function beginning({ faults, overflow, losesNodes = false, late = false }: Scenario): World {
  const member = (name: string): MemberState => ({
    name,
    versions: [undefined],
    linked: true,
    reachable: true,
    read: true,
    outOfService: false,
  });
  const members = [member("west"), member("east")];
  const host = { versions: [undefined] };
  const waiting = overflow === undefined ? {} : { overflow: { host, pending: [], refused: [] } };
  return {
    host,
    members,
    memory: {},
    pending: [],
    faults,
    created: 0,
    abandoned: [],
    ...waiting,
    ...(late ? { late: [] } : {}),
    ...(losesNodes ? { losesNodes } : {}),
    ...(faults === 0 ? { undisturbed: true as const } : {}),
  };
}

/** Returns all possible next events. */
export function events(world: World, scenario: Scenario): Event[] {
  const all = [
    ...controllerEvents(world, scenario),
    ...overflowEvents(world, scenario),
    ...hostEvents(world),
    ...lateEvents(world),
    ...settleEvents(world),
    ...(scenario.forgets === true ? membership(world).free : []),
    ...(scenario.restores === true ? restoration(world).free : []),
    ...userEvents(world, scenario),
    ...world.members.flatMap((member) => [...linkEvents(world, member), ...memberEvents(world, member)]),
  ];
  const faults = world.faults === 0 ? [] : faultEvents(world, scenario);
  const spent = faults.map(({ what, world: after }) => ({
    what: `${what} (fault)`,
    world: { ...after, faults: world.faults - 1 },
  }));
  return [...all, ...spent].filter((event) => event.world !== world);
}

function controllerEvents(world: World, { decide }: Scenario): Event[] {
  const found: Event[] = [];
  if (world.host.versions.length > 1) found.push({ what: "host: seen", world: seeHost(world) });
  if (Object.values(world.memory).some(({ attempts }) => Object.keys(attempts).length > 0)) {
    found.push({ what: "time passes", world: muchLater(world) });
  }
  const planned = world.pending.length > 0 ? world : plan(world, decide);
  if (planned === undefined) return found;
  for (const turn of turns(planned)) {
    const name = stepName(turn);
    for (const fate of fates(turn).free) found.push({ what: `${name}: ${fate}`, world: execute(turn, fate) });
  }
  return found;
}

/** Returns the world after all waits: requests that have not happened by now never will. */
export function muchLater(world: World): World {
  const { overflow, late } = world;
  return {
    ...world,
    memory: later(world.memory),
    ...(late === undefined ? {} : { late: [] }),
    ...(overflow === undefined ? {} : { overflow: { ...overflow, refused: [] } }),
  };
}

function overflowEvents(world: World, scenario: Scenario): Event[] {
  const found: Event[] = [];
  if ((world.overflow?.host.versions.length ?? 0) > 1) found.push({ what: "waiting: seen", world: seeWaiting(world) });
  const planned = plannedOverflow(world, scenario);
  if (planned === undefined) return found;
  const name = overflowName(planned);
  for (const fate of overflowFates(planned).free) {
    found.push({ what: `${name}: ${fate}`, world: executeOverflow(planned, fate) });
  }
  return found;
}

/** Returns the overflow controller's decision under way, or its next one. */
export function plannedOverflow(world: World, { overflow: decide }: Scenario): World | undefined {
  if (world.overflow === undefined || decide === undefined) return undefined;
  if (world.overflow.pending.length > 0) return world;
  return planOverflow(world, decide, (pod) => ranked(observe(world, pod)));
}

function overflowName({ overflow }: World): string {
  const [step] = overflow?.pending ?? [];
  return step === undefined ? "look" : `${step.type} ${step.uid} ${step.member}`;
}

function faultEvents(world: World, scenario: Scenario): Event[] {
  const { decide } = scenario;
  const found: Event[] = [{ what: "controller: killed", world: restart(world) }];
  const planned = world.pending.length > 0 ? world : plan(world, decide);
  for (const turn of planned === undefined ? [] : turns(planned)) {
    const name = stepName(turn);
    for (const fate of fates(turn).faults) found.push({ what: `${name}: ${fate}`, world: execute(turn, fate) });
    if (scenario.late === true) found.push(...lateFaults(turn));
  }
  const overflowing = plannedOverflow(world, scenario);
  if (overflowing !== undefined) {
    const name = overflowName(overflowing);
    for (const fate of overflowFates(overflowing).faults) {
      found.push({ what: `${name}: ${fate}`, world: executeOverflow(overflowing, fate) });
    }
  }
  if (scenario.forgets === true) found.push(...membership(world).faults);
  if (scenario.restores === true) found.push(...restoration(world).faults);
  for (const member of world.members) {
    const { name } = member;
    const slot = truth(member);
    if (member.linked) {
      found.push({ what: `${name}: cut off`, world: changeMember(world, name, (m) => ({ ...m, linked: false })) });
    } else if (!member.outOfService) {
      found.push({ what: `${name}: out of service`, world: outOfService(world, name) });
    }
    if (slot === undefined && world.members.every((other) => !isForeign(truth(other)))) {
      found.push({ what: `${name}: a pod that is not Legation's`, world: inMember(world, name, foreignPod) });
    }
    if (scenario.unmarks === true && slot !== undefined && isOnRecord(world, slot)) {
      found.push({ what: `${name}: its marks taken off`, world: inMember(world, name, () => withoutMarks(slot)) });
    }
    if (slot !== undefined && !isForeign(slot) && !isDeleting(slot)) {
      const uid = ownerOf(slot)?.uid ?? "";
      const gone = inMember(world, name, (pod) => deletePod(pod));
      found.push({ what: `${name}: deleted there`, world: marked(gone, `deleted:${uid}`) });
      if (slot.status?.phase === "Running") {
        const forced = inMember(world, name, () => undefined);
        found.push({ what: `${name}: deleted there by force`, world: marked(forced, `deleted:${uid}`) });
      }
    }
  }
  return found;
}

function userEvents(world: World, { pods, controlled = false, overflow }: Scenario): Event[] {
  const proxy = truth(world.host);
  if (proxy === undefined) {
    if (world.created === pods) return [];
    const created = world.created + 1;
    const uid = `p${created}`;
    const pod = overflow === undefined ? newProxy(uid, controlled) : newOverflowPod(uid);
    return [{ what: "create", world: { ...onHost(world, pod), created } }];
  }
  const { uid, deletionGracePeriodSeconds: grace } = proxy.metadata;
  const found: Event[] = [];
  if (!isDeleting(proxy)) found.push({ what: "delete", world: onHost(world, deletePod(proxy)) });
  if (grace !== 0 && isBound(proxy)) {
    const forced = onHost(world, deletePod(proxy, { graceSeconds: 0 }));
    found.push({ what: "delete by force", world: marked(forced, uid) });
  }
  // The pod garbage collector (gcUnscheduledTerminating).
  if (isDeleting(proxy) && !isBound(proxy) && !isTerminal(proxy)) {
    found.push({ what: "collected", world: onHost(world, withStatus(proxy, { phase: "Failed" })) });
  }
  return found;
}

function linkEvents(world: World, { name, linked, reachable, read, versions, left }: MemberState): Event[] {
  if (left === true) return [];
  const change = (what: string, parts: Partial<MemberState>): Event => ({
    what: `${name}: ${what}`,
    world: changeMember(world, name, (member) => ({ ...member, ...parts })),
  });
  if (!linked)
    return [change("linked", { linked: true }), ...(reachable ? [change("given up", { reachable: false })] : [])];
  const found: Event[] = [];
  if (!read || versions.length > 1) found.push({ what: `${name}: seen`, world: seeMember(world, name) });
  if (read && !reachable) found.push(change("reachable", { reachable: true }));
  return found;
}

/** Returns the events of the member's scheduler and kubelet. */
export function memberEvents(world: World, member: MemberState): Event[] {
  const { name } = member;
  const slot = truth(member);
  if (slot === undefined || isForeign(slot)) return [];
  const event = (what: string, next: Slot): Event => ({
    what: `${name}: ${what}`,
    world: inMember(world, name, () => next),
  });
  if (isDeleting(slot)) {
    if (isTerminal(slot) || slot.status?.phase === "Pending") return [event("gone", undefined)];
    return [event("stopped", ended(slot, "Failed"))];
  }
  if (!isBound(slot)) {
    return [
      event("scheduled", scheduled(slot)),
      ...(slot.status?.conditions === undefined ? [event("unschedulable", unschedulable(slot))] : []),
    ];
  }
  if (slot.status?.phase === "Pending") return [event("running", running(slot))];
  return slot.status?.phase === "Running" ? [event("succeeded", ended(slot, "Succeeded"))] : [];
}

function outOfService(world: World, name: string): World {
  const proxy = truth(world.host);
  const out = changeMember(world, name, (member) => ({ ...member, outOfService: true }));
  return proxy === undefined ? out : marked(out, proxy.metadata.uid);
}

/** Reports whether the pod is the proxy's recorded delegate, with work left to do. */
function isOnRecord({ host }: World, slot: Stored<Pod>): boolean {
  const proxy = truth(host);
  if (proxy === undefined || recorded(proxy).uid !== slot.metadata.uid) return false;
  return !isDeleting(slot) && !isTerminal(slot);
}

/** Reports whether the pod is foreign. */
export function isForeign(slot: Slot): boolean {
  return slot !== undefined && ownerOf(slot) === undefined;
}

function stepName({ pending: [step] }: World): string {
  if (step === undefined) return "look";
  const details = Object.entries(step).filter(([, value]) => typeof value !== "object");
  return (
    details.map(([, value]) => value).join(" ") +
    ("patch" in step && "status" in step.patch ? ` ${String(step.patch.status.phase)}` : "")
  );
}
