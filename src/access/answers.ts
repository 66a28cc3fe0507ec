import type { ServerResponse } from "node:http";
import type { KubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
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

/** Answers for a member that takes Legation's credentials no more. The client's own are the host's, and were accepted there. */
export function refusedByMember(member: string): PlainAnswer {
  return statusAnswer(
    "ServiceUnavailable",
    `Cluster ${member} refuses the credentials of legation access: an administrator has to run \`legation join ${member} --access\` again`,
  );
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
