import type { Readable } from "node:stream";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { statusMessage } from "../../kube/json.ts";
import { pods } from "../../kube/resources.ts";
import type { ContainerChoice } from "./containers.ts";
import { type LogSource, logName } from "./sources.ts";

/** A container's log. */
export interface LogTarget {
  readonly source: LogSource;
  readonly pod: Stored<Pod>;
  readonly container: string;
  /** The log's name before each line: `west/sweep-x7k2p`. */
  readonly name: string;
}

export function logTarget(
  source: LogSource,
  pod: Stored<Pod>,
  container: string,
  { all }: Pick<ContainerChoice, "all">,
): LogTarget {
  return { source, pod, container, name: all ? `${logName(source, pod)}/${container}` : logName(source, pod) };
}

/** The parameters of a log (PodLogOptions). The API server cuts `sinceTime`, RFC 3339, to the second. */
type LogQuery = Readonly<
  Partial<Record<"timestamps" | "tailLines" | "sinceSeconds" | "sinceTime", true | number | string | undefined>>
>;

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
  follow: boolean,
  wanted: LogQuery,
  signal: AbortSignal,
): Promise<{ readonly body: Readable } | StreamEnd> {
  const parameters = Object.entries({ container, follow: follow || undefined, ...wanted });
  const query = new URLSearchParams(
    parameters.flatMap(([key, value]): [string, string][] => (value === undefined ? [] : [[key, `${value}`]])),
  );
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
