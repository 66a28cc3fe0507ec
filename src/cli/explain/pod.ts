import {
  ADDED_CONDITION,
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  GROUP_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  REFUSED_CONDITION,
  SCHEDULER_NAME_ANNOTATION,
  WISHES_OF_ANNOTATION,
} from "../../api/keys.ts";
import { type KubeEvent, type Namespace, type Pod, type Stored, timestamp } from "../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../api/overflow.ts";
import { isWish } from "../../api/workload-wishes.ts";
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
import { lastOf, type ToldEvent, toldEvents } from "./events.ts";
import type { Trouble } from "./model.ts";
import { type OwnWorkload, whyNotDelegated } from "./not-delegated.ts";
import { reasonLine, reasonsOf } from "./reasons.ts";
import { inMember, inOrder, onHost, type Station, station, UNTIMED } from "./station.ts";
import { addedTroubles, exitWords, waitWords } from "./trouble.ts";
import { gatesOf, isMarked, UNREPORTED } from "./waiting.ts";

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
  told: readonly KubeEvent[],
  own: Own = {},
  { troubles, notRead, delegateMade }: OfMember = { troubles: [] },
): Journey {
  const { name, namespace, annotations = {} } = pod.metadata;
  const cluster = annotations[CLUSTER_ANNOTATION];
  return {
    pod: `${namespace}/${name}`,
    delegated: isMarked(pod),
    cluster,
    delegateUid: annotations[DELEGATE_UID_ANNOTATION],
    memberNode: annotations[MEMBER_NODE_ANNOTATION],
    stations: inOrder([
      ...created(pod, own),
      ...(isBound(pod) ? bound(pod, told, delegateMade) : isTerminal(pod) ? [] : [waiting(pod)]),
      ...running(pod, told, cluster),
      ...marked(pod),
      ...ending(pod, cluster),
    ]),
    troubles: [...troubles, ...addedTroubles(pod)],
    notRead,
    events: toldEvents(told),
  };
}

function created(pod: Stored<Pod>, { namespace, workload }: Own): Station[] {
  const { creationTimestamp, annotations = {} } = pod.metadata;
  const owner = controllerOf(pod);
  const by = owner && `by ${owner.kind} ${owner.name}`;
  const at = onHost(creationTimestamp);
  if (!isMarked(pod) && !isOverflow(pod)) {
    return [station(at, "created; it is not delegated", by, whyNotDelegated(pod.metadata, namespace, workload))];
  }
  const scheduler = annotations[SCHEDULER_NAME_ANNOTATION];
  const admitted = isOverflow(pod) ? "admitted in overflow mode" : "admitted as a proxy";
  return [station(at, "created", by), station(at, admitted, scheduler && `its own scheduler there is ${scheduler}`)];
}

/** Returns the present step of a pod without a node. */
function waiting(pod: Stored<Pod>): Station {
  const { lastTransitionTime, message } = conditionOf(pod, "PodScheduled") ?? {};
  const pending = onHost(undefined);
  if (isGated(pod)) return station(pending, "waits for its scheduling gates", `gates: ${gatesOf(pod)}`);
  if (isOverflow(pod)) return overflowing(pod, lastTransitionTime);
  if (!isMarked(pod)) return station(pending, "waits for a scheduler", message);
  const waits = whyNotPlaced(pod);
  if (waits === undefined) return station(pending, `waits for a member cluster; ${UNREPORTED}`);
  const reasons = reasonsOf(waits.message ?? "");
  const what = `waits for a member cluster: ${waits.reason}`;
  return { ...station(onHost(waits.lastTransitionTime), what, ...reasons.map(reasonLine)), reasons };
}

/** Returns the step of a pod in overflow mode that has no node, with the host scheduler's message. */
function overflowing(pod: Stored<Pod>, since: string | undefined): Station {
  const message = unschedulableMessage(pod);
  if (message === undefined)
    return station(onHost(undefined), "waits for this cluster's scheduler, which is asked first");
  const { nominatedNodeName } = pod.status ?? {};
  if (nominatedNodeName)
    return station(
      onHost(since),
      `waits until this cluster's scheduler has made room on ${nominatedNodeName}`,
      message,
    );
  const written = pod.metadata.annotations?.[OVERFLOW_AFTER_ANNOTATION];
  const after = written ?? `its namespace's ${OVERFLOW_AFTER_ANNOTATION}, or ${DEFAULT_OVERFLOW_AFTER_SECONDS}s`;
  const next = `delegated when that has lasted for ${after} and a member cluster has room; an event NotOverflowed says why not`;
  return station(onHost(since), "this cluster's scheduler has no node for it", message, next);
}

