import {
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PROXY_LABEL,
  REFUSED_CONDITION,
  SCHEDULER_NAME_ANNOTATION,
} from "../../api/keys.ts";
import type { ContainerStatus, KubeEvent, Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../api/overflow.ts";
import { asksHostFirst, isOverflow } from "../../pods/overflow.ts";
import {
  conditionOf,
  deletionAskedAt,
  deletionGrace,
  isBound,
  isGated,
  isTerminal,
  unschedulableMessage,
} from "../../pods/phase.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { type OwnWorkload, whyNotDelegated } from "./not-delegated.ts";
import { type Trouble, troubleText } from "./trouble.ts";

/** A step of a pod's life. */
export interface Station {
  /** RFC 3339. Absent if unrecorded or pending. */
  readonly at?: string;
  readonly what: string;
  /** Further lines, such as a reason per member. */
  readonly details: readonly string[];
}

/** A pod's life so far, oldest step first. */
export interface Journey {
  readonly pod: string;
  readonly delegated: boolean;
  readonly cluster?: string;
  readonly delegateUid?: string;
  readonly memberNode?: string;
  readonly stations: readonly Station[];
  /** Troubles of the pod's member. */
  readonly troubles: readonly Trouble[];
  /** Why the troubles are unknown. Absent if they are known. */
  readonly notRead?: string;
  readonly events: readonly {
    readonly at: string;
    readonly type: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

/** The state of a pod's member. */
export interface MemberNews {
  readonly troubles: readonly Trouble[];
  /** Why the troubles are unknown. Undefined when they are known. */
  readonly notRead?: string;
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
  { troubles, notRead }: MemberNews = { troubles: [] },
): Journey {
  const { name, namespace, annotations = {}, labels = {} } = pod.metadata;
  const delegated = labels[PROXY_LABEL] !== undefined && !isOverflow(pod);
  const cluster = annotations[CLUSTER_ANNOTATION];
  const delegateUid = annotations[DELEGATE_UID_ANNOTATION];
  const memberNode = annotations[MEMBER_NODE_ANNOTATION];
  return {
    pod: `${namespace}/${name}`,
    delegated,
    ...(cluster === undefined ? {} : { cluster }),
    ...(delegateUid === undefined ? {} : { delegateUid }),
    ...(memberNode === undefined ? {} : { memberNode }),
    stations: [
      created(pod, delegated, own),
      ...placing(pod, delegated),
      ...running(pod),
      ...refused(pod),
      ...ending(pod),
    ].sort(byTime),
    troubles,
    ...(notRead === undefined ? {} : { notRead }),
    events: events
      .map(({ type = "", reason = "", message = "", lastTimestamp, eventTime, metadata }) => ({
        at: lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? "",
        type,
        reason,
        message,
      }))
      .sort((a, b) => (a.at < b.at ? -1 : 1)),
  };
}

const FAR = "9999-12-31T00:00:00Z";

/** Orders by time. A step without a time is pending and comes last. */
function byTime(a: Station, b: Station): number {
  return Date.parse(a.at ?? FAR) - Date.parse(b.at ?? FAR);
}

function created(pod: Stored<Pod>, delegated: boolean, { namespace, workload }: Own): Station {
  const { creationTimestamp, annotations = {}, ownerReferences = [] } = pod.metadata;
  const owner = ownerReferences.find(({ controller }) => controller === true);
  const scheduler = annotations[SCHEDULER_NAME_ANNOTATION];
  const overflows = isOverflow(pod);
  const as = delegated ? "and admitted as a proxy" : "and admitted in overflow mode";
  return station(creationTimestamp, delegated || overflows ? `created, ${as}` : "created; it is not delegated", [
    ...(owner === undefined ? [] : [`by ${owner.kind} ${owner.name}`]),
    ...(scheduler === undefined ? [] : [`its own scheduler there is ${scheduler}`]),
    ...(delegated || overflows ? [] : [whyNotDelegated(pod.metadata, namespace, workload)]),
  ]);
}

function placing(pod: Stored<Pod>, delegated: boolean): Station[] {
  const { annotations = {} } = pod.metadata;
  const scheduled = conditionOf(pod, "PodScheduled");
  if (isBound(pod)) {
    const cluster = annotations[CLUSTER_ANNOTATION];
    const at = scheduled?.lastTransitionTime;
    const bound = `bound to node ${pod.spec?.nodeName}`;
    if (cluster === undefined)
      return [station(at, bound, isOverflow(pod) ? ["this cluster's scheduler was asked first"] : [])];
    if (annotations[DELEGATE_UID_ANNOTATION] === undefined) {
      const waits = whyNotPlaced(pod)?.message;
      const why = waits ?? "its delegate has not been scheduled there yet";
      if (asksHostFirst(pod)) return [station(at, `overflowed to ${cluster}; ${bound}`, [why])];
      const lost = `${cluster} did not answer, and may have the pod: that is known when it answers again`;
      return [station(at, `left with lost member ${cluster}; ${bound}`, waits === undefined ? [lost] : [lost, waits])];
    }
    const memberNode = annotations[MEMBER_NODE_ANNOTATION];
    const delegate = [
      `uid ${annotations[DELEGATE_UID_ANNOTATION] ?? "unknown"}`,
      ...(memberNode === undefined ? [] : [`on its node ${memberNode}`]),
    ];
    return [station(at, `delegate scheduled in ${cluster}; ${bound}`, delegate)];
  }
  if (isTerminal(pod)) return [];
  if (isGated(pod)) {
    const gates = pod.spec?.schedulingGates?.map((gate) => gate.name).join(", ");
    return [station(undefined, "waits for its scheduling gates", [`gates: ${gates}`])];
  }
  if (isOverflow(pod)) return [overflowing(pod)];
  if (!delegated) return [station(undefined, "waits for a scheduler", scheduled?.message ? [scheduled.message] : [])];
  const waits = whyNotPlaced(pod);
  if (waits === undefined)
    return [station(undefined, "waits for a member cluster; no controller has reported on it yet", [])];
  return [
    station(
      waits.lastTransitionTime,
      `waits for a member cluster: ${waits.reason}`,
      (waits.message ?? "").split("; ").filter((line) => line !== ""),
    ),
  ];
}

/** Returns the step of a pod in overflow mode that has no node, with the host scheduler's message. */
function overflowing(pod: Stored<Pod>): Station {
  const message = unschedulableMessage(pod);
  if (message === undefined) return station(undefined, "waits for this cluster's scheduler, which is asked first", []);
  const { nominatedNodeName = "" } = pod.status ?? {};
  const at = conditionOf(pod, "PodScheduled")?.lastTransitionTime;
  if (nominatedNodeName !== "") {
    return station(at, `waits until this cluster's scheduler has made room on ${nominatedNodeName}`, [message]);
  }
  const written = pod.metadata.annotations?.[OVERFLOW_AFTER_ANNOTATION];
  const after = written ?? `its namespace's ${OVERFLOW_AFTER_ANNOTATION}, or ${DEFAULT_OVERFLOW_AFTER_SECONDS}s`;
  return station(at, "this cluster's scheduler has no node for it", [
    message,
    `delegated when that has lasted for ${after} and a member cluster has room; an event NotOverflowed says why not`,
  ]);
}

function running(pod: Stored<Pod>): Station[] {
  const { startTime, containerStatuses = [], initContainerStatuses = [], phase } = pod.status ?? {};
  const stations: Station[] = [];
  if (startTime !== undefined) stations.push(station(startTime, "accepted by the kubelet", []));
  const started = [...initContainerStatuses, ...containerStatuses].flatMap(startsOf).sort();
  const restarts = containerStatuses.filter(({ restartCount }) => restartCount > 0);
  const waiting = [...initContainerStatuses, ...containerStatuses].flatMap(({ name, state }) =>
    state?.waiting === undefined
      ? []
      : [`${name}: ${[state.waiting.reason, state.waiting.message].filter(Boolean).join(": ")}`],
  );
  if (started[0] !== undefined) {
    stations.push(
      station(
        started[0],
        "containers started",
        restarts.map(({ name, restartCount }) => `${name} restarted ${restartCount} times`),
      ),
    );
  }
  if (waiting.length > 0 && !isTerminal(pod))
    stations.push(station(undefined, `${phase ?? "Pending"}: containers wait`, waiting));
  const ready = conditionOf(pod, "Ready");
  if (ready?.status === "True") stations.push(station(ready.lastTransitionTime, "ready", []));
  return stations;
}

/** Returns the step of a pod for which a cluster refuses a write. */
function refused(pod: Stored<Pod>): Station[] {
  const { status, reason = "", message = "", lastTransitionTime } = conditionOf(pod, REFUSED_CONDITION) ?? {};
  return status === "True" ? [station(lastTransitionTime, `held up: ${reason}`, message.split("; "))] : [];
}

function ending(pod: Stored<Pod>): Station[] {
  const { deletionTimestamp, finalizers = [] } = pod.metadata;
  const { phase, reason, message, containerStatuses = [] } = pod.status ?? {};
  const stations: Station[] = [];
  if (deletionTimestamp !== undefined) {
    const askedAt = deletionAskedAt(pod);
    const at = askedAt === undefined ? deletionTimestamp : `${new Date(askedAt).toISOString().slice(0, 19)}Z`;
    const held = finalizers.length === 0 ? [] : [`held by ${finalizers.join(", ")}`];
    stations.push(station(at, `deletion asked for (grace ${deletionGrace(pod) ?? 0} s)`, held));
  }
  if (isTerminal(pod)) {
    const finished = containerStatuses.flatMap(({ state }) => state?.terminated?.finishedAt ?? []).sort();
    stations.push(
      station(finished.at(-1), `finished: ${phase}${reason === undefined ? "" : ` (${reason})`}`, [
        ...(message === undefined ? [] : [message]),
        ...containerStatuses.flatMap(exitOf),
      ]),
    );
  }
  return stations;
}

function startsOf({ state, lastState }: ContainerStatus): string[] {
  return [lastState?.terminated?.startedAt, state?.running?.startedAt, state?.terminated?.startedAt].filter(
    (at) => at !== undefined,
  );
}

function exitOf({ name, state }: ContainerStatus): string[] {
  const ended = state?.terminated;
  if (ended === undefined) return [];
  return [`${name}: exit code ${ended.exitCode}${ended.reason === undefined ? "" : ` (${ended.reason})`}`];
}

function station(at: string | undefined, what: string, details: readonly string[]): Station {
  return at === undefined ? { what, details } : { at, what, details };
}

/** Formats a journey for people. */
export function journeyText(journey: Journey, terminal: Terminal): string {
  const start = Date.parse(journey.stations[0]?.at ?? "");
  const rows = journey.stations.flatMap(({ at, what, details }) => [
    [at ?? "-", at === undefined ? "" : `+${Math.round((Date.parse(at) - start) / 1000)}s`, what],
    ...details.map((detail) => ["", "", `  ${terminal.paint("dim", detail)}`]),
  ]);
  const way = [
    table(["TIME", "AFTER", `POD ${journey.pod}`], rows),
    ...journey.troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(journey.notRead === undefined ? [] : [terminal.paint("dim", journey.notRead)]),
  ].join("\n");
  if (journey.events.length === 0) return way;
  const events = journey.events.map(({ at, type, reason, message }) => [at, type, reason, message]);
  return `${way}\n\n${table(["TIME", "EVENT", "REASON", "MESSAGE"], events)}`;
}
