import { type ParsedPlacement, placementExcludes, problemsText } from "../../api/annotations.ts";
import { type AnyObject, type DelegatedType, replicasOf } from "../../api/delegated-type.ts";
import { OVERRIDES_ANNOTATION, PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import { recordedMember } from "../../copies/objects.ts";
import type { Candidate, Rule } from "../../placement/candidate.ts";
import { divide } from "../../placement/division.ts";
import { type Ranking, rank } from "../../placement/rank.ts";
import { notPermitted } from "../../placement/refusal-messages.ts";
import type { PodRules } from "../delegation/placement/pod-rules.ts";

/** The rules of authors and operators. */
export type ObjectRules = Pick<PodRules, "parse" | "namespaceLabels">;

/** An object, and what its author and the operators wrote of its placement. */
export interface ObjectToPlace {
  readonly object: Stored<AnyObject>;
  readonly type: DelegatedType;
  readonly parsed: ParsedPlacement;
  readonly rules: ObjectRules;
  /** All members. */
  readonly candidates: () => readonly Candidate[];
}

/** Parses what author and operators wrote of an object's placement. Its overrides are read for each member. */
export function parseObject({ metadata }: Stored<AnyObject>, rules: Pick<ObjectRules, "parse">): ParsedPlacement {
  const { [OVERRIDES_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  return rules.parse({ metadata: { ...metadata, annotations } });
}

/** Returns why no member is looked for. */
export function problemOf({ object, parsed, rules }: ObjectToPlace): string | undefined {
  const { namespace } = object.metadata;
  if (namespace !== undefined && rules.namespaceLabels(namespace) === undefined) {
    return `namespace ${namespace} is not opted in`;
  }
  return parsed.ok ? undefined : problemsText(parsed);
}

/** Returns why the member does not get the object. Undefined: it gets it. */
export function exclusionOf(place: ObjectToPlace, candidate: Candidate): string | undefined {
  if (place.type.spec.exclusive !== true) {
    const message = unselected(place, candidate);
    const isWithout = message === undefined && shareOf(place, candidate.name) === 0;
    return isWithout ? `${PREFERENCES_ANNOTATION} gives it none of the replicas` : message;
  }
  // Another member may not have what runs in this one, whatever has changed since.
  const recorded = recordedMember(place.object);
  if (recorded === candidate.name) return undefined;
  return recorded === undefined ? "no member has the object yet" : `${recorded} has the object`;
}

/**
 * Returns a member's share of the object's replicas, where its author's preferences divide them. A member that does not answer keeps
 * its share: it may run its replicas.
 */
export function shareOf(place: ObjectToPlace, member: string): number | undefined {
  const { object, type, parsed } = place;
  const total = replicasOf(object, type);
  // Preferences of a namespace are for pods.
  const isDivided = object.metadata.annotations?.[PREFERENCES_ANNOTATION] !== undefined;
  if (total === undefined || !isDivided || !parsed.ok || parsed.placement.preferences === undefined) return undefined;
  const clusters = place
    .candidates()
    .filter((candidate) => unselected(place, candidate) === undefined)
    .map(({ name }) => name)
    .toSorted();
  const { namespace = "", name } = object.metadata;
  const { preferences } = parsed.placement;
  return divide({ total, preferences, clusters, key: `${namespace}/${name}` }).replicas[member] ?? 0;
}

/** Ranks the members for an object that one of them gets. */
export function rankMembers(place: ObjectToPlace): Ranking {
  const selection: Rule = {
    refusal: (candidate) => {
      const message = unselected(place, candidate);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  return rank({ requests: {}, rules: [selection], candidates: place.candidates() });
}

/** Returns why operators and author leave the member out. */
function unselected({ object, parsed, rules }: ObjectToPlace, candidate: Candidate): string | undefined {
  const { namespace = "" } = object.metadata;
  if (candidate.closed?.reason === "ClusterBeingRemoved") return candidate.closed.message;
  const labels = rules.namespaceLabels(namespace) ?? {};
  if (candidate.admits !== undefined && !selectorMatches(candidate.admits, labels)) {
    return notPermitted(namespace).message;
  }
  return parsed.ok ? placementExcludes(parsed.placement, candidate) : undefined;
}
