import { ageOf } from "../../../api/wording.ts";
import { agentCertificateWords, credentialsWords } from "../../explain/credentials-words.ts";
import type { MemberDetail } from "../../explain/member.ts";
import { capital, zonedTime } from "./format.ts";

/** Returns how a member is reached, by whom, and with which credentials, a sentence each. `now`: epoch ms. */
export function reachedWords(
  { connection, agent, access, credentials }: Pick<MemberDetail, "connection" | "agent" | "access" | "credentials">,
  now: number,
  zone?: string,
): string[] {
  const timeText = (at: string): string => zonedTime(at, zone);
  const { version, connectedSince } = agent ?? {};
  const since =
    connectedSince === undefined
      ? ""
      : `, connected since ${timeText(connectedSince)} (${ageOf(connectedSince, now) ?? "–"})`;
  const byAgent = `By its agent of ${version === undefined ? "an unknown version" : `version ${version}`}${since}${agentCertificateWords(agent, timeText)}`;
  const way = connection === "Agent" ? byAgent : connection === "Direct" ? "Directly" : "No controller says how";
  const users =
    access === undefined ? "Closed to users of the host" : `Open to users of the host as ${access.prefix}USER`;
  return [way, users, capital(credentialsWords(credentials, timeText))].map((sentence) => `${sentence}.`);
}
