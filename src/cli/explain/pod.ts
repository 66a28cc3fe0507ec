import {
  ADDED_CONDITION,
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PROXY_LABEL,
  REFUSED_CONDITION,
  SCHEDULER_NAME_ANNOTATION,
} from "../../api/keys.ts";
import {
  type ContainerStatus,
  type KubeEvent,
  type Namespace,
  type Pod,
  type Stored,
  timestamp,
} from "../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../api/overflow.ts";
import { asksHostFirst, isOverflow } from "../../pods/overflow.ts";
import {
  conditionOf,
  controllerOf,
  deletionAskedAt,
  deletionGrace,
  isBound,
  isGated,
  isTerminal,
  unschedulableMessage,
} from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import { type ToldEvent, toldEvents } from "./events.ts";
import type { Trouble } from "./model.ts";
import { type OwnWorkload, whyNotDelegated } from "./not-delegated.ts";
import { placed, pulled, type Told } from "./placed.ts";
import { reasonLine, reasonsOf } from "./reasons.ts";
import { inMember, inOrder, onHost, type Stamp, type Station, station } from "./station.ts";
import { addedTroubles, exitWords, waitWords } from "./trouble.ts";
import { gatesOf, UNREPORTED } from "./waiting.ts";

/** A pod's life so far, oldest step first. */
export interface Journey {
  readonly pod: string;
  readonly delegated: boolean;
  readonly cluster: string | undefined;
  readonly delegateUid: string | undefined;
  readonly memberNode: string | undefined;
  readonly stations: readonly Station[];
  /** Troubles of the pod's member. */
  readonly troubles: readonly Trouble[];
  /** Why the troubles are unknown. Undefined if they are known. */
  readonly notRead?: string | undefined;
  readonly events: readonly ToldEvent[];
}

/** The part of a pod's journey that its member tells. */
interface OfMember extends Pick<Journey, "troubles" | "notRead"> {
  /** When the delegate was made, by the member's clock; RFC 3339. Undefined: not read. */
  readonly delegateMade?: string | undefined;
}

/** The pod's namespace and workload, which decide whether it is delegated. */
export interface Own {
  readonly namespace?: Stored<Namespace> | undefined;
  readonly workload?: OwnWorkload | undefined;
}

/**
 * Builds a pod's journey from the host's objects. The member is the recorded one: a pod that another scheduler bound to a virtual
 * node has none. `own` explains why a pod is not delegated.
 */
export function journeyOf(
  pod: Stored<Pod>,
  events: readonly KubeEvent[],
  own: Own = {},
  { troubles, notRead, delegateMade }: OfMember = { troubles: [] },
): Journey {
  const { name, namespace, annotations = {}, labels = {} } = pod.metadata;
  const delegated = labels[PROXY_LABEL] !== undefined && !isOverflow(pod);
  return {
    pod: `${namespace}/${name}`,
    delegated,
    cluster: annotations[CLUSTER_ANNOTATION],
    delegateUid: annotations[DELEGATE_UID_ANNOTATION],
    memberNode: annotations[MEMBER_NODE_ANNOTATION],
    stations: inOrder([
      ...created(pod, delegated, own),
      ...placing(pod, delegated, { told: events, delegateMade }),
      ...running(pod, events),
      ...added(pod),
      ...refused(pod),
      ...ending(pod),
    ]),
    troubles: [...troubles, ...addedTroubles(pod)],
    notRead,
    events: toldEvents(events),
  };
}

function created(pod: Stored<Pod>, delegated: boolean, { namespace, workload }: Own): Station[] {
  const { creationTimestamp, annotations = {} } = pod.metadata;
  const owner = controllerOf(pod);
  const scheduler = annotations[SCHEDULER_NAME_ANNOTATION];
  const isMarked = delegated || isOverflow(pod);
  const by = owner && `by ${owner.kind} ${owner.name}`;
  const at = onHost(creationTimestamp);
  if (!isMarked) {
    return [station(at, "created; it is not delegated", by, whyNotDelegated(pod.metadata, namespace, workload))];
  }
  return [
    station(at, "created", by),
    station(
      at,
      delegated ? "admitted as a proxy" : "admitted in overflow mode",
      scheduler && `its own scheduler there is ${scheduler}`,
    ),
  ];
}

function placing(pod: Stored<Pod>, delegated: boolean, told: Told): Station[] {
  if (isBound(pod)) return bound(pod, told);
  if (isTerminal(pod)) return [];
  const { lastTransitionTime: at, message } = conditionOf(pod, "PodScheduled") ?? {};
  if (isGated(pod)) return [station(onHost(undefined), "waits for its scheduling gates", `gates: ${gatesOf(pod)}`)];
  if (isOverflow(pod)) return [overflowing(pod, at)];
  if (!delegated) return [station(onHost(undefined), "waits for a scheduler", message)];
  const waits = whyNotPlaced(pod);
  if (waits === undefined) return [station(onHost(undefined), `waits for a member cluster; ${UNREPORTED}`)];
  const reasons = reasonsOf(waits.message ?? "");
  const what = `waits for a member cluster: ${waits.reason}`;
  return [{ ...station(onHost(waits.lastTransitionTime), what, ...reasons.map(reasonLine)), reasons }];
}

