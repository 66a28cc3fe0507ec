import { isKubeError, mayBeStarting } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { PASSES_MS } from "./refusal.ts";

// Longer than what was denied rests before it is tried again, ten minutes at most: a right that is lacking is not waited for each time.
const FORGOTTEN_MS = 15 * 60_000;

/**
 * Since when API servers have denied Legation's own rights. One that has just been started denies all of them until it has read its
 * roles, and so does one whose ClusterRoleBinding is being replaced: that passes in a moment. A right that a role lacks is denied for
 * longer, and then somebody should be told.
 */
export class Denials {
  readonly #clock: Pick<Clock, "now">;
  /** Epoch ms, by cluster, verb and resource: as many as rights. */
  readonly #denied = new Map<string, { readonly since: number; readonly lastAt: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** True for such a denial until it has gone on for a while: the same request may be taken in a moment. */
  mayPass(error: unknown): boolean {
    if (!isKubeError(error) || !mayBeStarting(error)) return false;
    const [resource] = error.resource.split(" ");
    const right = `${error.cluster}/${error.verb}/${resource}`;
    const now = this.#clock.now();
    const earlier = this.#denied.get(right);
    const since = earlier === undefined || now - earlier.lastAt >= FORGOTTEN_MS ? now : earlier.since;
    this.#denied.set(right, { since, lastAt: now });
    return now < since + PASSES_MS;
  }
}
