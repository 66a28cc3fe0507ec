import { whyNowhere } from "../../explain/pending.ts";
import type { MemberReason } from "../../explain/reasons.ts";
import { amountsOf, type WorkloadPlan } from "../../plan/outcome.ts";

/** The place of a whole Job or object in a sentence, and what is to say of each member. */
export interface WholeWords {
  readonly summary: string;
  readonly reasons: readonly MemberReason[];
}

const NOWHERE = "No member gets it.";

/** Returns the place of an object of a built-in type, such as a Job, and why it waits for room or other members do not get it. */
export function builtInWords({
  cluster,
  shares = [],
  message,
  others,
}: NonNullable<WorkloadPlan["whole"]>): WholeWords {
  const declined = others.map(({ cluster: member, message: why }) => ({ member, message: why }));
  if (shares.length > 0) {
    const parts = shares.map((share) => {
      const [[amount, number] = []] = amountsOf(share);
      return `${number} ${amount} in ${share.cluster}`;
    });
    const full = shares.flatMap((share) => waitsForRoom(share.cluster, share.message));
    return { summary: `Divided: ${parts.join(", ")}.`, reasons: [...full, ...declined] };
  }
  if (cluster !== undefined) {
    return { summary: `Goes to ${cluster} as a whole.`, reasons: [...waitsForRoom(cluster, message), ...declined] };
  }
  return { summary: NOWHERE, reasons: declined.length > 0 || message === undefined ? declined : [{ message }] };
}

function waitsForRoom(member: string, room: string | undefined): MemberReason[] {
  return room === undefined ? [] : [{ member, message: `waits there for room: ${room}` }];
}

/** Returns the members that get a whole object, and why others do not, or not yet. */
export function objectWords(place: NonNullable<WorkloadPlan["object"]>): WholeWords {
  const { clusters, others, misfits } = place;
  const nowhere = whyNowhere(place);
  if (nowhere !== undefined) return { summary: NOWHERE, reasons: [{ message: nowhere }] };
  const goesTo = clusters.filter(({ cluster }) => misfits.every((misfit) => misfit.cluster !== cluster));
  const later = goesTo.flatMap(({ cluster: member, message }) => (message === undefined ? [] : [{ member, message }]));
  return {
    summary: goesTo.length === 0 ? NOWHERE : `Goes to ${goesTo.map(({ cluster }) => cluster).join(", ")}.`,
    reasons: [...later, ...[...misfits, ...others].map(({ cluster: member, message }) => ({ member, message }))],
  };
}