function bound(pod: Stored<Pod>, told: Told): Station[] {
  const { annotations = {} } = pod.metadata;
  const at = onHost(conditionOf(pod, "PodScheduled")?.lastTransitionTime);
  const to = `bound to node ${pod.spec?.nodeName}`;
  const cluster = annotations[CLUSTER_ANNOTATION];
  if (cluster === undefined)
    return [station(at, to, isOverflow(pod) ? "this cluster's scheduler was asked first" : undefined)];
  if (annotations[DELEGATE_UID_ANNOTATION] !== undefined) return placed(pod, cluster, told);
  const why = whyNotPlaced(pod)?.message;
  if (asksHostFirst(pod)) {
    return [station(at, `overflowed to ${cluster}; ${to}`, why ?? "its delegate has not been scheduled there yet")];
  }
  const lost = `${cluster} did not answer, and may have the pod: that is known when it answers again`;
  return [station(at, `left with lost member ${cluster}; ${to}`, lost, why)];
}

/** Returns the step of a pod in overflow mode that has no node, with the host scheduler's message. */
function overflowing(pod: Stored<Pod>, since: string | undefined): Station {
  const message = unschedulableMessage(pod);
  const at = onHost(since);
  if (message === undefined)
    return station(onHost(undefined), "waits for this cluster's scheduler, which is asked first");
  const { nominatedNodeName } = pod.status ?? {};
  if (nominatedNodeName)
    return station(at, `waits until this cluster's scheduler has made room on ${nominatedNodeName}`, message);
  const written = pod.metadata.annotations?.[OVERFLOW_AFTER_ANNOTATION];
  const after = written ?? `its namespace's ${OVERFLOW_AFTER_ANNOTATION}, or ${DEFAULT_OVERFLOW_AFTER_SECONDS}s`;
  const next = `delegated when that has lasted for ${after} and a member cluster has room; an event NotOverflowed says why not`;
  return station(at, "this cluster's scheduler has no node for it", message, next);
}

function running(pod: Stored<Pod>, told: readonly KubeEvent[]): Station[] {
  const { startTime, containerStatuses = [], initContainerStatuses = [], phase = "Pending" } = pod.status ?? {};
  const all = [...initContainerStatuses, ...containerStatuses];
  const [started] = all.flatMap(startsOf).sort();
  const restarts = containerStatuses
    .filter(({ restartCount }) => restartCount > 0)
    .map(({ name, restartCount }) => `${name} restarted ${restartCount} times`);
  const waiting = isTerminal(pod) ? [] : all.flatMap(waitWords);
  const ready = conditionOf(pod, "Ready");
  const member = pod.metadata.annotations?.[CLUSTER_ANNOTATION];
  const there = (at: string | undefined): Stamp => inMember(at, member);
  return [
    ...(startTime === undefined ? [] : [station(there(startTime), "accepted by the kubelet")]),
    ...pulled(told, member),
    ...(started === undefined ? [] : [station(there(started), "containers started", ...restarts)]),
    ...(waiting.length === 0 ? [] : [station(there(undefined), `${phase}: containers wait`, ...waiting)]),
    ...(ready?.status === "True" ? [station(there(ready.lastTransitionTime), "ready")] : []),
  ];
}

function startsOf({ state, lastState }: ContainerStatus): string[] {
  const starts = [lastState?.terminated, state?.running, state?.terminated].map((each) => each?.startedAt);
  return starts.filter((at) => at !== undefined);
}

/** Returns the step that names the containers of the delegate that the pod lacks. */
function added(pod: Stored<Pod>): Station[] {
  const { message, lastTransitionTime } = conditionOf(pod, ADDED_CONDITION) ?? {};
  if (message === undefined) return [];
  return [
    station(onHost(lastTransitionTime), `${memberOf(pod) ?? "its member"} added containers`, ...message.split("; ")),
  ];
}

/** Returns the step of a pod for which a cluster refuses a write. */
function refused(pod: Stored<Pod>): Station[] {
  const { status, reason = "", message = "", lastTransitionTime } = conditionOf(pod, REFUSED_CONDITION) ?? {};
  return status === "True" ? [station(onHost(lastTransitionTime), `held up: ${reason}`, ...message.split("; "))] : [];
}

function ending(pod: Stored<Pod>): Station[] {
  const { deletionTimestamp, finalizers = [] } = pod.metadata;
  const { phase, reason, message, containerStatuses = [] } = pod.status ?? {};
  const stations: Station[] = [];
  if (deletionTimestamp !== undefined) {
    const askedAt = deletionAskedAt(pod);
    const at = askedAt === undefined ? deletionTimestamp : timestamp(askedAt);
    const held = finalizers.length === 0 ? undefined : `held by ${finalizers.join(", ")}`;
    stations.push(station(onHost(at), `deletion asked for (grace ${deletionGrace(pod) ?? 0} s)`, held));
  }
  if (isTerminal(pod)) {
    const finished = containerStatuses.flatMap(({ state }) => state?.terminated?.finishedAt ?? []).sort();
    const what = `finished: ${phase}${reason === undefined ? "" : ` (${reason})`}`;
    stations.push(
      station(
        inMember(finished.at(-1), pod.metadata.annotations?.[CLUSTER_ANNOTATION]),
        what,
        message,
        ...containerStatuses.flatMap(exitWords),
      ),
    );
  }
  return stations;
}
