import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { onAbort } from "../kube/abort.ts";
import { isKubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
import { cutAt } from "../kube/messages.ts";
import type { PortForwards } from "../kube/port-forward.ts";
import { LASTING_SOCKET } from "../runtime/https-listener.ts";
import type { RelayFailure } from "../telemetry/relay.ts";
import type { RelayPod } from "./endpoints.ts";

/** A connection to a pod, or why there is none. */
export type Connected =
  | { readonly stream: Duplex }
  | {
      readonly stream?: never;
      readonly reason: RelayFailure;
      readonly message: string;
      /** The pod has ended, or is no more. Undefined: nothing says so. */
      readonly isGone?: boolean;
    };

// A kubelet answers within a second; the rest is patience for an overloaded node.
const ANSWER_MS = 20_000;
// An API server answers 404 without the pod; a virtual node 400 or 404 if the pod has ended or has left the member.
const GONE: readonly number[] = [400, 404];
// Kubelets' words are shorter, and a hostile one may send any.
const LONGEST_TEXT = 1_024;

/**
 * Connects to a pod: on the host to its address; in a member by port-forward of the host's API server, which asks the virtual node,
 * as kubectl does. This process has no credentials of members.
 */
export async function connectTo(
  forwards: Pick<PortForwards, "forward">,
  pod: RelayPod,
  signal: AbortSignal,
): Promise<Connected> {
  if (pod.cluster === undefined) return dial(pod, signal);
  try {
    const forwarded = await forwards.forward(pod, pod.port, { signal, timeoutMs: ANSWER_MS });
    if ("stream" in forwarded) return forwarded;
    const { status, text } = forwarded;
    return {
      reason: "Unreachable",
      message: statusMessage(text) ?? `status ${status}: ${cutAt(text, LONGEST_TEXT)}`,
      isGone: GONE.includes(status),
    };
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return { reason: "Unreachable", message: error.detail };
  }
}

function dial({ address: host, port }: RelayPod, signal: AbortSignal): Promise<Connected> {
  const socket = connect({ host, port, allowHalfOpen: true, ...LASTING_SOCKET });
  const giveUp = (): void => void socket.destroy(new Error(`no answer within ${ANSWER_MS} ms`));
  socket.setTimeout(ANSWER_MS, giveUp);
  const forget = onAbort(signal, giveUp);
  return new Promise((resolve) => {
    socket.once("connect", () => {
      forget();
      socket.setTimeout(0);
      resolve({ stream: socket });
    });
    socket.once("error", ({ message }) => resolve({ reason: "Refused", message }));
  });
}
