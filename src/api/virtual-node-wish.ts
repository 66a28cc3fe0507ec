import { VIRTUAL_NODE_LABEL } from "./keys.ts";
import { type LabelExpression, requirementOf } from "./label-expressions.ts";
import { selectorMatches } from "./label-selector.ts";

/** Members that a pod's node selector and affinity name by their virtual nodes. */
export interface VirtualNodeWish {
  /** The member that the node selector names. Undefined means any. */
  readonly selected?: string;
  /** Expressions of each required term, one of which must hold. Undefined accepts any member. */
  readonly required?: readonly (readonly LabelExpression[])[];
}

/** Reports whether the expressions match a member's virtual node. */
function holdsFor(expressions: readonly LabelExpression[], member: string): boolean {
  return selectorMatches(expressions.map(requirementOf), { [VIRTUAL_NODE_LABEL]: member });
}

/** Returns why the pod excludes a member's virtual node. */
export function wishExcludes({ selected, required }: VirtualNodeWish, member: string): string | undefined {
  if (selected !== undefined && selected !== member) {
    return `the pod's nodeSelector says ${VIRTUAL_NODE_LABEL}: ${JSON.stringify(selected)}`;
  }
  if (required?.some((expressions) => holdsFor(expressions, member)) !== false) return undefined;
  return `no term of the pod's nodeAffinity allows ${VIRTUAL_NODE_LABEL}: ${JSON.stringify(member)}`;
}

// Longer lists are no misspelled names, and would not fit a condition.
const MOST_NAMED = 100;

/** Returns the names of the wanted members. Undefined if not named, or too many. */
export function wishedMembers({ selected, required }: VirtualNodeWish): readonly string[] | undefined {
  if (selected !== undefined) return [selected];
  const named = required?.map((expressions) => expressions.find(({ operator }) => operator === "In")?.values);
  const names = named?.every((some) => some !== undefined) === true ? [...new Set(named.flat())] : [];
  return names.length === 0 || names.length > MOST_NAMED ? undefined : names;
}
