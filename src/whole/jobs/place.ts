import { defined } from "../../api/defined.ts";
import { PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { behindBest, type Ranking } from "../../placement/rank.ts";
import { type Declined, NO_PLACE, type PlaceOptions, type WholePlace } from "../type.ts";
import { choiceFor, mayHave, newShares } from "./choice.ts";
import { jobOfShare } from "./division.ts";
import type { JobShare } from "./shares.ts";

/** Returns where a Job would run. Its pods, which members' own controllers make, take no room here. */
export function placeJob(job: Stored<Job>, options: PlaceOptions): WholePlace {
  const choice = choiceFor(job, options);
  if ("problem" in choice) return { ...NO_PLACE, problem: choice.problem };
  const { input, ranking, preferences } = choice;
  const { refusals } = ranking;
  const shares = newShares(job, { fitting: mayHave(ranking), ...defined({ preferences }) });
  const [first] = shares;
  if (first === undefined) return { ...NO_PLACE, others: refusals };
  const clusters = shares.map((share) => {
    const { member: cluster, part } = share;
    const { completions = 0, parallelism = 0 } = jobOfShare(job, share, shares).spec ?? {};
    const short = refusals.find((one) => one.cluster === cluster)?.message;
    return defined({
      cluster,
      amounts: part && { completions, parallelism },
      message: short === undefined ? undefined : `waits there for room: ${short}`,
    });
  });
  const { member } = first;
  const others =
    first.part === undefined
      ? [...refusals.filter(({ cluster }) => cluster !== member), ...behindBest(input, ranking, member)]
      : withoutShare(ranking, shares);
  return { ...NO_PLACE, clusters, others };
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
