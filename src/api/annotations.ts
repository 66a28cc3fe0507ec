import { closestKey } from "./closest-key.ts";
import { clusterNameProblem } from "./cluster.ts";
import { affinityAllows, type ClusterAffinity, clusterAffinitySchema } from "./cluster-affinity.ts";
import { type ClusterSpread, clusterSpreadsSchema } from "./cluster-spread.ts";
import { isForeignKey, readForeignAnnotation } from "./foreign-annotations.ts";
import {
  API_ANNOTATION,
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  DELEGATION_LABEL,
  FAILOVER_ANNOTATION,
  FAILOVER_NEVER,
  GROUP,
  GROUP_ANNOTATION,
  GROUP_BY_ANNOTATION,
  INTERNAL_ANNOTATIONS,
  MODE_ANNOTATION,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_KEY,
  WISHES_OF_ANNOTATION,
} from "./keys.ts";
import { isLabelValue, labelKeyProblem, parseLabelSelector, type Selector, selectorMatches } from "./label-selector.ts";
import { type OverflowMode, readMode, readOverflowAfter } from "./overflow.ts";
import { type Override, parseOverrides } from "./overrides.ts";
import { parsePreferences, type SchedulingPreferences } from "./preferences.ts";
import { lengthProblem, structuredTextReader } from "./structured-text.ts";
import { type VirtualNodeWish, wishExcludes } from "./virtual-node-wish.ts";
import { readWishesOf, WISHING_KINDS, type WorkloadRef } from "./workload-wishes.ts";

const readAffinity = structuredTextReader(clusterAffinitySchema);
const readSpread = structuredTextReader(clusterSpreadsSchema);

const API_MODES = ["host", "member", "none"] as const;
/** The API server of a pod's in-cluster configuration. */
export type ApiMode = (typeof API_MODES)[number];

export type GroupBy = { readonly by: "owner" } | { readonly by: "label"; readonly key: string };

export interface RequestedPlacement {
  readonly delegate?: boolean;
  /** Members by name. Undefined means any. */
  readonly clusters?: readonly string[];
  /** The members that the pod's node selector and affinity name by their virtual nodes. */
  readonly virtualNode?: VirtualNodeWish;
  /** Members by the labels of their Cluster. Undefined means any. */
  readonly selector?: Selector;
  /** The selector as written and where, for messages. */
  readonly selectorText?: string;
  /** Required and preferred terms over Clusters. Undefined means any. */
  readonly affinity?: ClusterAffinity;
  readonly spread?: readonly ClusterSpread[];
  /** Pods of the namespace with the same value run in one member. */
  readonly group?: string;
  readonly groupBy?: GroupBy;
  /** The division of the owner's replicas. Undefined places each pod by load. */
  readonly preferences?: SchedulingPreferences;
  readonly overrides?: readonly Override[];
  /** `legation.dev/api`. Undefined means the host, if its address is known. */
  readonly api?: ApiMode;
  /** `legation.dev/failover`. Undefined means replaced as on a lost node. */
  readonly failover?: "never";
  /** `legation.dev/mode`. Undefined means the namespace label's mode. */
  readonly mode?: OverflowMode;
  /** `legation.dev/overflow-after`, in seconds. */
  readonly overflowAfterSeconds?: number;
  /** `legation.dev/whole`: the object itself goes to members. */
  readonly whole?: boolean;
  /** `legation.dev/on-conflict`: an object of the member's own in the place of a copy becomes the copy. */
  readonly onConflict?: "adopt" | "refuse";
  /** `legation.dev/wishes-of`: the workload whose wishes count for the pod. */
  readonly wishesOf?: WorkloadRef;
  /** `legation.dev/on-delete`: copies stay when the object is deleted. */
  readonly onDelete?: "delete" | "orphan";
}

export interface Problem {
  readonly key: string;
  /** The key, what is wrong, and what to write instead. */
  readonly message: string;
}

export type ParsedPlacement =
  | { readonly ok: true; readonly placement: RequestedPlacement }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function problemsText({ problems }: { readonly problems: readonly Problem[] }): string {
  return problems.map(({ message }) => message).join("; ");
}

export type Annotations = Readonly<Record<string, string>>;

// The prefix of every key of Legation.
const KEY_PREFIX = `${GROUP}/`;
export const AUTHOR_KEYS: readonly string[] = [
  DELEGATE_ANNOTATION,
  CLUSTERS_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  GROUP_ANNOTATION,
  GROUP_BY_ANNOTATION,
  PREFERENCES_ANNOTATION,
  OVERRIDES_ANNOTATION,
  FAILOVER_ANNOTATION,
  API_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  WHOLE_KEY,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
];

/**
 * Returns the annotations that authors write for Legation, known or not. Own keys win over those of other projects
 * that Legation understands.
 */
