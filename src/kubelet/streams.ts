import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ObjectRef } from "../api/kubernetes.ts";
import type { Member } from "../clusters/member.ts";
import type { UpgradeAnswer } from "../kube/client.ts";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import { pods } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { closeInTime, type JoinedSockets, join } from "../runtime/joined-sockets.ts";
import { type PlainAnswer, refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";
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
const ANSWER_TIMEOUT_MS = 20_000;
// Shorter than the idle timeout of common load balancers.
const KEEP_ALIVE_MS = 30_000;

/**
 * Exec, attach and port-forward: joins a connection from the host's API server to one to the member's, byte by byte.
 */
export class Streams {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onStream: ((member: string, change: 1 | -1) => void) | undefined;
  readonly #open = new Set<JoinedSockets>();
  readonly #opening = new Set<AbortController>();
  #closed = false;

  constructor(options: {
    readonly clock: Clock;
    readonly log: Logger;
    /** Opens (1) and ends (-1), for metrics. */
    readonly onStream?: ((member: string, change: 1 | -1) => void) | undefined;
  }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#onStream = options.onStream;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Never rejects. Owns the socket from here on. `head` holds bytes that arrived after the request. */
  async handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: StreamTarget): Promise<void> {
    socket.on("error", () => {});
    if (socket instanceof Socket) {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      // Detects a vanished peer, since an idle stream may live for hours.
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
    }
    const log = this.#log.child({
      member: target.member.name,
      ...target.ref,
      proxy: target.proxyUid,
      url: request.url,
    });
    try {
      const answer = await this.#ask(request, socket, target);
      if (answer.socket === undefined) {
        log.debug({ status: answer.status }, "stream refused");
        refuse(socket, answer);
        closeInTime(socket, this.#clock);
        return;
      }
      if (this.#closed || socket.destroyed || answer.socket.destroyed) {
        answer.socket.destroy();
        socket.destroy();
        return;
      }
      switchProtocols(socket, answer.headers);
      if (head.length > 0) answer.socket.write(head);
      await this.#join(socket, answer.socket, target.member.name);
      log.debug("stream ended");
    } catch (error) {
      log.error({ err: error }, "stream failed");
      socket.destroy();
    }
  }

  /** Resolves within seconds. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const opening of this.#opening) opening.abort();
    const all = [...this.#open];
    for (const stream of all) stream.end();
    await Promise.all(all.map(({ closed }) => closed));
  }

  async #join(client: Duplex, server: Duplex, member: string): Promise<void> {
    const stream = join(client, server, this.#clock);
    this.#open.add(stream);
    this.#onStream?.(member, 1);
    try {
      await stream.closed;
    } finally {
      this.#open.delete(stream);
      this.#onStream?.(member, -1);
    }
  }

  async #ask(
    request: IncomingMessage,
    socket: Duplex,
    { member, ref, container }: StreamTarget,
  ): Promise<UpgradeAnswer> {
    const asked = streamRequest(request, container);
    if ("problem" in asked) return statusAnswer("BadRequest", asked.problem);
    const { reachable, message = "it does not answer" } = member.probed;
    if (!reachable) return unreachable(member.name, message);
    if (this.#closed) return stopping();
    const abort = new AbortController();
    const gone = (): void => abort.abort();
    this.#opening.add(abort);
    socket.once("close", gone);
    try {
      const { subresource, ...options } = asked;
      const answer = await member.client.upgrade(pods, ref, subresource, {
        ...options,
        signal: abort.signal,
        timeoutMs: ANSWER_TIMEOUT_MS,
      });
      return answer.socket === undefined ? explained(answer, member.name) : answer;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      return this.#closed ? stopping() : failed(error, member.name);
    } finally {
      this.#opening.delete(abort);
      socket.removeListener("close", gone);
    }
  }
}

function unreachable(member: string, detail: string): PlainAnswer {
  return statusAnswer("ServiceUnavailable", `cluster ${member} cannot be reached: ${detail}`);
}

function stopping(): PlainAnswer {
  return statusAnswer("ServiceUnavailable", "the virtual node's controller is stopping: try again");
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
