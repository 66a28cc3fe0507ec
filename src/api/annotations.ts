import { CLUSTER_NAME_MAX } from "./cluster.ts";
import {
  CLUSTER_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  FORWARDED_ANNOTATION,
  GROUP,
  MEMBER_NODE_ANNOTATION,
  OWNER_ANNOTATION,
  SCHEDULER_NAME_ANNOTATION,
} from "./keys.ts";
import { type LabelSelector, parseLabelSelector, selectorMatches } from "./label-selector.ts";

/** Where an author wants a pod to run. */
export interface Placement {
  /** `legation.dev/delegate`; undefined when it was not written. */
  readonly delegate?: boolean;
  /** Members by name; undefined: any. */
  readonly clusters?: readonly string[];
  /** Members by the labels of their Cluster; undefined: any. */
  readonly selector?: LabelSelector;
  /** The selector as written, for messages. */
  readonly selectorText?: string;
}

/** Something wrong with one annotation: `message` names the key, the fault and what to write instead. */
export interface Problem {
  readonly key: string;
  readonly message: string;
}

export type ParsedPlacement =
  | { readonly ok: true; readonly placement: Placement }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export type Annotations = Readonly<Record<string, string>>;

const PREFIX = `${GROUP}/`;
const AUTHOR_KEYS: readonly string[] = [DELEGATE_ANNOTATION, CLUSTERS_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION];
// Known from the documentation of what is to come: refused, so that nobody believes them to work.
const LATER_KEYS: readonly string[] = [
  "scheduling-preferences",
  "overrides",
  "group",
  "group-by",
  "api",
  "mode",
  "failover",
].map((name) => PREFIX + name);
/** Annotations that Legation writes itself. */
export const INTERNAL_ANNOTATIONS: readonly string[] = [
  SCHEDULER_NAME_ANNOTATION,
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OWNER_ANNOTATION,
  FORWARDED_ANNOTATION,
];

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** The annotations of Legation that authors write, taken out of all others. */
export function authorAnnotations(annotations: Annotations | undefined): Record<string, string> {
  const own: Record<string, string> = {};
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (key.startsWith(PREFIX) && !INTERNAL_ANNOTATIONS.includes(key)) own[key] = value;
  }
  return own;
}

/**
 * Reads what an author wrote on a pod, with a namespace's annotations as defaults key by key. Every problem is found, not
 * just the first.
 */
export function parsePlacement(annotations: Annotations, defaults: Annotations = {}): ParsedPlacement {
  const written = { ...authorAnnotations(defaults), ...authorAnnotations(annotations) };
  const problems: Problem[] = [];
  const placement: { -readonly [Key in keyof Placement]: Placement[Key] } = {};
  for (const [key, text] of Object.entries(written)) {
    const problem = readKey(placement, key, text);
    if (problem !== undefined) problems.push({ key, message: `${key}: ${problem}` });
  }
  return problems.length === 0 ? { ok: true, placement } : { ok: false, problems };
}

/** Whether the author asked for delegation: said so, or said where to. */
export function asksForDelegation({ delegate, clusters, selector }: Placement): boolean {
  return delegate ?? (clusters !== undefined || selector !== undefined);
}

/** Why a member is not among those the author wants; undefined when it is. */
export function placementExcludes(
  { clusters, selector, selectorText }: Placement,
  member: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): string | undefined {
  if (clusters !== undefined && !clusters.includes(member.name)) return `not named by ${CLUSTERS_ANNOTATION}`;
  if (selector !== undefined && !selectorMatches(selector, member.labels)) {
    return `its labels do not match ${CLUSTER_SELECTOR_ANNOTATION} "${selectorText}"`;
  }
  return undefined;
}

function readKey(
  placement: { -readonly [Key in keyof Placement]: Placement[Key] },
  key: string,
  text: string,
): string | undefined {
  switch (key) {
    case DELEGATE_ANNOTATION:
      if (text !== "true" && text !== "false") return `${JSON.stringify(text)} is neither "true" nor "false"`;
      placement.delegate = text === "true";
      return undefined;
    case CLUSTERS_ANNOTATION: {
      const names = text.split(",").map((name) => name.trim());
      const wrong = names.filter((name) => name.length > CLUSTER_NAME_MAX || !DNS_LABEL.test(name));
      if (wrong.length > 0) {
        const shown = wrong.map((name) => JSON.stringify(name)).join(", ");
        return `${shown} is no name of a Cluster; write names separated by commas, e.g. "west,east"`;
      }
      placement.clusters = [...new Set(names)];
      return undefined;
    }
    case CLUSTER_SELECTOR_ANNOTATION: {
      const parsed = parseLabelSelector(text);
      if (!parsed.ok) return `${parsed.message}; write a label selector, e.g. "region in (eu,us), gpu"`;
      placement.selector = parsed.selector;
      placement.selectorText = text;
      return undefined;
    }
    default:
      return unknownKey(key);
  }
}

function unknownKey(key: string): string {
  if (LATER_KEYS.includes(key)) return "is not supported by this version of Legation; remove it";
  const closest = AUTHOR_KEYS.map((known) => ({ known, distance: editDistance(key, known) })).sort(
    (a, b) => a.distance - b.distance,
  )[0];
  const suggestion = closest !== undefined && closest.distance <= 4 ? `did you mean ${closest.known}?` : "remove it";
  return `is no annotation of Legation; ${suggestion}`;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
