import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ObjectRef } from "../api/kubernetes.ts";
import type { Member } from "../clusters/member.ts";
import type { UpgradeAnswer } from "../kube/client.ts";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import { pods } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { type PlainAnswer, statusAnswer } from "../runtime/upgrade-answers.ts";
import { UpgradedStreams } from "../serving/upgraded-streams.ts";
import type { Logger } from "../telemetry/logger.ts";
import { accessProblem } from "./access-problem.ts";
import { streamRequest } from "./streams-request.ts";

export interface StreamTarget {
  readonly member: Pick<Member, "name" | "client" | "probed">;
  readonly ref: ObjectRef;
  /** Uid of the proxy, for the log. */
  readonly proxyUid: string;
  readonly container?: string;
}

// A kubelet answers within a second; the rest is patience for an overloaded node.
const STREAM_ANSWER_TIMEOUT_MS = 20_000;

/** Exec, attach and port-forward: joins a connection of the host's API server to one of the member's, byte by byte. */
export class Streams {
  readonly #log: Logger;
  readonly #streams: UpgradedStreams;

  constructor(options: {
    readonly clock: Clock;
    readonly log: Logger;
    /** Opens (1) and ends (-1), for metrics. */
    readonly onStream?: ((member: string, change: 1 | -1) => void) | undefined;
  }) {
    const { clock, log, onStream } = options;
    this.#log = log;
    this.#streams = new UpgradedStreams({
      clock,
      stopping: "the virtual node's controller is stopping: try again",
      onStream,
    });
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Never rejects. Owns the socket from here on. `head` holds bytes that arrived after the request. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: StreamTarget): Promise<void> {
    const { member, ref, proxyUid } = target;
    return this.#streams.open({
      socket,
      head,
      member: member.name,
      log: this.#log.child({ member: member.name, ...ref, proxy: proxyUid, url: request.url }),
      ask: (signal) => ask(request, target, signal),
    });
  }

  /** Resolves within seconds. */
  close(): Promise<void> {
    return this.#streams.close();
  }
}

async function ask(
  request: IncomingMessage,
  { member, ref, container }: StreamTarget,
  signal: AbortSignal,
): Promise<UpgradeAnswer> {
  const asked = streamRequest(request, container);
  if ("problem" in asked) return statusAnswer("BadRequest", asked.problem);
  const { reachable, message = "it does not answer" } = member.probed;
  if (!reachable) return unreachable(member.name, message);
  try {
    const { subresource, ...options } = asked;
    const answer = await member.client.upgrade(pods, ref, subresource, {
      ...options,
      signal,
      timeoutMs: STREAM_ANSWER_TIMEOUT_MS,
    });
    return answer.socket === undefined ? explained(answer, member.name) : answer;
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return failed(error, member.name);
  }
}

function unreachable(member: string, detail: string): PlainAnswer {
  return statusAnswer("ServiceUnavailable", `cluster ${member} cannot be reached: ${detail}`);
}

function failed(error: KubeError, member: string): PlainAnswer {
  if (error.code === "NotSent") return unreachable(member, error.detail);
  if (error.code === "AnswerLost") return statusAnswer("Timeout", `cluster ${member} did not answer: ${error.detail}`);
  return statusAnswer("InternalError", `cluster ${member}: ${error.detail}`);
}

/** A user would mistake the member's refusals for missing rights on the host. */
function explained(answer: PlainAnswer, member: string): PlainAnswer {
  const problem = accessProblem(answer, member);
  return problem === undefined ? answer : statusAnswer("InternalError", problem);
}
