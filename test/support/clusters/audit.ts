import { createReadStream, statSync } from "node:fs";
import { text } from "node:stream/consumers";
import { z } from "zod";
import type { ClusterInfo } from "./types.ts";

/** A request in the API server's audit log. */
export interface AuditEvent {
  readonly auditID?: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly impersonatedUser?: { readonly username: string };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
    readonly apiGroup?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  /** The written object or patch, where the audit policy records it. */
  readonly requestObject?: unknown;
  /** The API server's own, e.g. `authorization.k8s.io/decision`. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** RFC 3339 with microseconds. */
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

const auditEvent: z.ZodType<AuditEvent> = z.object({
  auditID: z.string().exactOptional(),
  verb: z.string(),
  requestURI: z.string(),
  user: z.object({ username: z.string() }),
  impersonatedUser: z.object({ username: z.string() }).exactOptional(),
  userAgent: z.string().exactOptional(),
  objectRef: z
    .object({
      resource: z.string().exactOptional(),
      subresource: z.string().exactOptional(),
      namespace: z.string().exactOptional(),
      name: z.string().exactOptional(),
      uid: z.string().exactOptional(),
      apiGroup: z.string().exactOptional(),
    })
    .exactOptional(),
  responseStatus: z.object({ code: z.number().exactOptional() }).exactOptional(),
  requestObject: z.unknown().exactOptional(),
  annotations: z.record(z.string(), z.string()).exactOptional(),
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
});

const READS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

/** Reports whether the request was a write, refused or not. A dry run is not. */
export function isWrite({ verb, requestURI }: AuditEvent): boolean {
  return !READS.has(verb) && !requestURI.includes("dryRun=");
}

// Offsets to read from, by the log's path.
const starts = new Map<string, number>();

/** Skips what the cluster's log holds by now: files that share clusters want their own requests. */
export function auditFromHere({ auditLog }: Pick<ClusterInfo, "auditLog">): void {
  starts.set(auditLog, statSync(auditLog).size);
}

/**
 * Returns completed requests that `which` accepts, in the order of their end; watches when they end. Lines without
 * any of the words are not parsed.
 */
export async function auditEvents(
  cluster: Pick<ClusterInfo, "auditLog">,
  which: (event: AuditEvent) => boolean,
  words: readonly string[] = [""],
): Promise<AuditEvent[]> {
  return eventsFrom(starts.get(cluster.auditLog) ?? 0, cluster, which, words);
}

/** Returns requests of the whole log, of all users. */
export async function allAuditEvents(
  cluster: Pick<ClusterInfo, "auditLog">,
  which: (event: AuditEvent) => boolean,
  words: readonly string[],
): Promise<AuditEvent[]> {
  return eventsFrom(0, cluster, which, words);
}

async function eventsFrom(
  place: number,
  { auditLog }: Pick<ClusterInfo, "auditLog">,
  which: (event: AuditEvent) => boolean,
  words: readonly string[],
): Promise<AuditEvent[]> {
  // Starts behind a line break: the line before it may be incomplete.
  const start = Math.max(0, place - 1);
  const log = await text(createReadStream(auditLog, { start }));
  const first = start === 0 ? 0 : log.indexOf("\n") + 1;
  // Text after the last line break is incomplete.
  const lines = log.slice(first, Math.max(first, log.lastIndexOf("\n"))).split("\n");
  return lines
    .filter((line) => words.some((word) => line.includes(word)) && line.includes('"stage":"ResponseComplete"'))
    .map((line) => auditEvent.parse(JSON.parse(line)))
    .filter(which);
}
