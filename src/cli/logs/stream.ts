import type { Readable } from "node:stream";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { statusMessage } from "../../kube/json.ts";
import { pods } from "../../kube/resources.ts";
import type { LogSource } from "./sources.ts";

export interface LogTarget {
  readonly source: LogSource;
  readonly pod: Stored<Pod>;
  readonly container: string;
}

export interface LogQuery {
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tail?: number | undefined;
  readonly sinceSeconds?: number | undefined;
  /** RFC 3339; the API server cuts it to the second. */
  readonly sinceTime?: string | undefined;
}

/** The end of a stream. `cut`: the connection failed. `gone`: there is no such pod. */
export interface StreamEnd {
  readonly end: "complete" | "gone" | "forbidden" | "refused" | "cut";
  readonly message: string;
}

// Deadline of a log that is not followed: of its first byte, and between two chunks.
const SILENCE_MS = 30_000;

/** Opens a log, which the signal ends. A log that is not followed has to answer within 30 s. */
export async function openLog(
  { source, pod, container }: LogTarget,
  { follow, timestamps, tail, sinceSeconds, sinceTime }: LogQuery,
  signal: AbortSignal,
): Promise<{ readonly body: Readable } | StreamEnd> {
  const query = new URLSearchParams({ container });
  if (follow) query.set("follow", "true");
  if (timestamps) query.set("timestamps", "true");
  if (tail !== undefined) query.set("tailLines", String(tail));
  if (sinceTime !== undefined) query.set("sinceTime", sinceTime);
  else if (sinceSeconds !== undefined) query.set("sinceSeconds", String(sinceSeconds));
  const { namespace = "", name } = pod.metadata;
  const timeout = follow ? {} : { timeoutMs: SILENCE_MS };
  try {
    const answer = await source.client.stream(pods, { namespace, name }, "log", { query, signal, ...timeout });
    if (answer.body !== undefined) return { body: answer.body };
    const end = answer.status === 404 ? "gone" : answer.status === 403 ? "forbidden" : "refused";
    return { end, message: statusMessage(answer.text) ?? answer.text };
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return { end: "cut", message: error.detail };
  }
}

/** Passes on a log's chunks until the stream ends, or is silent for too long though it is not followed. */
export async function readLog(body: Readable, follow: boolean, take: (chunk: Buffer) => void): Promise<StreamEnd> {
  const late = (): void => void body.destroy(new Error(`nothing came for ${SILENCE_MS / 1000} s`));
  const timer = follow ? undefined : setTimeout(late, SILENCE_MS);
  try {
    for await (const chunk of body) {
      if (Buffer.isBuffer(chunk)) take(chunk);
      timer?.refresh();
    }
    return { end: "complete", message: "" };
  } catch (error) {
    return { end: "cut", message: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
