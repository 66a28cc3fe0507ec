import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Member } from "../clusters/member.ts";
import type { StreamAnswer } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
import { withoutInternalError } from "../kube/messages.ts";
import { pods } from "../kube/resources.ts";
import { type Clock, every, type Timer } from "../runtime/clock.ts";
import { accessProblem } from "./access-problem.ts";
import type { PodRef } from "./pod-lookup.ts";

const OPTIONS = [
  "follow",
  "previous",
  "timestamps",
  "sinceSeconds",
  "sinceTime",
  "tailLines",
  "limitBytes",
  "stream",
] as const;

// Applies to logs that are not followed. A followed log has no headers before its first line, hours later perhaps; only the
// member's probe tells it apart from a member that hangs.
const LOG_ANSWER_TIMEOUT_MS = 30_000;
const PROBE_CHECK_MS = 2_000;

export interface ProxyLog {
  readonly member: Pick<Member, "name" | "client" | "probed">;
  readonly pod: PodRef;
  readonly container: string;
}

/** Streams a delegate's log to the client with backpressure, until either side ends. */
export async function serveLog(
  request: IncomingMessage,
  response: ServerResponse,
  { member, pod: { namespace, name }, container }: ProxyLog,
  clock: Clock,
): Promise<void> {
  // The client left during authorization; its close event is in the past.
  if (response.destroyed) return;
  const { searchParams } = new URL(request.url ?? "", "http://kubelet");
  const query = new URLSearchParams({ container });
  for (const option of OPTIONS) {
    const value = searchParams.get(option);
    if (value !== null) query.set(option, value);
  }
  const follows = searchParams.get("follow") === "true";
  const abort = new AbortController();
  response.once("close", () => abort.abort());
  const watching = abortWhenLost(member, abort, clock);
  let answer: StreamAnswer;
  try {
    answer = await member.client.stream(pods, { namespace, name }, "log", {
      query,
      signal: abort.signal,
      ...(follows ? {} : { timeoutMs: LOG_ANSWER_TIMEOUT_MS }),
    });
  } catch (error) {
    if (response.destroyed) return;
    if (!isKubeError(error)) throw error;
    const { message = error.detail } = member.probed;
    answerText(response, 500, `cluster ${member.name} did not answer: ${message}`);
    return;
  } finally {
    watching.cancel();
  }
  if (answer.body === undefined) {
    const { status, text } = translated(answer, member.name);
    answerText(response, status, text);
    return;
  }
  response.writeHead(200, { "content-type": "text/plain" });
  response.flushHeaders();
  try {
    await pipeline(answer.body, response);
  } catch {
    // Destroying the response omits the last chunk, so a truncated log never looks complete.
    response.destroy();
  }
}

/** Sends a plain text response, as API servers expect from a kubelet. */
export function answerText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(text);
}

function abortWhenLost(member: ProxyLog["member"], abort: AbortController, clock: Clock): Timer {
  return every(clock, PROBE_CHECK_MS, () => {
    if (!member.probed.reachable) abort.abort();
    return !abort.signal.aborted;
  });
}

/** The host's API server shows the message for 400 and 500, and its own for other codes. */
function translated(
  { status, text }: { readonly status: number; readonly text: string },
  member: string,
): { readonly status: number; readonly text: string } {
  const problem = accessProblem({ status, text }, member);
  if (problem !== undefined) return { status: 500, text: problem };
  const message = statusMessage(text) ?? text;
  if (status === 400 || status === 404) return { status, text: message };
  if (status === 401 || status === 403) return { status: 500, text: `cluster ${member}: ${message}` };
  // The host's API server will add the prefix again.
  return { status: 500, text: withoutInternalError(message) };
}
