import type { ClusterClient } from "../../../kube/client.ts";
import { namespaces } from "../../../kube/resources.ts";
import type { Limits } from "./check.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** The clock of an API server, compared with this machine's. */
export interface ClockOffset {
  /** Milliseconds by which the server's clock is ahead; negative if it is behind. */
  readonly aheadMs: number;
  /** Milliseconds by which that may be wrong. */
  readonly uncertainMs: number;
}

// A Date header has whole seconds.
const RESOLUTION_MS = 1_000;
const TOLERATED_MS = 10_000;
// From here on the leader's records of outages are wrong, and soon tokens and certificates are (docs/operations.md).
const HARMFUL_MS = 60_000;

/** Reads an API server's clock from the Date header of an answer. Undefined without such a header. Rejects with KubeError. */
export async function readClock(
  client: ClusterClient,
  { signal, timeoutMs, now = Date.now }: Limits & { readonly now?: () => number },
): Promise<ClockOffset | undefined> {
  const before = now();
  // Any answer has the header, also a refusal.
  const answer = await client.stream(namespaces, { name: "kube-system" }, "status", {
    query: new URLSearchParams(),
    signal,
    timeoutMs,
  });
  const after = now();
  answer.body?.destroy();
  return clockOffset(answer.headers.date, before, after);
}

/** Computes the offset from a Date header and this machine's times before and after the request, epoch ms. */
export function clockOffset(header: string | undefined, before: number, after: number): ClockOffset | undefined {
  const at = Date.parse(header ?? "");
  if (Number.isNaN(at)) return undefined;
  const uncertainMs = (after - before + RESOLUTION_MS) / 2;
  return { aheadMs: at + RESOLUTION_MS / 2 - (before + after) / 2, uncertainMs };
}

/** Judges an offset between two clocks. `aheadMs` is that of `subject` before `other`. */
export function clockFinding(subject: string, other: string, { aheadMs, uncertainMs }: ClockOffset): Finding {
  const off = Math.abs(aheadMs) - uncertainMs;
  const words = `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? "ahead of" : "behind"} ${other}`;
  const remedy = "set both clocks by NTP: `timedatectl set-ntp true` on their machines";
  if (off <= TOLERATED_MS) return ok(`${subject} agrees with ${other}`);
  const what = `${subject} is ${words}`;
  return off <= HARMFUL_MS
    ? warn(what, remedy)
    : fail(`${what}: tokens and certificates may not be valid there`, remedy);
}

/** Returns the difference between two clocks that were each compared with this machine's. */
export function between(one: ClockOffset, other: ClockOffset): ClockOffset {
  return { aheadMs: one.aheadMs - other.aheadMs, uncertainMs: one.uncertainMs + other.uncertainMs };
}
