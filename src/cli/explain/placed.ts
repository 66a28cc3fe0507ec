import {
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  GROUP_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WISHES_OF_ANNOTATION,
} from "../../api/keys.ts";
import type { KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import { conditionOf } from "../../pods/pod-state.ts";
import { lastOf } from "./events.ts";
import { inMember, onHost, type Station, station, UNTIMED } from "./station.ts";

/** The records of a pod's steps beside the pod itself. */
export interface Told {
  readonly told: readonly KubeEvent[];
  /** When the delegate was made, by its member's clock; RFC 3339. Undefined: not read. */
  readonly delegateMade?: string | undefined;
}

/** Returns the steps of a pod whose delegate was scheduled: placed and made, scheduled in the member, and bound on the host. */
export function placed(pod: Stored<Pod>, cluster: string, { told, delegateMade }: Told): Station[] {
  const { annotations = {} } = pod.metadata;
  const node = annotations[MEMBER_NODE_ANNOTATION];
  const uid = annotations[DELEGATE_UID_ANNOTATION];
  const scheduled = firstInMember(told, "Scheduled");
  // The choice is made anew until the delegate's creation is sent: both have one time.
  const made = delegateMade === undefined ? UNTIMED : inMember(delegateMade, cluster);
  const unread = delegateMade === undefined ? `only ${cluster} records when, and it was not read there` : undefined;
  return [
    station(made, `placed in ${cluster}`, ...whyThere(annotations), notTaken(told)),
    station(made, `delegate made in ${cluster}`, `uid ${uid}`, unread),
    station(
      scheduled === undefined ? UNTIMED : inMember(scheduled, cluster),
      `scheduled in ${cluster}`,
      node && `on its node ${node}`,
    ),
    station(
      onHost(conditionOf(pod, "PodScheduled")?.lastTransitionTime),
      `bound to node ${pod.spec?.nodeName}`,
      "the host learned that the delegate was scheduled",
    ),
  ];
}

/** Returns the step in which the images of a pod were pulled. Its time is the last one's. */
export function pulled(told: readonly KubeEvent[], cluster: string | undefined): Station[] {
  const pulls = told.filter(({ reason }) => reason === "Pulled");
  const at = pulls
    .flatMap((event) => memberTime(event) ?? [])
    .sort()
    .at(-1);
  if (at === undefined) return [];
  const messages = new Set(pulls.map(({ message = "" }) => message));
  return [station(inMember(at, cluster), "images pulled", ...messages)];
}

// The wishes of an author that limit or order members, in words.
const WISHES: readonly (readonly [string, (value: string) => string])[] = [
  [CLUSTERS_ANNOTATION, (value) => `${CLUSTERS_ANNOTATION} names ${value}`],
  [CLUSTER_SELECTOR_ANNOTATION, (value) => `${CLUSTER_SELECTOR_ANNOTATION} selects ${value}`],
  [CLUSTER_AFFINITY_ANNOTATION, () => `${CLUSTER_AFFINITY_ANNOTATION} limits or orders members`],
  [CLUSTER_SPREAD_ANNOTATION, () => `${CLUSTER_SPREAD_ANNOTATION} spreads it`],
  [PREFERENCES_ANNOTATION, () => `${PREFERENCES_ANNOTATION} divide its workload`],
  [GROUP_ANNOTATION, (value) => `pods of its group ${value} run in one member`],
  [WISHES_OF_ANNOTATION, (value) => `the wishes of ${value} count for it`],
];

function whyThere(annotations: Readonly<Record<string, string>>): string[] {
  const wishes = WISHES.flatMap(([key, words]) => {
    const value = annotations[key];
    return value === undefined ? [] : [words(value)];
  });
  return wishes.length > 0 ? wishes : ["its annotations limit it to no member: the best of those with room got it"];
}

/** Returns why other members did not take it, as the event of its placement says. */
function notTaken(told: readonly KubeEvent[]): string | undefined {
  const message = lastOf(told, "NotTakenByMember")?.message?.replace(/; placed in [^;]*$/, "");
  return message === undefined ? undefined : `before it: ${message}`;
}

/** Returns when an event of the delegate first occurred by its member's clock; RFC 3339. */
function firstInMember(told: readonly KubeEvent[], reason: string): string | undefined {
  const events = told.filter((event) => event.reason === reason && event.metadata?.annotations?.[CLUSTER_ANNOTATION]);
  return events.flatMap((event) => memberTime(event) ?? []).sort()[0];
}

function memberTime({ firstTimestamp, eventTime, lastTimestamp }: KubeEvent): string | undefined {
  return firstTimestamp ?? eventTime ?? lastTimestamp ?? undefined;
}
