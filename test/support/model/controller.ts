import type { ObjectRef, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { Action, DelegationDecision } from "../../../src/controllers/delegation/decision/decision.ts";
import { isBoundWithDelegate, isNewlyRecorded } from "../../../src/controllers/delegation/decision/delegates.ts";
import { hasProxy, type MemberView, type View } from "../../../src/controllers/delegation/decision/view.ts";
import { onDemand } from "../../../src/controllers/delegation/observe.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { madeByHost, ownerOf, toDelegate } from "../../../src/pods/delegate.ts";
import { asksHostFirst, isOverflow } from "../../../src/pods/overflow.ts";
import { isBound } from "../../../src/pods/pod-state.ts";
import { specForNodesOf } from "../../../src/pods/virtual-node-terms.ts";
import { bindPod, deletePod, holdPod, meets, patchStatus, recordOn, releasePod } from "./api-server.ts";
import { isSelected, recorded, same, withMarks } from "./pods.ts";
import { NOW, remember } from "./recollection.ts";
import {
  changeMember,
  freeUid,
  inMember,
  type MemberState,
  memberOf,
  onHost,
  type Step,
  shown,
  shownProxy,
  truth,
  type World,
  waiting,
} from "./world.ts";

/** The function under test. */
export type Decide = (observed: View, now: number) => DelegationDecision;

/**
 * The fate of a request: done and answered; done, with its response lost; not done and not answered; never sent,
 * as its sender knows; given up, and possibly done later; refused for good.
 */
export type Fate = "done" | "unanswered" | "vanished" | "late" | "not sent" | "refused";

const HOST = { name: "host", id: "host-id" };
const REF: ObjectRef = { namespace: "team", name: "web-0" };
const PLENTY = { pods: 100, cpu: 100, memory: 1e12 };
// They report, and change nothing that a decision depends on.
const TOLD: ReadonlySet<Step["type"]> = new Set(["report", "announce"]);

/** Observes and decides, as one moment. Undefined when there is nothing to do. */
export function plan(world: World, decide: Decide): World | undefined {
  const proxy = shownProxy(world.host);
  const members = viewsOf(world).map(({ connection }) => connection);
  if (proxy === undefined && members.every(({ delegate }) => delegate === undefined)) {
    if (world.members.every(({ departed }) => departed === undefined)) return undefined;
    return { ...world, members: world.members.map(({ departed: _, ...member }) => member) };
  }
  const uid = proxy?.metadata.uid ?? "";
  const holder = members.find(({ delegate }) => delegate !== undefined && ownerOf(delegate)?.uid === uid);
  const waits = proxy !== undefined && !isBound(proxy);
  const memory =
    holder !== undefined && waits
      ? remember(world.memory, (memories) => memories.noteFound(uid, holder.name, NOW))
      : world.memory;
  const { actions } = decide(observe({ ...world, memory }, proxy), NOW);
  const pending = actions.filter(({ type }) => !TOLD.has(type)).flatMap((action) => requestsOf(action, proxy));
  return pending.length === 0 && memory === world.memory ? undefined : { ...world, memory, pending };
}

/** Returns one request for each member that is asked at once. */
function requestsOf(action: Action, proxy: Stored<Pod> | undefined): readonly Step[] {
  if (action.type === "create") {
    const { member } = action;
    const spec = proxy?.spec && specForNodesOf({ name: member, labels: {} }, proxy.spec);
    return proxy === undefined ? [] : [{ ...action, delegate: toDelegate(proxy, HOST, { mode: "none" }, spec) }];
  }
  if (action.type !== "readPreviousDelegate") return [action];
  const { proxyUid, members } = action;
  return members.map(({ name }) => ({ type: "asked", member: name, proxyUid }));
}

/** Returns the world with each request in front that may be answered next: any of those sent at once. */
export function turns(world: World): World[] {
  const { pending } = world;
  if (pending[0]?.type !== "asked") return [world];
  const atOnce = pending.filter(({ type }) => type === "asked");
  return atOnce.map((step) => ({ ...world, pending: [step, ...pending.filter((other) => other !== step)] }));
}

/** Returns the view of a decision about the pod: a proxy, or a pod in overflow mode that may become one. */
export function observe(world: World, proxy: Stored<Pod> | undefined): View {
  const sources = viewsOf(world);
  const view: View = {
    ref: REF,
    proxy,
    members: sources.map(({ connection }) => connection),
    memory: world.memory[proxy?.metadata.uid ?? ""] ?? { fresh: true, attempts: {} },
  };
  return hasProxy(view) && !isBound(view.proxy)
    ? onDemand(
        view,
        sources.map(({ candidate }) => candidate),
        { excludes: () => undefined },
        () => undefined,
      )
    : view;
}

interface Observed {
  readonly candidate: Candidate;
  readonly connection: MemberView;
}

function viewsOf({ members, losesNodes }: World): Observed[] {
  return members.filter(({ left }) => left !== true).map((member) => sourceOf(member, losesNodes === true));
}

function sourceOf(member: MemberState, losesNodes: boolean): Observed {
  const { name, reachable, read, departed } = member;
  const pod = read ? shown(member) : undefined;
  const delegate = pod !== undefined && madeByHost(pod, HOST.id) ? pod : undefined;
  const closed = { reason: "ClusterNotReady", message: "it does not answer" } as const;
  const connection = {
    name,
    reachable,
    reachableSince: member.unsettled === true ? NOW : 0,
    read,
    ...(delegate === undefined ? {} : { delegate }),
    ...(departed === undefined ? {} : { departed }),
    ...(member.outOfService ? { outOfService: true } : {}),
    ...(losesNodes && !reachable ? { notReady: true } : {}),
    scheduleTimeoutMs: 30_000,
    nodesVersion: 0,
  };
  const candidate = {
    name,
    labels: {},
    allocatable: PLENTY,
    largestNode: PLENTY,
    used: {},
    ...(reachable && read ? {} : { closed }),
  };
  return { candidate, connection };
}

/** Returns the possible fates of the next step: at least one free one, and worse ones for one fault each. */
export function fates(world: World): { readonly free: readonly Fate[]; readonly faults: readonly Fate[] } {
  const [step] = world.pending;
  if (step === undefined || isMemoryOnly(step)) return { free: ["done"], faults: [] };
  const creates = step.type === "create";
  const member = "member" in step && step.type !== "bind" && step.type !== "sweep" ? step.member : undefined;
  if (member !== undefined && memberOf(world, member).left === true) return { free: ["not sent"], faults: [] };
  if (member !== undefined && !memberOf(world, member).linked) {
    return { free: creates ? ["not sent", "vanished"] : ["not sent"], faults: ["unanswered"] };
  }
  return { free: ["done"], faults: creates ? ["unanswered", "vanished", "refused"] : ["unanswered", "not sent"] };
}

/** Does the next step, as `execute.ts` and `exchange.ts` do; a failure ends the reconcile. */
export function execute(world: World, fate: Fate): World {
  const [step, ...pending] = world.pending;
  if (step === undefined) return world;
  const done = fate === "done" || fate === "unanswered" ? perform({ ...world, pending }, step) : { ...world, pending };
  let next = step.type === "create" ? created(world, { ...done, pending }, step, fate) : done;
  if (step.type === "bind" && fate !== "not sent") {
    const { type: _, proxyUid, ...binding } = step;
    next = { ...next, memory: remember(next.memory, (memories) => memories.noteSent(proxyUid, { binding })) };
  }
  if (step.type === "recordDelegate" && fate !== "not sent") {
    const { proxyUid, delegateUid, memberNode } = step;
    const recording = { delegateUid, memberNode };
    next = { ...next, memory: remember(next.memory, (memories) => memories.noteSent(proxyUid, { recording })) };
  }
  // The proxy has changed since: everything is decided anew.
  if (fate === "done" && step.type === "status" && !meets(truth(world.host), step)) return { ...next, pending: [] };
  if (fate === "done" || fate === "refused") return followed(next, world, step, fate);
  // Members that were asked at the same time may still answer.
  return step.type === "asked" ? next : { ...next, pending: [] };
}

type StepOf<Type extends Step["type"]> = Extract<Step, { readonly type: Type }>;

/** Returns the world after the API server has done the step. */
export function perform(world: World, step: Step): World {
  const proxy = truth(world.host);
  switch (step.type) {
    case "create": {
      const uid = freeUid(world, step.member);
      const { metadata } = step.delegate;
      const pod = same({
        ...step.delegate,
        metadata: { ...metadata, name: "web-0", uid, resourceVersion: "" },
        status: { phase: "Pending" },
      });
      return inMember(world, step.member, (slot) => slot ?? pod);
    }
    case "delete":
      return inMember(world, step.member, (slot) => deletePod(slot, step));
    case "swept":
      return inMember(world, step.member, (slot) => deletePod(slot, { uid: step.uid }));
    case "restoreMarks":
      return inMember(world, step.member, (slot) => (meets(slot, { uid: step.delegateUid }) ? withMarks(slot) : slot));
    case "bind":
      return onHost(world, bindPod(proxy, step));
    case "addFinalizer":
      return onHost(world, holdPod(proxy, step.proxyUid));
    case "recordDelegate":
      return onHost(world, recordOn(proxy, step));
    case "status":
      return meets(proxy, step) ? onHost(world, patchStatus(proxy, step.patch)) : world;
    case "deleteProxy":
      return onHost(world, deletePod(proxy, { uid: step.proxyUid, graceSeconds: 0 }));
    case "removeFinalizer":
      return onHost(world, releasePod(proxy, step.proxyUid));
    default:
      return world;
  }
}

/** Applies an answer to the memory, and adds the requests that follow. */
function followed(world: World, before: World, step: Step, fate: Fate): World {
  const { pending } = world;
  const forgets = (change: Parameters<typeof remember>[1]): World => ({
    ...world,
    memory: remember(world.memory, change),
  });
  switch (step.type) {
    case "reserve":
      return forgets((memories) => memories.noteReserved(step.proxyUid, step.member));
    case "noteRefusal":
      return forgets((memories) => memories.noteRefusal(step.proxyUid, step.refusal, step.nodesVersion, NOW));
    case "bind":
      // A conflict is no success, and forgets nothing. Without a recorded delegate, the search goes on.
      if (step.delegateUid === undefined || truth(world.host) === truth(before.host)) return world;
      return forgets((memories) => memories.noteDone(step.proxyUid, "binding"));
    case "recordDelegate":
      // A conflict is decided anew.
      if (meets(truth(before.host), { uid: step.proxyUid, resourceVersion: step.resourceVersion }))
        return forgets((memories) => memories.noteDone(step.proxyUid, "recording"));
      return before.memory[step.proxyUid]?.recording === undefined
        ? { ...forgets((memories) => memories.noteNotDone(step.proxyUid, "recording")), pending: [] }
        : { ...world, pending: [] };
    case "sweep": {
      if (truth(world.host)?.metadata.uid === step.proxyUid || world.held?.includes(step.uid) === true) return world;
      return { ...world, pending: [{ type: "swept", member: step.member, uid: step.uid }, ...pending] };
    }
    case "confirmCreated": {
      const pod = truth(memberOf(world, step.member));
      if (pod !== undefined && ownerOf(pod)?.uid === step.proxyUid) return world;
      return forgets((memories) => {
        if (step.refusal !== undefined) memories.noteRefusal(step.proxyUid, step.refusal, 0, NOW);
        memories.noteAbsent(step.proxyUid);
      });
    }
    case "asked": {
      const pod = truth(memberOf(world, step.member));
      return forgets((memories) => {
        if (pod !== undefined && ownerOf(pod)?.uid === step.proxyUid)
          memories.noteUncertain(step.proxyUid, step.member);
        else memories.noteConfirmedAbsent(step.proxyUid, step.member);
      });
    }
    case "restoreMarks":
      if (truth(memberOf(before, step.member))?.metadata.uid === step.delegateUid) return world;
      return forgets((memories) => memories.noteGone(step.proxyUid, step.delegateUid));
    case "taken":
      return taken(world, step);
    case "create":
      if (fate === "refused") {
        if (!mayBeThere(before, step)) return world;
        return {
          ...world,
          pending: [{ type: "confirmCreated", member: step.member, proxyUid: step.proxyUid }, ...pending],
        };
      }
      return truth(memberOf(before, step.member)) === undefined
        ? world
        : { ...world, pending: [{ type: "taken", member: step.member, proxyUid: step.proxyUid }, ...pending] };
    default:
      return world;
  }
}

/** Reports whether an earlier create was sent there, and its result has not been seen. */
function mayBeThere(
  { memory }: World,
  { member, proxyUid }: { readonly member: string; readonly proxyUid: string },
): boolean {
  return memory[proxyUid]?.uncertain === member;
}

/** Notes a create in memory, before and after its request. */
function created(before: World, world: World, { member, proxyUid, parked }: StepOf<"create">, fate: Fate): World {
  const free = truth(memberOf(before, member)) === undefined;
  const memory = remember(world.memory, (memories) => {
    memories.noteAttempt(proxyUid, member, NOW, parked);
    if (fate === "unanswered" || fate === "vanished" || fate === "late")
      memories.noteUncertain(proxyUid, member, { at: NOW, message: "lost" });
    else if (fate === "done" && free) memories.noteUncertain(proxyUid, member);
    if (fate !== "refused" || mayBeThere(before, { member, proxyUid })) return;
    memories.noteAbsent(proxyUid);
    memories.noteRefusal(proxyUid, { cluster: member, reason: "RefusedByMember", message: "no" }, 0, NOW);
  });
  return { ...world, memory };
}

function taken(world: World, { member, proxyUid }: StepOf<"taken">): World {
  const pod = truth(memberOf(world, member));
  if (pod === undefined) return world;
  const memory = remember(world.memory, (memories) => {
    if (!madeByHost(pod, HOST.id)) {
      memories.noteAbsent(proxyUid);
      memories.noteRefusal(proxyUid, { cluster: member, reason: "NameTaken", message: "taken" }, 0, NOW);
    } else if (ownerOf(pod)?.uid === proxyUid) memories.noteUncertain(proxyUid, member);
  });
  return { ...world, memory };
}

/** Reports whether the step cannot fail. */
function isMemoryOnly({ type }: Step): boolean {
  return type === "reserve" || type === "noteRefusal";
}

/** The controller is killed and another one leads: it has read the host, and no member yet. */
export function restart(world: World): World {
  const proxy = truth(world.host);
  const members = world.members.map(({ departed: _, ...member }) => ({
    ...member,
    reachable: false,
    read: false,
    ...(world.late === undefined ? {} : { unsettled: true as const }),
    versions: [undefined, truth(member)],
  }));
  const inherits =
    proxy !== undefined &&
    !isBoundWithDelegate(proxy) &&
    !isOverflow(proxy) &&
    !(isBound(proxy) && asksHostFirst(proxy));
  const memory = inherits ? remember({}, (memories) => memories.noteInherited(proxy.metadata.uid)) : {};
  const host = { versions: [proxy] };
  const overflow =
    world.overflow === undefined
      ? {}
      : { overflow: { host: { versions: [waiting(proxy)] }, pending: [], refused: [] } };
  return { ...world, host, members, memory, pending: [], ...overflow };
}

/** Delivers the next event of the host's watch. */
export function seeHost(world: World): World {
  const [before, ...versions] = world.host.versions;
  const [next] = versions;
  if (versions.length === 0) return world;
  const gone = before !== undefined && before.metadata.uid !== next?.metadata.uid;
  const ends = gone || (before !== undefined && next !== undefined && isNewlyRecorded(before, next));
  const memory = ends ? remember(world.memory, (memories) => memories.forget(before.metadata.uid)) : world.memory;
  return { ...world, host: { versions }, memory };
}

/** Delivers the next event of a member's watch, or its list. */
export function seeMember(world: World, name: string): World {
  return changeMember(world, name, (member) => {
    if (!member.read) return { ...member, read: true, reachable: true, versions: [truth(member)] };
    const [before, ...versions] = member.versions;
    if (versions.length === 0) return member;
    const [next] = versions;
    const gone = before !== undefined && (before.metadata.uid !== next?.metadata.uid || !isSelected(next));
    // Only the last state of a recorded delegate is ever read.
    const asked =
      gone && world.host.versions.some((pod) => pod !== undefined && recorded(pod).uid === before.metadata.uid);
    return { ...member, versions, ...(asked ? { departed: before } : {}) };
  });
}
