import type { Terminal } from "../shared/terminal.ts";
import type { Trouble } from "./model.ts";
import type { PendingPods } from "./pending.ts";
import { reasonLine, reasonsOf } from "./reasons.ts";

export function troubleText(trouble: Trouble, terminal: Terminal): string {
  const line = `${terminal.paint("red", "trouble:")} ${trouble.what}${saidText(trouble)}`;
  return trouble.remedy === undefined ? line : `${line}\n  ${trouble.remedy}`;
}

/** Formats since when there is a trouble, and who says so: ` (since …, says …)`. Empty if neither is on record. */
export function saidText({ since, by }: Trouble): string {
  const said = [...(since === undefined ? [] : [`since ${since}`]), ...(by === undefined ? [] : [`says ${by}`])];
  return said.length === 0 ? "" : ` (${said.join(", ")})`;
}

/** Formats pods that wait for one reason, with a line for each member: `3 pods wait (web-0, …): NotPlaced`. */
export function pendingText({ pods, reason, message }: PendingPods, terminal: Terminal): string {
  const [first] = pods;
  const who = pods.length === 1 ? `${first} waits` : `${pods.length} pods wait (${first}, …)`;
  return [`${terminal.paint("red", who)}: ${reason}`, ...reasonsOf(message).map((one) => `  ${reasonLine(one)}`)].join(
    "\n",
  );
}
