import type { ToldEvent } from "../explain/events.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

export function eventsText(events: readonly ToldEvent[], terminal: Terminal): string {
  const rows = events.map(({ at, type, reason, message }) => [at, type, reason, message]);
  return table(["TIME", "EVENT", "REASON", "MESSAGE"], rows, terminal.width, ["EVENT", "TIME"]);
}
