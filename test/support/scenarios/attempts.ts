/** A failure that says nothing of its task, because a condition that the task relies on did not hold. */
export class BrokenPremise extends Error {}

/** How tasks are carried out. */
export interface Attempts<T> {
  /** The number of tasks at once, at first. */
  readonly atOnce: number;
  /** Carries a task out. Rejects with BrokenPremise where another attempt may end differently. */
  take(task: T): Promise<void>;
  /** Takes back the effects of attempts with a broken premise, before further tasks begin. */
  undo(tasks: readonly T[]): Promise<void>;
}

// Each attempt after the first one runs beside fewer others; these reach one of sixteen.
const MOST_ATTEMPTS = 5;

/**
 * Carries all tasks out, and returns the failed ones with their errors. Any failure counts, except a broken premise: that
 * task comes again after the others, and half as many run at once from then on.
 */
export async function takeAll<T>(tasks: readonly T[], { atOnce, take, undo }: Attempts<T>): Promise<Map<T, unknown>> {
  const failures = new Map<T, unknown>();
  const attempts = new Map<T, number>();
  const left = [...tasks];
  for (let width = atOnce; left.length > 0; width = Math.max(1, Math.floor(width / 2))) {
    const broken: T[] = [];
    const takeNext = async (): Promise<void> => {
      // Attempts that run go on; the next ones wait for the smaller number.
      while (broken.length === 0) {
        const task = left.shift();
        if (task === undefined) return;
        const attempt = (attempts.get(task) ?? 0) + 1;
        attempts.set(task, attempt);
        try {
          await take(task);
        } catch (error) {
          if (error instanceof BrokenPremise && attempt < MOST_ATTEMPTS) broken.push(task);
          else failures.set(task, error);
        }
      }
    };
    await Promise.all(Array.from({ length: width }, takeNext));
    if (broken.length > 0) await undo(broken);
    left.push(...broken);
  }
  return failures;
}
