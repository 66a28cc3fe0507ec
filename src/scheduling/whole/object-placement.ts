import { type ParsedPlacement, placementExcludes, problemsText } from "../../api/annotations.ts";
import { defined } from "../../api/defined.ts";
import { type AnyObject, type DelegatedType, replicasOf } from "../../api/delegated-type.ts";
import { OVERRIDES_ANNOTATION, PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import { recordedMember } from "../../copies/objects.ts";
import { flavorExcludes } from "../../copies/queued-objects.ts";
import type { Candidate, Rule } from "../../placement/candidate.ts";
import { divide, type Replicas } from "../../placement/division.ts";
import { type Ranking, rank } from "../../placement/rank.ts";
import { notPermitted } from "../../placement/refusal-messages.ts";
import type { PodRules } from "../pod-rules.ts";

export type ObjectRules = Pick<PodRules, "parse" | "namespaceLabels">;

/** An object, and all that its placement depends on, as plain data. */
export interface ObjectToPlace {
  readonly object: Stored<AnyObject>;
  readonly type: DelegatedType;
  readonly parsed: ParsedPlacement;
  /** Undefined if the object's namespace is not opted in, or if it has none. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined;
  readonly candidates: readonly Candidate[];
}

/** The placement of one object in all members, as plain data. */
export interface ObjectPlacement {
  /** Why no member is looked for. */
  readonly problem?: string;
  readonly members: readonly MemberPlacement[];
}

export interface MemberPlacement {
  readonly candidate: Candidate;
  /** Why the member does not get the object. Absent: it gets it. */
  readonly excluded?: string;
  /** The member's share of the object's replicas. Absent: preferences do not divide them. */
  readonly share?: number;
}

/** Reads what author and operators wrote of an object's placement. Its overrides are read for each member. */
export function objectToPlace(
  object: Stored<AnyObject>,
  { type, rules, candidates }: Pick<ObjectToPlace, "type" | "candidates"> & { readonly rules: ObjectRules },
): ObjectToPlace {
  const { metadata } = object;
  const { [OVERRIDES_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const parsed = rules.parse({ metadata: { ...metadata, annotations } });
  return { object, type, parsed, namespaceLabels: rules.namespaceLabels(metadata.namespace ?? ""), candidates };
}

/** Returns which members get the object, and why the others do not. */
export function placementOf(place: ObjectToPlace): ObjectPlacement {
  const problem = problemOf(place);
  const judged = place.candidates.map((candidate) => ({ candidate, unselected: unselectedIn(place, candidate) }));
  const selected = judged.filter(({ unselected }) => unselected === undefined);
  const shares = sharesOf(
    place,
    selected.map(({ candidate }) => candidate.name),
  );
  const members = judged.map(({ candidate, unselected }): MemberPlacement => {
    const share = shares && (shares[candidate.name] ?? 0);
    const excluded = exclusionOf(place, { name: candidate.name, unselected, share });
    return { candidate, ...defined({ excluded, share }) };
  });
  return { ...defined({ problem }), members };
}

/** Returns why no member is looked for. */
function problemOf({ object, parsed, namespaceLabels }: ObjectToPlace): string | undefined {
  const { namespace } = object.metadata;
  if (namespace !== undefined && namespaceLabels === undefined) return `namespace ${namespace} is not opted in`;
  return parsed.ok ? undefined : problemsText(parsed);
}

function exclusionOf(
  { object, type }: ObjectToPlace,
  member: { readonly name: string; readonly unselected: string | undefined; readonly share: number | undefined },
): string | undefined {
  const { name, unselected, share } = member;
  if (type.spec.exclusive !== true) {
    const withoutShare = share === 0 ? `${PREFERENCES_ANNOTATION} gives it none of the replicas` : undefined;
    return unselected ?? withoutShare;
  }
  // Another member may not have what runs in this one, whatever has changed since.
  const recorded = recordedMember(object);
  if (recorded === name) return undefined;
  return recorded === undefined ? "no member has the object yet" : `${recorded} has the object`;
}

/** Divides the replicas over the selected members by the author's preferences. A member that does not answer keeps its share. */
function sharesOf({ object, type, parsed }: ObjectToPlace, selected: readonly string[]): Replicas | undefined {
  const total = replicasOf(object, type);
  // Preferences of a namespace are for pods.
  const isDivided = object.metadata.annotations?.[PREFERENCES_ANNOTATION] !== undefined;
  if (total === undefined || !isDivided || !parsed.ok || parsed.placement.preferences === undefined) return undefined;
  const { namespace = "", name } = object.metadata;
  const { preferences } = parsed.placement;
  return divide({ total, preferences, clusters: selected.toSorted(), key: `${namespace}/${name}` }).replicas;
}

export function rankMembers(place: ObjectToPlace): Ranking {
  const selection: Rule = {
    filter: (candidate) => {
      const message = unselectedIn(place, candidate);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  return rank({ requests: {}, rules: [selection], candidates: place.candidates });
}

/** Returns why operators and author leave the member out. */
function unselectedIn(
  { object, type, parsed, namespaceLabels = {} }: ObjectToPlace,
  candidate: Candidate,
): string | undefined {
  const { admits, closed } = candidate;
  if (closed?.reason === "ClusterBeingRemoved") return closed.message;
  if (admits !== undefined && !selectorMatches(admits, namespaceLabels)) {
    return notPermitted(object.metadata.namespace ?? "").message;
  }
  const excluded = parsed.ok ? placementExcludes(parsed.placement, candidate) : undefined;
  return excluded ?? flavorExcludes(object, type, candidate);
}