export function authorAnnotations(annotations: Annotations | undefined): Record<string, string> {
  const foreign: Record<string, string> = {};
  const own: Record<string, string> = {};
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (isForeignKey(key)) foreign[key] = value;
    else if (key.startsWith(KEY_PREFIX) && !INTERNAL_ANNOTATIONS.has(key)) own[key] = value;
  }
  return { ...foreign, ...own };
}

/**
 * Parses an author's placement with a namespace's annotations and then `base` as defaults, key by key. Returns all
 * problems, not just the first.
 */
export function parsePlacement(
  annotations: Annotations,
  defaults: Annotations = {},
  base: RequestedPlacement = {},
): ParsedPlacement {
  const own = authorAnnotations(annotations);
  const inherited = Object.entries(authorAnnotations(defaults)).filter(([key]) => !Object.hasOwn(own, key));
  const problems: Problem[] = [];
  let placement = base;
  for (const [key, text] of [...inherited, ...Object.entries(own)]) {
    const read = readAnnotation(key, text);
    if (typeof read === "string") problems.push({ key, message: `annotation ${key}: ${read}` });
    // Bounds the message: a review may bring a hundred thousand problems.
    if (problems.length >= MOST_PROBLEMS) break;
    if (typeof read !== "string") placement = { ...placement, ...(Object.hasOwn(own, key) ? read : ofNamespace(read)) };
  }
  problems.push(...ofWholeObjects(placement));
  return problems.length === 0 ? { ok: true, placement } : { ok: false, problems };
}

const MOST_PROBLEMS = 10;

function ofWholeObjects({ whole, onConflict, onDelete }: RequestedPlacement): Problem[] {
  if (whole === true) return [];
  const keys = [
    ...(onConflict === undefined ? [] : [ON_CONFLICT_ANNOTATION]),
    ...(onDelete === undefined ? [] : [ON_DELETE_ANNOTATION]),
  ];
  return keys.map((key) => ({
    key,
    message: `annotation ${key}: is read beside ${WHOLE_KEY}: "true" alone; remove it`,
  }));
}

/** Marks overrides as the namespace's: an operator's may do more than an author's. */
function ofNamespace({ overrides, ...placement }: RequestedPlacement): RequestedPlacement {
  if (overrides === undefined) return placement;
  return { ...placement, overrides: overrides.map((override) => ({ ...override, by: "namespace" })) };
}

export function asksForDelegation(placement: RequestedPlacement): boolean {
  const { delegate, clusters, selector, preferences, mode, wishesOf } = placement;
  return delegate ?? [clusters, selector, preferences, mode, wishesOf].some((said) => said !== undefined);
}

/** Returns why the author excludes a member. Undefined if the author does not. */
export function placementExcludes(
  { clusters, virtualNode, selector, selectorText, affinity }: RequestedPlacement,
  member: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): string | undefined {
  if (clusters !== undefined && !clusters.includes(member.name)) return `not named by ${CLUSTERS_ANNOTATION}`;
  const unwished = virtualNode === undefined ? undefined : wishExcludes(virtualNode, member.name);
  if (unwished !== undefined) return unwished;
  if (selector !== undefined && !selectorMatches(selector, member.labels)) {
    return `its labels do not match ${selectorText}`;
  }
  if (affinity !== undefined && !affinityAllows(affinity, member)) {
    return `no term of ${CLUSTER_AFFINITY_ANNOTATION} matches it`;
  }
  return undefined;
}

