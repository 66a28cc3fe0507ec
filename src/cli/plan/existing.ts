import { z } from "zod";
import { authorAnnotations } from "../../api/annotations.ts";
import { DELETION_COST_ANNOTATION, PLACED_CONDITION } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { conditionOf, controllerOf, isBound, isDeleting, isTerminal } from "../../pods/phase.ts";
import type { WrittenObject } from "./documents.ts";
import { isPodOf, type NamedWorkload } from "./owned-pods.ts";

/** What applying a manifest does to the pods that its workload has. */
export interface Standing {
  /** They stay as they are. */
  readonly kept: readonly Stored<Pod>[];
  /** They go: replaced by others, or too many. */
  readonly leaving: readonly Stored<Pod>[];
  readonly notes: readonly string[];
}

/** Compares a workload with what the host has of it; `stored` is that as it is, absent: it is not there. */
export function standingOf(
  workload: NamedWorkload,
  written: WrittenObject,
  stored: WrittenObject | undefined,
  replicas: number,
  proxies: readonly Stored<Pod>[],
): Standing {
  // Each run of a CronJob has pods of its own.
  if (stored === undefined || workload.kind === "CronJob") return { kept: [], leaving: [], notes: [] };
  const own = proxies.filter((pod) => isPodOf(workload, pod) && !isTerminal(pod) && !isDeleting(pod));
  if (workload.kind === "Pod") {
    return { kept: own, leaving: [], notes: own.length === 0 ? [] : ["is there already: a pod keeps its place"] };
  }
  // A Job's template never changes.
  if (workload.kind !== "Job" && !isSameTemplate(templateOf(stored), templateOf(written))) {
    const notes = own.length === 0 ? [] : [`its ${own.length} pods are replaced: their room is counted as free`];
    return { kept: [], leaving: own, notes };
  }
  const surplus = Math.max(0, own.length - replicas);
  const leaving = [...own].sort(workload.kind === "StatefulSet" ? lastFirst : cheapestFirst).slice(0, surplus);
  const kept = own.filter((pod) => !leaving.includes(pod));
  return {
    kept,
    leaving,
    notes: [
      ...(kept.length === 0 ? [] : [`${kept.length} of its pods are there already, and stay`]),
      ...(surplus === 0 ? [] : [`${surplus} pods go, probably ${namesOf(leaving)}`]),
      ...waitingNotes(kept),
    ],
  };
}

/** Who makes the workload's next pod, as its present ones say; undefined when there are none to say it. */
export function makerOf(pods: readonly Stored<Pod>[]): { kind: string; name: string; uid: string } | undefined {
  const newest = [...pods].sort(byYouth)[0];
  const owner = newest === undefined ? undefined : controllerOf(newest);
  return owner === undefined ? undefined : { kind: owner.kind, name: owner.name, uid: owner.uid };
}

function templateOf({ spec }: WrittenObject): unknown {
  return isMap(spec) ? spec.template : undefined;
}

/** What members have refused is remembered by the controller alone; what it says of pods that wait, they say themselves. */
function waitingNotes(pods: readonly Stored<Pod>[]): string[] {
  const said = pods.flatMap((pod) => {
    const { status, reason, message } = conditionOf(pod, PLACED_CONDITION) ?? {};
    return isBound(pod) || status !== "False" ? [] : [{ pod, words: `${reason}: ${message}` }];
  });
  return [...Map.groupBy(said, ({ words }) => words)].map(([words, those]) => {
    const names = namesOf(those.map(({ pod }) => pod));
    return `${names} ${those.length === 1 ? "waits" : "wait"} now, and its condition says ${words}`;
  });
}

// Of more than these nobody reads the names.
const MOST_NAMES = 5;

function namesOf(pods: readonly Stored<Pod>[]): string {
  const names = pods.slice(0, MOST_NAMES).map(({ metadata }) => metadata.name);
  return [...names, ...(pods.length > MOST_NAMES ? ["…"] : [])].join(", ");
}

