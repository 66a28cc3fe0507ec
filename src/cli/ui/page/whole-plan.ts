import { whyNowhere } from "../../explain/pending.ts";
import type { MemberReason } from "../../explain/reasons.ts";
import type { WorkloadPlan } from "../../plan/outcome.ts";

/** The place of a whole object in a sentence, and what is to say of each member. */
interface WholeWords {
  readonly summary: string;
  readonly reasons: readonly MemberReason[];
}

const NOWHERE = "No member gets it.";

/** Returns the members that get a whole object, and why others do not, or not yet. */
export function wholeWords(place: NonNullable<WorkloadPlan["object"]>): WholeWords {
  const { clusters, others, misfits } = place;
  const nowhere = whyNowhere(place);
  if (nowhere !== undefined) return { summary: NOWHERE, reasons: [{ message: nowhere }] };
  const goesTo = clusters.filter(({ cluster }) => misfits.every((misfit) => misfit.cluster !== cluster));
  const later = goesTo.flatMap(({ cluster: member, message }) => (message === undefined ? [] : [{ member, message }]));
  const parts = goesTo.map(({ cluster, amounts = {} }) => {
    const own = Object.entries(amounts).map(([name, amount]) => `${name}: ${amount}`);
    return own.length === 0 ? cluster : `${cluster} (${own.join(", ")})`;
  });
  return {
    summary: parts.length === 0 ? NOWHERE : `Goes to ${parts.join(", ")}.`,
    reasons: [...later, ...[...misfits, ...others].map(({ cluster: member, message }) => ({ member, message }))],
  };
}
