import { OVERFLOW_LABEL_VALUE, PROXY_LABEL, PROXY_LABEL_VALUE, virtualNodeName } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { View as PlacementObserved } from "../../../src/controllers/delegation/decision/view.ts";
import type { Observed, OverflowDecision } from "../../../src/controllers/overflow/model.ts";
import { isOverflow } from "../../../src/pods/overflow.ts";
import { isBound, isDeleting, isTerminal, unschedulableMessage } from "../../../src/pods/pod-state.ts";
import { pod as builtPod } from "../builders/pod.ts";
import { deletePod, meets, type Slot } from "./api-server.ts";
import { ended, running, same, withMetadata, withStatus } from "./pods.ts";
import { NOW, remember } from "./recollection.ts";
import {
  type Event,
  memberOf,
  type OverflowState,
  type OverflowStep,
  onHost,
  shown,
  shownProxy,
  truth,
  type World,
} from "./world.ts";

/** The function under test. */
export type DecideOverflow = (observed: Observed, now: number) => OverflowDecision;

/** The fate of a request; see `Fate` in controller.ts. */
type Fate = "done" | "unanswered" | "not sent" | "refused";

const HOST_NODE = "host-node";

/** Returns an ordinary pod with the mark of overflow mode, as the webhook leaves it on the host. */
export function newOverflowPod(uid: string): Stored<Pod> {
  return same(builtPod({ name: "web-0", uid, metadata: { labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } } }));
}

/** Reports whether the host itself runs the pod, or is about to. */
export function runsOnHost({ spec }: Pod): boolean {
  return spec?.nodeName === HOST_NODE;
}

/** Observes and decides, as one moment. Undefined when there is nothing to do. */
export function planOverflow(
  world: World,
  decide: DecideOverflow,
  view: (pod: Stored<Pod>) => PlacementObserved,
): World | undefined {
  const { overflow } = world;
  const pod = overflow === undefined ? undefined : shown(overflow.host);
  if (overflow === undefined || pod === undefined) return undefined;
  const { actions } = decide(
    {
      pod,
      supported: true,
      optedIn: true,
      // Any moment after the scheduler's answer may be the one.
      seen: { unplacedAt: NOW },
      afterMs: 0,
      reported: true,
      view: () => withRefusals(view(pod), overflow),
    },
    NOW,
  );
  const pending = actions.flatMap((action): OverflowStep[] => {
    if (action.type !== "overflow") return [];
    const { uid, resourceVersion, member } = action;
    return [
      { type: "trial", uid, resourceVersion, member },
      { type: "overflow", uid, resourceVersion, member },
    ];
  });
  return pending.length === 0 ? undefined : { ...world, overflow: { ...overflow, pending } };
}

function withRefusals(view: PlacementObserved, { refused }: OverflowState): PlacementObserved {
  const members = view.members.map((member) => {
    if (!refused.includes(member.name)) return member;
    const refusal = { cluster: member.name, reason: "RefusedByMember", message: "no" } as const;
    return { ...member, refusedBefore: { refusal, until: NOW + 1 } };
  });
  return { ...view, members };
}

/** Returns the possible fates of the next step: at least one free one, and worse ones for one fault each. */
export function overflowFates(world: World): { readonly free: readonly Fate[]; readonly faults: readonly Fate[] } {
  const [step] = world.overflow?.pending ?? [];
  if (step === undefined) return { free: [], faults: [] };
  if (step.type === "overflow") return { free: ["done"], faults: ["unanswered", "not sent"] };
  return memberOf(world, step.member).linked
    ? { free: ["done"], faults: ["unanswered", "refused"] }
    : { free: ["not sent"], faults: [] };
}

