import { ageOf } from "../../../api/wording.ts";
import { credentialsWords } from "../../explain/credentials-words.ts";
import type { MemberPageView } from "../model.ts";
import { zonedTime } from "./format.ts";

/** Returns how a member is reached, by whom, and with which credentials, a sentence each. `now`: epoch ms. */
export function reachedWords(
  { connection, agentVersion, connectedSince, accessPrefix, credentials }: MemberPageView,
  now: number,
  zone?: string,
): string[] {
  const timeText = (at: string): string => zonedTime(at, zone);
  const since =
    connectedSince === undefined
      ? ""
      : `, connected since ${timeText(connectedSince)} (${ageOf(connectedSince, now) ?? "–"})`;
  const agent = `By its agent of ${agentVersion === undefined ? "an unknown version" : `version ${agentVersion}`}${since}`;
  const way = connection === "Agent" ? agent : connection === "Direct" ? "Directly" : "No controller says how";
  const users =
    accessPrefix === undefined ? "Closed to users of the host" : `Open to users of the host as ${accessPrefix}USER`;
  const words = credentialsWords(credentials, timeText);
  return [way, users, words.charAt(0).toUpperCase() + words.slice(1)].map((sentence) => `${sentence}.`);
}
