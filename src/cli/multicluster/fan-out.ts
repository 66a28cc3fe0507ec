import type { Clock } from "../../runtime/clock.ts";
import { atMost } from "../shared/at-most.ts";

// Members are reached through one API server, and answers are kept until they are printed in turn.
const CLUSTERS_AT_ONCE = 64;
// A cluster that has not answered by then stalls no other one: neither its reading nor its printing.
const ANSWER_PATIENCE_MS = 2_000;

/** Asks each cluster, some at a time: one that answers, or is late, lets the next one begin. */
export function fanOut<Cluster, Answer>(
  clusters: readonly Cluster[],
  clock: Clock,
  ask: (cluster: Cluster) => Promise<Answer>,
): Promise<Answer>[] {
  const answers = clusters.map((cluster) => ({ cluster, ...Promise.withResolvers<Answer>() }));
  void atMost(CLUSTERS_AT_ONCE, answers, async ({ cluster, promise, resolve }) => {
    resolve(ask(cluster));
    await settledOrLate(promise, clock);
  });
  return answers.map(({ promise }) => promise);
}

/** Resolves when the answer is there, has failed, or is late. */
export async function settledOrLate(answer: Promise<unknown>, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = clock.after(ANSWER_PATIENCE_MS, resolve);
  await Promise.race([answer.catch(() => undefined), promise]);
  late.cancel();
}