/** Parses one annotation, or returns its problem and what to write instead. */
function readAnnotation(key: string, text: string): RequestedPlacement | string {
  // The API server checks the length only after admission.
  const tooLong = lengthProblem(text);
  if (tooLong !== undefined) return tooLong;
  switch (key) {
    case DELEGATE_ANNOTATION:
      return isFlag(text) ? { delegate: text === "true" } : noFlag(text);
    case WHOLE_KEY:
      return isFlag(text) ? { whole: text === "true" } : noFlag(text);
    case ON_CONFLICT_ANNOTATION:
      if (text === "adopt" || text === "refuse") return { onConflict: text };
      return `${quote(text)} is neither "refuse" nor "adopt"; write one of them`;
    case ON_DELETE_ANNOTATION:
      if (text === "delete" || text === "orphan") return { onDelete: text };
      return `${quote(text)} is neither "delete" nor "orphan"; write one of them`;
    case CLUSTERS_ANNOTATION:
      return readClusters(text);
    case CLUSTER_SELECTOR_ANNOTATION: {
      const parsed = parseLabelSelector(text);
      if (parsed.ok)
        return { selector: parsed.selector, selectorText: `${CLUSTER_SELECTOR_ANNOTATION} ${quote(text)}` };
      return `${quote(text)} is not a label selector: ${parsed.message}; write e.g. "region in (eu,us), gpu"`;
    }
    case CLUSTER_AFFINITY_ANNOTATION: {
      const parsed = readAffinity(text);
      if (parsed.ok) return { affinity: parsed.value };
      return `${parsed.problems.join("; ")}; write what a pod's nodeAffinity takes, as JSON or YAML`;
    }
    case CLUSTER_SPREAD_ANNOTATION: {
      const parsed = readSpread(text);
      if (parsed.ok) return { spread: parsed.value };
      return `${parsed.problems.join("; ")}; write a list as a pod's topologySpreadConstraints, as JSON or YAML`;
    }
    case GROUP_ANNOTATION:
      if (text !== "" && isLabelValue(text)) return { group: text };
      return `${quote(text)} names no group; write up to 63 of a-z, A-Z, 0-9, -, _ and ., not first or last -, _ or .`;
    case GROUP_BY_ANNOTATION:
      return readGroupBy(text);
    case PREFERENCES_ANNOTATION: {
      const parsed = parsePreferences(text);
      return "problem" in parsed ? parsed.problem : { preferences: parsed };
    }
    case OVERRIDES_ANNOTATION: {
      const parsed = parseOverrides(text);
      return "problem" in parsed ? parsed.problem : { overrides: parsed };
    }
    case MODE_ANNOTATION: {
      const mode = readMode(text);
      return mode === undefined
        ? `${quote(text)} is no mode; write "overflow" (delegated when this cluster has no room) or "always"`
        : { mode };
    }
    case OVERFLOW_AFTER_ANNOTATION: {
      const overflowAfterSeconds = readOverflowAfter(text);
      return overflowAfterSeconds === undefined
        ? `${quote(text)} is no time up to 24h; write hours, minutes and seconds, e.g. "30s", "5m" or "1h30m"`
        : { overflowAfterSeconds };
    }
    case FAILOVER_ANNOTATION:
      if (text === FAILOVER_NEVER) return { failover: FAILOVER_NEVER };
      return `${quote(text)} is not "never"; write that, or remove it to have pods replaced as on a lost node`;
    case API_ANNOTATION: {
      const api = API_MODES.find((mode) => mode === text);
      return api === undefined ? `${quote(text)} is no API server; write "host", "member" or "none"` : { api };
    }
    case WISHES_OF_ANNOTATION: {
      const wishesOf = readWishesOf(text);
      if (wishesOf !== undefined) return { wishesOf };
      return `${quote(text)} names no workload; remove it, and admission writes it (${WISHING_KINDS.join(", ")}/NAME)`;
    }
    default:
      return isForeignKey(key) ? readForeignAnnotation(key, text) : unknownKey(key);
  }
}

function isFlag(text: string): boolean {
  return text === "true" || text === "false";
}

function noFlag(text: string): string {
  return `${quote(text)} is neither "true" nor "false"; write one of them`;
}

function readClusters(text: string): RequestedPlacement | string {
  const names = text.split(",").map((name) => name.trim());
  const example = 'write names of Clusters with commas between them, e.g. "west,east"';
  if (names.every((name) => name === "")) return `names no cluster; ${example}, or leave the key out for any cluster`;
  const problems = names.flatMap((name) => {
    const problem = name === "" ? "is an empty name" : clusterNameProblem(name);
    return problem === undefined ? [] : [`${quote(name)} ${problem}`];
  });
  if (problems.length === 0) return { clusters: [...new Set(names)] };
  const rest = problems.length - MOST_PROBLEMS;
  return `${problems.slice(0, MOST_PROBLEMS).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}; ${example}`;
}

function readGroupBy(text: string): RequestedPlacement | string {
  if (text === "owner") return { groupBy: { by: "owner" } };
  const [, key] = /^label:(.*)$/.exec(text) ?? [];
  if (key !== undefined && labelKeyProblem(key) === undefined) return { groupBy: { by: "label", key } };
  return `${quote(text)} makes no groups; write "owner", or "label:" and the key of a label, e.g. "label:app"`;
}

/** Reports whether authors write this key as an annotation of pods and workloads. */
export function isAuthorKey(key: string): boolean {
  return AUTHOR_KEYS.includes(key);
}

function unknownKey(key: string): string {
  if (key === DELEGATION_LABEL) {
    const label = `kubectl label namespace NAME ${DELEGATION_LABEL}=annotated`;
    return `is a label of namespaces, not an annotation; write \`${label}\`, and on pods and workloads the annotation ${DELEGATE_ANNOTATION}: "true"`;
  }
  const closest = closestKey(key, AUTHOR_KEYS);
  const remedy = closest === undefined ? `write one of ${AUTHOR_KEYS.join(", ")}` : `did you mean ${closest}?`;
  return `is not an annotation that Legation knows; ${remedy}`;
}

// Keeps the message readable in a terminal.
const LONGEST_QUOTE = 100;

function quote(text: string): string {
  return JSON.stringify(text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text);
}
