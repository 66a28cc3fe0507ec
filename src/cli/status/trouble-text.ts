import type { ToldEvent } from "../explain/events.ts";
import type { Trouble } from "../explain/model.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Formats a trouble for people. */
export function troubleText({ what, since, by, remedy }: Trouble, terminal: Terminal): string {
  const said = [...(since === undefined ? [] : [`since ${since}`]), ...(by === undefined ? [] : [`says ${by}`])];
  const line = `${terminal.paint("red", "trouble:")} ${what}${said.length === 0 ? "" : ` (${said.join(", ")})`}`;
  return remedy === undefined ? line : `${line}\n  ${remedy}`;
}

/** Formats the events of an object for people. */
export function eventsText(events: readonly ToldEvent[], terminal: Terminal): string {
  const rows = events.map(({ at, type, reason, message }) => [at, type, reason, message]);
  return table(["TIME", "EVENT", "REASON", "MESSAGE"], rows, terminal.width, ["EVENT", "TIME"]);
}
