import { defined } from "../../api/defined.ts";
import { PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { behindBest, explain, type Ranking } from "../../placement/rank.ts";
import type { Declined, PlaceOptions, PlannedShare, WholePlace } from "../type.ts";
import { choiceFor, mayHave, newShares } from "./choice.ts";
import { jobOfShare } from "./division.ts";
import type { JobShare } from "./shares.ts";

/** Returns where a Job would run. Its pods, which members' own controllers make, take no room here. */
export function placeJob(job: Stored<Job>, options: PlaceOptions): WholePlace {
  const choice = choiceFor(job, options);
  if ("problem" in choice) return { reason: "NotPlaced", message: choice.problem, others: [] };
  const { input, ranking, preferences } = choice;
  const { refusals } = ranking;
  const shares = newShares(job, { fitting: mayHave(ranking), ...defined({ preferences }) });
  const [first] = shares;
  if (first === undefined) return { reason: "NotPlaced", message: explain(refusals), others: refusals };
  const shortOf = (member: string): { readonly message?: string } =>
    defined({ message: refusals.find(({ cluster }) => cluster === member)?.message });
  const { member: cluster } = first;
  if (first.part === undefined) {
    const others = [...refusals.filter((one) => one.cluster !== cluster), ...behindBest(input, ranking, cluster)];
    return { cluster, ...shortOf(cluster), others };
  }
  const planned = shares.map((share): PlannedShare => {
    const { completions = 0, parallelism = 0 } = jobOfShare(job, share, shares).spec ?? {};
    return { cluster: share.member, completions, parallelism, ...shortOf(share.member) };
  });
  return { shares: planned, others: withoutShare(ranking, shares) };
}

/** Explains why other members get no share. */
function withoutShare(ranking: Ranking, shares: readonly JobShare[]): Declined[] {
  const has = (cluster: string): boolean => shares.some(({ member }) => member === cluster);
  const message = `${PREFERENCES_ANNOTATION} gives it none of so few pods`;
  const left = mayHave(ranking).filter((cluster) => !has(cluster));
  return [
    ...ranking.refusals.filter(({ cluster }) => !has(cluster) && !left.includes(cluster)),
    ...left.map((cluster) => ({ cluster, reason: "NotPreferred", message })),
  ];
}
