import { ownerOf } from "../../../src/pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../../src/pods/phase.ts";
import { deletePod, type Slot } from "./api-server.ts";
import { type Decide, execute, fates, plan, restart, seeHost, seeMember } from "./controller.ts";
import { ended, foreignPod, newProxy, running, scheduled, unschedulable, withStatus } from "./pods.ts";
import { later } from "./recollection.ts";
import { changeMember, inMember, type MemberState, onHost, truth, type World } from "./world.ts";

/** One thing that can happen next, and the world after it. */
export interface Event {
  readonly what: string;
  readonly world: World;
}

/** What the exploration is about. */
export interface Scenario {
  readonly decide: Decide;
  /** Pods that are created under the one name, one after the other. */
  readonly pods: number;
  /** Faults on one path. */
  readonly faults: number;
  /** They have a controller that replaces them. */
  readonly controlled?: boolean;
  /** Begins when the first of them runs, and nothing has gone wrong. */
  readonly running?: boolean;
}

/** The world before anything: two members that answer and hold nothing. */
export function beginning({ faults }: Scenario): World {
  const member = (name: string): MemberState => ({
    name,
    versions: [undefined],
    linked: true,
    reachable: true,
    read: true,
    outOfService: false,
  });
  const members = [member("west"), member("east")];
  return { host: { versions: [undefined] }, members, memory: {}, pending: [], faults, created: 0, abandoned: [] };
}

/** Everything that can happen next. */
export function events(world: World, scenario: Scenario): Event[] {
  const all = [
    ...controllerEvents(world, scenario),
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
  if (Object.values(world.memory).some(({ attempts }) => attempts.size > 0)) {
    found.push({ what: "time passes", world: { ...world, memory: later(world.memory) } });
  }
  const planned = world.pending.length > 0 ? world : plan(world, decide);
  if (planned === undefined) return found;
  const name = planned.pending[0] === undefined ? "look" : stepName(planned);
  for (const fate of fates(planned).free) found.push({ what: `${name}: ${fate}`, world: execute(planned, fate) });
  return found;
}

function faultEvents(world: World, { decide }: Scenario): Event[] {
  const found: Event[] = [{ what: "controller: killed", world: restart(world) }];
  const planned = world.pending.length > 0 ? world : plan(world, decide);
  if (planned !== undefined) {
    const name = stepName(planned);
    for (const fate of fates(planned).faults) found.push({ what: `${name}: ${fate}`, world: execute(planned, fate) });
  }
  for (const member of world.members) {
    const { name } = member;
    const slot = truth(member);
    if (member.linked) {
      found.push({ what: `${name}: cut off`, world: changeMember(world, name, (m) => ({ ...m, linked: false })) });
    } else if (!member.outOfService) {
      found.push({ what: `${name}: out of service`, world: outOfService(world, name) });
    }
    if (slot === undefined && world.members.every((other) => !isForeign(truth(other)))) {
      found.push({ what: `${name}: somebody else's pod`, world: inMember(world, name, foreignPod) });
    }
    if (slot !== undefined && !isForeign(slot) && !isDeleting(slot)) {
      const uid = ownerOf(slot)?.uid ?? "";
      const gone = inMember(world, name, (pod) => deletePod(pod));
      found.push({ what: `${name}: deleted there`, world: marked(gone, `deleted:${uid}`) });
    }
  }
  return found;
}

function userEvents(world: World, { pods, controlled = false }: Scenario): Event[] {
  const proxy = truth(world.host);
  if (proxy === undefined) {
    if (world.created === pods) return [];
    const created = world.created + 1;
    return [{ what: "create", world: { ...onHost(world, newProxy(`p${created}`, controlled)), created } }];
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

function linkEvents(world: World, { name, linked, reachable, read, versions }: MemberState): Event[] {
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

/** Its scheduler, and its kubelet. */
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

function marked(world: World, mark: string): World {
  return world.abandoned.includes(mark) ? world : { ...world, abandoned: [...world.abandoned, mark].sort() };
}

/** Not Legation's. */
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
