/** A condition as an object shows it. */
interface Shown {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly lastTransitionTime?: string | null | undefined;
}

/** A condition to be shown, without its time. */
export interface WantedCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

type AllShown = readonly Shown[] | null | undefined;

/** Reports whether a condition is among those that are shown, whatever its time. */
export function isShown({ type, status, reason, message }: WantedCondition, shown: AllShown): boolean {
  const one = shown?.find((condition) => condition.type === type);
  return one?.status === status && one.reason === reason && one.message === message;
}

/** Returns the condition with the time of its status' last change: now, unless the shown one has that status. */
export function withTransitionTime<Condition extends Pick<Shown, "type" | "status">>(
  condition: Condition,
  shown: AllShown,
  now: string,
): Condition & { readonly lastTransitionTime: string } {
  const before = shown?.find(({ type }) => type === condition.type);
  const since = before?.status === condition.status ? before.lastTransitionTime : undefined;
  return { ...condition, lastTransitionTime: since ?? now };
}
