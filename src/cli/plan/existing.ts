import { DELETION_COST_ANNOTATION, PROXY_LABEL, PROXY_LABEL_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound, isDeleting, isLive, isTerminal } from "../../pods/pod-state.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { counted } from "../shared/output.ts";
import { isSameTemplate } from "./applied.ts";
import { byYouth, isPodOf, type NamedWorkload, ordinalOf } from "./controller-pods.ts";
import type { WorkloadPods } from "./workloads.ts";

/** The pods of a workload once its manifest is applied. */
export interface Standing {
  /** Pods that stay as they are. */
  readonly kept: readonly Stored<Pod>[];
  /** Pods that go: they are replaced, or too many. */
  readonly leaving: readonly Stored<Pod>[];
  /** Pods that come, by ordinal or number. */
  readonly coming: readonly number[];
  readonly notes: readonly string[];
}

/** Compares a workload with the host's; `stored` is undefined if the host has none. */
export function standingOf(
  workload: NamedWorkload,
  written: WrittenObject,
  stored: WrittenObject | undefined,
  pods: Pick<WorkloadPods, "replicas" | "firstOrdinal" | "replacedFrom">,
  present: readonly Stored<Pod>[],
): Standing {
  // Each run of a CronJob has pods of its own.
  if (stored === undefined || workload.kind === "CronJob") {
    return { kept: [], leaving: [], coming: comingOf(workload, pods, []), notes: [] };
  }
  const own = present.filter((pod) => isPodOf(workload, pod));
  if (workload.kind === "Pod" && own[0] !== undefined) return standingOfPod(own[0]);
  const live = own.filter(isLive);
  const surplus = surplusOf(workload, live, pods);
  const wanted = live.filter((pod) => !surplus.includes(pod));
  // A Job's template never changes.
  const isChanged = workload.kind !== "Job" && !isSameTemplate(stored, written);
  const { replacedFrom } = pods;
  const isReplaced = (pod: Stored<Pod>): boolean =>
    isChanged && replacedFrom !== undefined && (workload.kind !== "StatefulSet" || ordinalOf(pod) >= replacedFrom);
  const replaced = wanted.filter(isReplaced);
  const kept = wanted.filter((pod) => !isReplaced(pod));
  return {
    kept,
    leaving: [...surplus, ...replaced],
    coming: comingOf(workload, pods, kept),
    notes: [
      ...note(
        kept,
        (one) => `${kept.length} of its pods ${one ? "is there already, and stays" : "are there already, and stay"}`,
      ),
      ...hostNotes(kept),
      ...(isChanged ? note(kept, () => "its template changes, and these pods keep the former one") : []),
      ...note(surplus, (one) => `${counted(surplus.length)} ${one ? "goes" : "go"}, probably ${namesOf(surplus)}`),
      ...note(replaced, (one) => {
        const whose = kept.length === 0 ? `its ${counted(replaced.length)}` : `${replaced.length} of its pods`;
        return `${whose} ${one ? "is replaced: its" : "are replaced: their"} room is counted as free`;
      }),
      ...waitingNotes(kept),
    ],
  };
}

/** Returns a note about pods, if there are any; `words` takes whether it is one. */
function note(about: readonly Stored<Pod>[], words: (isOne: boolean) => string): string[] {
  return about.length === 0 ? [] : [words(about.length === 1)];
}

/** Reports whether a pod is the host's own: admission comes too late for it. */
export function isHostsOwn(pod: Stored<Pod>): boolean {
  if (pod.metadata.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE) return false;
  return !isOverflow(pod) || isBound(pod);
}

function standingOfPod(pod: Stored<Pod>): Standing {
  const nothing = { kept: [], leaving: [], coming: [] };
  if (isDeleting(pod)) return { ...nothing, notes: ["is being deleted: nothing comes in its place"] };
  if (isTerminal(pod)) return { ...nothing, notes: [`has ended (${pod.status?.phase}), and does not run again`] };
  return { ...nothing, kept: [pod], notes: ["is there already: a pod keeps its place", ...hostNotes([pod])] };
}

/** Returns the pods that a workload has too many. */
function surplusOf(
  { kind }: NamedWorkload,
  live: readonly Stored<Pod>[],
  { replicas, firstOrdinal = 0 }: Pick<WorkloadPods, "replicas" | "firstOrdinal">,
): readonly Stored<Pod>[] {
  if (kind !== "StatefulSet") return [...live].sort(cheapestFirst).slice(0, Math.max(0, live.length - replicas));
  const isWanted = (ordinal: number): boolean => ordinal >= firstOrdinal && ordinal < firstOrdinal + replicas;
  return [...live].sort(lastFirst).filter((pod) => !isWanted(ordinalOf(pod)));
}

function comingOf(
  { kind }: NamedWorkload,
  { replicas, firstOrdinal = 0 }: Pick<WorkloadPods, "replicas" | "firstOrdinal">,
  kept: readonly Stored<Pod>[],
): number[] {
  const all = Array.from({ length: replicas }, (_, index) => firstOrdinal + index);
  if (kind !== "StatefulSet") return all.slice(kept.length);
  const there = new Set(kept.map(ordinalOf));
  return all.filter((ordinal) => !there.has(ordinal));
}

/** Pods that were made before the namespace or the workload asked for delegation. */
function hostNotes(pods: readonly Stored<Pod>[]): string[] {
  const hosts = pods.filter(isHostsOwn);
  return hosts.length === 0 ? [] : [`on this cluster, and stay there: ${namesOf(hosts)}`];
}

/** Repeats the conditions of waiting pods: only the controller remembers the refusals of members. */
function waitingNotes(pods: readonly Stored<Pod>[]): string[] {
  const said = pods.flatMap((pod) => {
    const waits = isBound(pod) || isHostsOwn(pod) ? undefined : whyNotPlaced(pod);
    return waits === undefined ? [] : [{ pod, words: `${waits.reason}: ${waits.message}` }];
  });
  return [...Map.groupBy(said, ({ words }) => words)].map(([words, those]) => {
    const names = namesOf(those.map(({ pod }) => pod));
    return `${names} ${those.length === 1 ? "waits" : "wait"} now, and its condition says ${words}`;
  });
}

// Longer lists are cut.
const MOST_NAMES = 5;

function namesOf(pods: readonly Stored<Pod>[]): string {
  const names = pods.slice(0, MOST_NAMES).map(({ metadata }) => metadata.name);
  return [...names, ...(pods.length > MOST_NAMES ? ["…"] : [])].join(", ");
}

/** Sorts as a ReplicaSet chooses: pods without a node first, then by deletion cost, then the youngest. */
function cheapestFirst(a: Stored<Pod>, b: Stored<Pod>): number {
  if (isBound(a) !== isBound(b)) return isBound(a) ? 1 : -1;
  return costOf(a) - costOf(b) || byYouth(a, b);
}

function costOf({ metadata }: Stored<Pod>): number {
  return Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0) || 0;
}

function lastFirst(a: Stored<Pod>, b: Stored<Pod>): number {
  return ordinalOf(b) - ordinalOf(a);
}
