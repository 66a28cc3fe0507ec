import { z } from "zod";
import type { Lease, Stored } from "../kube/objects.ts";

const renewing = z.looseObject({ "f:spec": z.looseObject({ "f:renewTime": z.unknown() }) });

/** Start and end, epoch ms. */
export type Interval = readonly [number, number];

// Tolerated clock skew between the lease holder and the API server.
const SKEW_MS = 60_000;
// Each outage adds one interval; a restore is noticed within days, so older intervals are dropped.
const MOST = 20;

/** Prefers the API server's clock (managedFields) over the holder's, which may have been set. NaN when unknown. */
export function renewedAt({ metadata, spec }: Stored<Lease>): number {
  const writers = (metadata.managedFields ?? []).filter(({ fieldsV1 }) => renewing.safeParse(fieldsV1).success);
  const times = writers.map(({ time }) => Date.parse(time ?? "")).filter((at) => !Number.isNaN(at));
  return times.length > 0 ? Math.max(...times) : Date.parse(spec?.renewTime ?? "");
}

/** No leader created objects in the interval: one that was created in it proves that the cluster was restored. */
export function addLeaderlessInterval(
  lease: Stored<Lease>,
  noted: string | undefined,
  now: number,
): string | undefined {
  const from = renewedAt(lease) + (lease.spec?.leaseDurationSeconds ?? 0) * 1000 + SKEW_MS;
  if (Number.isNaN(from) || Number.isNaN(now) || from >= now) return noted;
  const all = [...parseLeaderlessIntervals(noted), [from, now] as const].slice(-MOST);
  return all.map((interval) => interval.map((at) => new Date(at).toISOString()).join("/")).join(",");
}

/** Skips what does not parse. */
export function parseLeaderlessIntervals(annotation: string | undefined): readonly Interval[] {
  return (annotation ?? "").split(",").flatMap((text) => {
    const [from = Number.NaN, to = Number.NaN] = text.split("/").map((at) => Date.parse(at));
    return from < to ? [[from, to] as const] : [];
  });
}

/** Reports whether no controller led when an object was created. */
export function wasLeaderless(intervals: readonly Interval[], createdAt: string | undefined): boolean {
  const at = Date.parse(createdAt ?? "");
  return intervals.some(([from, to]) => from <= at && at <= to);
}
