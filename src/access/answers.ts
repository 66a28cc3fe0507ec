import type { ServerResponse } from "node:http";
import type { UpgradeAnswer } from "../kube/client.ts";
import type { KubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
import { headerPairs } from "../kube/raw-headers.ts";
import { type PlainAnswer, statusAnswer } from "../runtime/upgrade-answers.ts";

// Paths of discovery in a member: /api, /api/v1, /apis, /apis/GROUP and /apis/GROUP/VERSION.
const MEMBER_DISCOVERY = /\/proxy\/(api(\/[^/?]*)?|apis(\/[^/?]*){0,2})(\?|$)/;

/** kubectl shows of a failed discovery the text, and nothing of a Status. */
function shown(url: string, answer: PlainAnswer): PlainAnswer {
  const message = answer.status < 400 || !MEMBER_DISCOVERY.test(url) ? undefined : statusMessage(answer.text);
  if (message === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, "content-type": "text/plain" }, text: message };
}

/** Answers a request of this server's own. `closes` asks the client for another connection. */
export function send(response: ServerResponse, answer: PlainAnswer, closes: boolean): void {
  const { status, headers, text } = shown(response.req.url ?? "", answer);
  // The rest of a body that is not read must not be taken for the next request.
  const connection = response.req.complete && !closes ? {} : { connection: "close" };
  const length = { "content-length": String(Buffer.byteLength(text)) };
  response.writeHead(status, { ...headers, ...length, ...connection }).end(text);
}

/** Refuses a request of a user, or of all users, who have too many in flight. */
export function tooMany(): PlainAnswer {
  const answer = statusAnswer("TooManyRequests", "you have too many requests in flight: end some, or try again");
  return { ...answer, headers: { ...answer.headers, "retry-after": "1" } };
}

/** Returns the answer in place of a member's response that must not reach a user. Undefined if it may. */
export function unsafeResponse(
  member: string,
  status: number,
  headerNames: readonly string[],
): PlainAnswer | undefined {
  // The client's own credentials are the host's, and were accepted there.
  if (status === 401) {
    return statusAnswer(
      "ServiceUnavailable",
      `Cluster ${member} refuses the credentials of legation access: an administrator has to run \`legation join ${member} --access\` again`,
    );
  }
  // A client would follow it with its credentials for the host.
  const isRedirect = status >= 300 && status < 400 && headerNames.some((name) => name.toLowerCase() === "location");
  return isRedirect
    ? statusAnswer("ServiceUnavailable", `Cluster ${member} answered with a redirect, which is not passed on`)
    : undefined;
}

/**
 * Returns the path with a slash at its end, where an API server redirects to it: it does so for the proxy of a pod, service or
 * node (k8s.io/apimachinery, pkg/util/proxy). Undefined for other answers.
 */
export function slashedPath(path: string, status: number, headers: readonly string[]): string | undefined {
  const slashed = path.replace(/(\?.*)?$/, "/$1");
  const [, location] = [...headerPairs(headers)].find(([name]) => name === "location") ?? [];
  return status === 301 && location === slashed ? slashed : undefined;
}

// Orders to browsers and other clients that hold for all of the host's address, or lead elsewhere.
const ORDER =
  /^(set-cookie2?|clear-site-data|strict-transport-security|alt-svc|refresh|service-worker-allowed|nel|report-to|reporting-endpoints)$/i;
// The host's API server adds a response's headers to its own, which has the Audit-ID already.
const AUDIT_ID = "audit-id";

export function headerNames(headers: readonly string[]): string[] {
  return [...headerPairs(headers)].map(([name]) => name);
}

/** Leaves out the Audit-ID, and what would give clients orders about the host, such as cookies. Names and values in turn. */
export function safeHeaders(headers: readonly string[]): string[] {
  return [...headerPairs(headers)].flatMap(([name, value, spelled]) =>
    ORDER.test(name) || name === AUDIT_ID ? [] : [spelled, value],
  );
}

/** Returns the response to an upgrade as it is passed on. The host's API server adds no headers to it, so the Audit-ID stays. */
export function safeUpgrade(member: string, answer: UpgradeAnswer): UpgradeAnswer {
  const entries = Object.entries(answer.headers).filter(([name]) => !ORDER.test(name));
  const headers = Object.fromEntries(entries);
  if (answer.socket !== undefined) return { ...answer, headers };
  return unsafeResponse(member, answer.status, Object.keys(headers)) ?? { ...answer, headers };
}

/** Answers for a request that got no response. `trouble`: why the member does not answer anyone, if that is known. */
export function failed({ code, detail }: KubeError, member: string, trouble: string | undefined): PlainAnswer {
  const reason = trouble ?? detail;
  if (code === "AnswerLost") {
    return statusAnswer(
      "ServiceUnavailable",
      `Cluster ${member} did not answer; what was asked may have been done: ${reason}`,
    );
  }
  return statusAnswer("ServiceUnavailable", `Cluster ${member} cannot be reached: ${reason}`);
}
