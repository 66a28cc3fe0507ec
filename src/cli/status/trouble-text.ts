import type { Trouble } from "../explain/model.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Formats a trouble for people. */
export function troubleText({ what, since, by, remedy }: Trouble, terminal: Terminal): string {
  const said = [...(since === undefined ? [] : [`since ${since}`]), ...(by === undefined ? [] : [`says ${by}`])];
  const line = `${terminal.paint("red", "trouble:")} ${what}${said.length === 0 ? "" : ` (${said.join(", ")})`}`;
  return remedy === undefined ? line : `${line}\n  ${remedy}`;
}
