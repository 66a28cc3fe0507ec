import { z } from "zod";

const statusBody = z.object({ kind: z.literal("Status"), message: z.string() });
// Of an API server's authorisation, whoever asks it for a pod's log or streams.
const NO_RIGHT = /cannot (get|create) resource \\?"pods\//;
// Of a kubelet's authorisation (kubelet/server/server.go), alone or within its API server's words.
const KUBELET_FORBIDS = /Forbidden \(user=/;

/** An answer other than what was asked for. */
interface Refused {
  readonly status: number;
  readonly text: string;
}

/**
 * Who lets whom not in, when a member answers 401 or 403 to a request for a pod's log or streams: its API server Legation, or the
 * kubelet its own API server, whose words that one passes on. Undefined when it is about neither: admission, say.
 */
export function accessProblem({ status, text }: Refused, member: string): string | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const said = statusMessage(text);
  const message = said ?? text;
  const isTheMembers = status === 401 ? !isKubelets401(said, text) : NO_RIGHT.test(message);
  if (isTheMembers) {
    return `cluster ${member} refuses Legation (${status}): an administrator must run \`legation join ${member} --member-kubeconfig FILE\` again`;
  }
  if (status === 403 && !KUBELET_FORBIDS.test(message)) return undefined;
  return `cluster ${member}: its API server may not ask the kubelet there: ${message}`;
}

/** A kubelet says no more than one word, of which its API server makes a sentence. Who stands in front of an API server may say anything. */
function isKubelets401(said: string | undefined, text: string): boolean {
  return said === undefined ? text.trim() === "Unauthorized" : said !== "Unauthorized";
}

/** The message of a `Status`; undefined when the text is none. */
export function statusMessage(text: string): string | undefined {
  try {
    return statusBody.parse(JSON.parse(text)).message;
  } catch {
    return undefined;
  }
}
