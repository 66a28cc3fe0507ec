import { statusMessage } from "../kube/json.ts";
import { deniedRight, isKubeletRefusal } from "../kube/messages.ts";

interface Refused {
  readonly status: number;
  readonly text: string;
}

/** The API server refused Legation, or a kubelet refused its own API server. Undefined for other refusals. */
export function accessProblem({ status, text }: Refused, member: string): string | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const said = statusMessage(text);
  const message = said ?? text;
  const isTheMembers =
    status === 401 ? !isKubelets401(said, text) : deniedRight(message)?.resource.startsWith("pods/") === true;
  if (isTheMembers) {
    return `cluster ${member} refuses Legation (${status}): an administrator must run \`legation join ${member}\` again`;
  }
  if (status === 403 && !isKubeletRefusal(message)) return undefined;
  return `cluster ${member}: its API server may not ask the kubelet there: ${message}`;
}

/** Reports whether a kubelet sent this 401: its single word, which the API server wraps. A proxy may send any text. */
function isKubelets401(said: string | undefined, text: string): boolean {
  return said === undefined ? text.trim() === "Unauthorized" : said !== "Unauthorized";
}