/** Does the next step, as the overflow controller's `execute.ts` does; a failure ends the reconcile. */
export function executeOverflow(world: World, fate: Fate): World {
  const { overflow } = world;
  const [step, ...pending] = overflow?.pending ?? [];
  if (overflow === undefined || step === undefined) return world;
  const { uid, member } = step;
  const left = { ...world, overflow: { ...overflow, pending: [] } };
  if (step.type === "trial") {
    const reserved = { ...left, memory: remember(world.memory, (memories) => memories.noteAttempt(uid, member, NOW)) };
    if (fate === "refused" || (fate === "done" && truth(memberOf(world, member)) !== undefined)) {
      const refused = [...new Set([...overflow.refused, member])].sort();
      return givenUp({ ...reserved, overflow: { ...overflow, refused, pending: [] } }, uid);
    }
    return fate === "done" ? { ...reserved, overflow: { ...overflow, pending } } : givenUp(reserved, uid);
  }
  const bound = fate === "not sent" ? left : onHost(left, bindOverflow(truth(world.host), step));
  const answered = fate === "done" && truth(bound.host) !== truth(world.host);
  return answered ? bound : givenUp(bound, uid);
}

/** Like the delegation controller's `giveUp`: nothing if its own watch has shown the proxy meanwhile. */
function givenUp(world: World, uid: string): World {
  if (shownProxy(world.host)?.metadata.uid === uid) return world;
  const memory = remember(world.memory, (memories) => {
    memories.noteAbsent(uid);
    memories.forget(uid);
  });
  return { ...world, memory };
}

/** The Binding that makes a pod a proxy; a conflict changes nothing. */
function bindOverflow(slot: Slot, { uid, resourceVersion, member }: OverflowStep): Slot {
  if (!meets(slot, { uid, resourceVersion }) || isBound(slot) || isDeleting(slot)) return slot;
  const { labels, annotations } = slot.metadata;
  const proxy = withMetadata(slot, {
    labels: { ...labels, [PROXY_LABEL]: PROXY_LABEL_VALUE },
    annotations: { ...annotations, "legation.dev/cluster": member },
  });
  return boundTo(proxy, virtualNodeName(member));
}

function boundTo(slot: Stored<Pod>, nodeName: string): Stored<Pod> {
  const conditions = [{ type: "PodScheduled", status: "True" }];
  return same({ ...slot, spec: { containers: [], ...slot.spec, nodeName }, status: { ...slot.status, conditions } });
}

/** Delivers the next event of the watch of waiting pods, which is separate from the proxies'. */
export function seeWaiting(world: World): World {
  const { overflow } = world;
  const [, ...versions] = overflow?.host.versions ?? [];
  return overflow === undefined || versions.length === 0
    ? world
    : { ...world, overflow: { ...overflow, host: { versions } } };
}

/** Returns the events of the host's scheduler, which may place the pod at any moment, and of its kubelet. */
export function hostEvents(world: World): Event[] {
  const slot = truth(world.host);
  if (world.overflow === undefined || slot === undefined) return [];
  const event = (what: string, next: Slot): Event => ({ what: `host: ${what}`, world: onHost(world, next) });
  if (runsOnHost(slot)) {
    if (isDeleting(slot)) return [event("stopped", deletePod(slot, { graceSeconds: 0 }))];
    if (slot.status?.phase === "Pending") return [event("running", running(slot))];
    return isTerminal(slot) ? [] : [event("succeeded", ended(slot, "Succeeded"))];
  }
  if (isBound(slot) || isDeleting(slot) || !isOverflow(slot)) return [];
  const nominated = (nodeName: string): Stored<Pod> => withStatus(slot, { nominatedNodeName: nodeName });
  const found = [event("scheduled", boundTo(slot, HOST_NODE))];
  if (unschedulableMessage(slot) === undefined) {
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" };
    return [event("unschedulable", withStatus(slot, { conditions: [condition] })), ...found];
  }
  const { nominatedNodeName = "" } = slot.status ?? {};
  return nominatedNodeName === ""
    ? [event("makes room", nominated(HOST_NODE)), ...found]
    : [event("has made no room", nominated("")), ...found];
}