/** Returns the steps of a pod with a node; of one with a delegate: placed and made, scheduled in the member, and bound on the host. */
function bound(pod: Stored<Pod>, told: readonly KubeEvent[], delegateMade: string | undefined): Station[] {
  const { annotations = {} } = pod.metadata;
  const at = onHost(conditionOf(pod, "PodScheduled")?.lastTransitionTime);
  const to = `bound to node ${pod.spec?.nodeName}`;
  const { [CLUSTER_ANNOTATION]: cluster, [DELEGATE_UID_ANNOTATION]: uid, [MEMBER_NODE_ANNOTATION]: node } = annotations;
  if (cluster === undefined)
    return [station(at, to, isOverflow(pod) ? "this cluster's scheduler was asked first" : undefined)];
  const why = whyNotPlaced(pod)?.message;
  if (uid === undefined && asksHostFirst(pod)) {
    return [station(at, `overflowed to ${cluster}; ${to}`, why ?? "its delegate has not been scheduled there yet")];
  }
  if (uid === undefined) {
    const lost = `${cluster} did not answer, and may have the pod: that is known when it answers again`;
    return [station(at, `left with lost member ${cluster}; ${to}`, lost, why)];
  }
  // The choice is made anew until the delegate's creation is sent: both have one time.
  const made = delegateMade === undefined ? UNTIMED : inMember(delegateMade, cluster);
  const unread = delegateMade === undefined ? `only ${cluster} records when, and it was not read there` : undefined;
  const [scheduled] = timesOf(told, "Scheduled", cluster);
  return [
    station(made, `placed in ${cluster}`, ...whyThere(annotations), notTaken(told)),
    station(made, `delegate made in ${cluster}`, `uid ${uid}`, unread),
    station(
      scheduled === undefined ? UNTIMED : inMember(scheduled, cluster),
      `scheduled in ${cluster}`,
      node && `on its node ${node}`,
    ),
    station(at, to, "the host learned that the delegate was scheduled"),
  ];
}

/** Returns the annotations that limit or order members. */
function whyThere(annotations: Readonly<Record<string, string>>): string[] {
  const wishes = Object.entries(annotations).filter(
    ([key]) => isWish(key) || key === GROUP_ANNOTATION || key === WISHES_OF_ANNOTATION,
  );
  return wishes.length > 0
    ? wishes.map(([key, value]) => `${key}: ${value.trim().replaceAll(/\s+/g, " ")}`)
    : ["its annotations limit it to no member: the best of those with room got it"];
}

/** Returns why other members did not take it, as the event of its placement says. */
function notTaken(told: readonly KubeEvent[]): string | undefined {
  const message = lastOf(told, "NotTakenByMember")?.message?.replace(/; placed in [^;]*$/, "");
  return message === undefined ? undefined : `before it: ${message}`;
}

/** Returns when events that the member tells first occurred, by its clock; RFC 3339, earliest first. */
function timesOf(told: readonly KubeEvent[], reason: string, member: string | undefined): string[] {
  return told
    .filter((event) => event.reason === reason && event.metadata?.annotations?.[CLUSTER_ANNOTATION] === member)
    .flatMap(({ firstTimestamp, eventTime, lastTimestamp }) => firstTimestamp ?? eventTime ?? lastTimestamp ?? [])
    .sort();
}

function running(pod: Stored<Pod>, told: readonly KubeEvent[], member: string | undefined): Station[] {
  const { startTime, containerStatuses = [], initContainerStatuses = [], phase = "Pending" } = pod.status ?? {};
  const all = [...initContainerStatuses, ...containerStatuses];
  const [started] = all
    .flatMap(({ state, lastState }) => [lastState?.terminated, state?.running, state?.terminated])
    .flatMap((each) => each?.startedAt ?? [])
    .sort();
  const restarts = containerStatuses
    .filter(({ restartCount }) => restartCount > 0)
    .map(({ name, restartCount }) => `${name} restarted ${restartCount} times`);
  const waits = isTerminal(pod) ? [] : all.flatMap(waitWords);
  const ready = conditionOf(pod, "Ready");
  const pulledAt = timesOf(told, "Pulled", member).at(-1);
  const pulls = new Set(told.filter(({ reason }) => reason === "Pulled").map(({ message = "" }) => message));
  const at = (time: string | undefined, what: string, ...details: string[]): Station[] =>
    time === undefined ? [] : [station(inMember(time, member), what, ...details)];
  return [
    ...at(startTime, "accepted by the kubelet"),
    ...at(pulledAt, "images pulled", ...pulls),
    ...at(started, "containers started", ...restarts),
    ...(waits.length === 0 ? [] : [station(onHost(undefined), `${phase}: containers wait`, ...waits)]),
    ...(ready?.status === "True" ? [station(inMember(ready.lastTransitionTime, member), "ready")] : []),
  ];
}

/** Returns the steps that Legation's conditions name: containers that the member added, and a write that a cluster refuses. */
function marked(pod: Stored<Pod>): Station[] {
  return [ADDED_CONDITION, REFUSED_CONDITION].flatMap((type) => {
    const { status, reason, message = "", lastTransitionTime } = conditionOf(pod, type) ?? {};
    const what = type === ADDED_CONDITION ? `${memberOf(pod) ?? "its member"} added containers` : `held up: ${reason}`;
    return status === "True" ? [station(onHost(lastTransitionTime), what, ...message.split("; "))] : [];
  });
}

function ending(pod: Stored<Pod>, member: string | undefined): Station[] {
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
    const exits = containerStatuses.flatMap(exitWords);
    stations.push(station(inMember(finished.at(-1), member), what, message, ...exits));
  }
  return stations;
}
