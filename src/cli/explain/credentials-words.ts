import type { AgentStatus } from "../../api/cluster-status.ts";
import { timestamp } from "../../api/kubernetes.ts";
import type { MemberCredentials } from "./credentials.ts";

/** Returns when an agent's certificate expires, behind what else is said of the agent. Empty where it is not known. */
export function agentCertificateWords(agent: AgentStatus | undefined, timeText: (at: string) => string): string {
  const { certificateExpires } = agent ?? {};
  return certificateExpires === undefined
    ? ""
    : `, with a certificate that is valid until ${timeText(certificateExpires)}`;
}

/** Returns when a member's credentials end and are renewed, as a sentence without its full stop. `timeText` formats a time. */
export function credentialsWords(
  { secret, state, expires = "", since }: MemberCredentials,
  timeText: (at: string) => string,
): string {
  const place = `Secret legation-system/${secret}`;
  switch (state) {
    case "renewed": {
      const end = `its token is in ${place}, valid until ${timeText(expires)}`;
      if (since === undefined) return `${end}, and renewed at half of its life`;
      const [from, to] = [Date.parse(since), Date.parse(expires)];
      const due = timestamp(from + (to - from) / 2);
      return `${end}, made at ${timeText(since)}, and renewed at ${timeText(due)}`;
    }
    case "unrecorded":
      return `its credentials are in ${place}, which does not record when they end; \`legation doctor\` reads a token's end`;
    case "awaited":
      return `its credentials are to be in ${place}, and its agent has not brought them yet`;
    case "missing":
      return `${place} with its credentials is missing`;
    case "hidden":
      return `its credentials are in ${place}; when they end is not shown, since you may not read it`;
  }
}
