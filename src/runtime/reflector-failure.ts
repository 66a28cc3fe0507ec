import { isLate, KubeError, type KubeErrorCode } from "../kube/errors.ts";

/** A lasting failure of a reflector: since when (epoch ms) no watch has opened, and the last reason. */
export interface ReflectorFailure {
  readonly since: number;
  readonly reason: string;
  /** Absent if the answer could not be understood. */
  readonly code?: KubeErrorCode;
  /** The server took the request and did not answer in time: nothing says that it refuses it. Absent: not so. */
  readonly isLate?: true;
}

/** Returns the failure that an error is, or goes on with `before`. `now`: epoch ms. */
export function failureOf(error: unknown, before: ReflectorFailure | undefined, now: number): ReflectorFailure {
  const { detail: reason, code } =
    error instanceof KubeError ? error : { detail: "an answer could not be understood", code: undefined };
  const late = isLate(error);
  // A server that was only slow before has failed since now.
  const since = before === undefined || before.isLate !== (late || undefined) ? now : before.since;
  return { since, reason, ...(code === undefined ? {} : { code }), ...(late ? { isLate: true } : {}) };
}