/** What is taken out of a template is seen of Legation's annotations alone: of the rest it may be a default. */
function isSameTemplate(stored: unknown, written: unknown): boolean {
  return covers(stored, written) && covers(ownAnnotations(written), ownAnnotations(stored));
}

function ownAnnotations(template: unknown): Record<string, string> {
  const metadata = isMap(template) ? template.metadata : undefined;
  const annotations = isMap(metadata) && isMap(metadata.annotations) ? metadata.annotations : {};
  return authorAnnotations(Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)])));
}

// Switches that the API server does not keep when they are off (k8s.io/api/core/v1: no pointers, omitempty).
const FALSE_BY_ABSENCE: ReadonlySet<string> = new Set([
  "hostIPC",
  "hostNetwork",
  "hostPID",
  "readOnly",
  "stdin",
  "stdinOnce",
  "tty",
]);

// Numbers that the API server does not keep when they are 0 (k8s.io/api/core/v1: no pointers, omitempty).
const ZERO_BY_ABSENCE: ReadonlySet<string> = new Set(["hostPort", "initialDelaySeconds"]);

/** What is empty is what the API server leaves out. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === "" || (isMap(value) && Object.keys(value).length === 0);
}

function isDefault(key: string, value: unknown): boolean {
  return (value === false && FALSE_BY_ABSENCE.has(key)) || (value === 0 && ZERO_BY_ABSENCE.has(key));
}

const amounts = z.record(z.string(), z.union([z.string(), z.number()]));

/** Quantities by their values: the API server writes them in a form of its own (0.5 as 500m). */
function sameAmounts(stored: unknown, written: unknown): boolean {
  const [own, wanted] = [amounts.safeParse(stored), amounts.safeParse(written)];
  if (!own.success || !wanted.success) return covers(stored, written);
  const [before, after] = [parseAmounts(own.data), parseAmounts(wanted.data)];
  return Object.entries(after).every(([name, amount]) => isSameAmount(before[name], amount));
}

// 0.7 and 700 thousandths differ in the last bit.
function isSameAmount(before: number | undefined, after: number): boolean {
  return before !== undefined && Math.abs(before - after) <= Math.abs(after) * Number.EPSILON * 4;
}

/** Whether all that is written stands in the stored value: the API server adds defaults, and leaves the rest as it is. */
function covers(stored: unknown, written: unknown): boolean {
  if (Array.isArray(written)) {
    return (
      Array.isArray(stored) && stored.length === written.length && written.every((item, i) => covers(stored[i], item))
    );
  }
  if (isMap(written)) {
    const own = isMap(stored) ? stored : {};
    return Object.entries(written).every(([key, value]) => {
      if (own[key] === undefined) return isNothing(value) || isDefault(key, value);
      if (key === "sizeLimit") return sameAmounts({ [key]: own[key] }, { [key]: value });
      return key === "requests" || key === "limits" ? sameAmounts(own[key], value) : covers(own[key], value);
    });
  }
  return String(stored) === String(written);
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** As a ReplicaSet chooses, as far as the host's pods tell: without a node first, then by deletion cost, then the youngest. */
function cheapestFirst(a: Stored<Pod>, b: Stored<Pod>): number {
  if (isBound(a) !== isBound(b)) return isBound(a) ? 1 : -1;
  return costOf(a) - costOf(b) || byYouth(a, b);
}

function costOf({ metadata }: Stored<Pod>): number {
  return Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0) || 0;
}

function lastFirst(a: Stored<Pod>, b: Stored<Pod>): number {
  const ordinal = ({ metadata: { name } }: Stored<Pod>): number => Number(name.slice(name.lastIndexOf("-") + 1));
  return ordinal(b) - ordinal(a);
}

function byYouth(a: Stored<Pod>, b: Stored<Pod>): number {
  const [first = "", second = ""] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return first === second ? 0 : first < second ? 1 : -1;
}
