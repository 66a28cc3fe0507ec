import type { ToldEvent } from "../explain/events.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Returns a time (RFC 3339) without parts of a second: most times of Kubernetes have none. */
export function wholeSeconds(at: string): string {
  return at.replace(/\.\d+(?=Z$)/, "");
}

export function eventsText(events: readonly ToldEvent[], terminal: Terminal): string {
  const rows = events.map(({ at, type, reason, message }) => [wholeSeconds(at), type, reason, message]);
  return table(["TIME", "EVENT", "REASON", "MESSAGE"], rows, terminal.width, ["EVENT", "TIME"]);
}
