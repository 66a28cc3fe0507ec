import { z } from "zod";
import type { Lease, Stored } from "../api/kubernetes.ts";

/** On the Lease: the times in which, by what it tells, nobody led. */
export const UNLED_ANNOTATION = "legation.dev/unled";

const renewing = z.looseObject({ "f:spec": z.looseObject({ "f:renewTime": z.unknown() }) });

/** From and to, epoch ms. */
export type Interval = readonly [number, number];

// Who wrote during a lease may have done so by a clock that is a little ahead.
const SKEW_MS = 60_000;
// An outage is one; what was restored is found within days, or not at all.
const MOST = 20;

/**
 * When a Lease was last renewed; epoch ms, NaN when nothing tells. By the API server's clock, since its holder's may have
 * been set; where the server keeps no account of fields, by the holder's.
 */
export function renewedAt({ metadata, spec }: Stored<Lease>): number {
  const writers = (metadata.managedFields ?? []).filter(({ fieldsV1 }) => renewing.safeParse(fieldsV1).success);
  const times = writers.map(({ time }) => Date.parse(time ?? "")).filter((at) => !Number.isNaN(at));
  return times.length > 0 ? Math.max(...times) : Date.parse(spec?.renewTime ?? "");
}

/**
 * The annotation of a Lease that is taken over at `now`: a time in which nobody led is added. No delegate can have been
 * made then. When one was, the host has been set back to a state from before it: restored from a backup.
 */
export function noteUnled(lease: Stored<Lease>, now: number): string | undefined {
  const noted = lease.metadata.annotations?.[UNLED_ANNOTATION];
  const from = renewedAt(lease) + (lease.spec?.leaseDurationSeconds ?? 0) * 1000 + SKEW_MS;
  if (Number.isNaN(from) || Number.isNaN(now) || from >= now) return noted;
  const all = [...unledIn(noted), [from, now] as const].slice(-MOST);
  return all.map((interval) => interval.map((at) => new Date(at).toISOString()).join("/")).join(",");
}

/** What the annotation says; nothing of what cannot be read. */
export function unledIn(annotation: string | undefined): readonly Interval[] {
  return (annotation ?? "").split(",").flatMap((text) => {
    const [from = Number.NaN, to = Number.NaN] = text.split("/").map((at) => Date.parse(at));
    return from < to ? [[from, to] as const] : [];
  });
}

/** Whether something that was created then was created while nobody led. */
export function wasUnled(intervals: readonly Interval[], createdAt: string | undefined): boolean {
  const at = Date.parse(createdAt ?? "");
  return intervals.some(([from, to]) => from <= at && at <= to);
}
