import { isKubeError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Outcome, type OutputFormat, printOutcome } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { fitted } from "../shared/text-width.ts";

export interface FollowStatusOptions {
  readonly format: OutputFormat;
  readonly terminal: Terminal;
  readonly clock: Pick<Clock, "now" | "sleep">;
  readonly signal: AbortSignal;
}

const READ_EVERY_MS = 2_000;
// A host that takes long to answer is asked less often.
const PAUSE_PER_READ = 2;

/** Shows a status until the signal fires, also across an outage. Rejects with its reason, or with a lasting error. */
export async function followStatus(
  read: () => Promise<Outcome>,
  { format, terminal, clock, signal }: FollowStatusOptions,
): Promise<never> {
  const redraws = format !== "json" && format !== "yaml" && terminal.canRedraw;
  let shown: string | undefined;
  const show = (outcome: Outcome): void => {
    if (redraws) {
      terminal.redraw(fitted(outcome.text, terminal.width));
      return;
    }
    if (shown !== undefined && format !== "json") terminal.print(format === "yaml" ? "---" : "");
    printOutcome(terminal, format, outcome);
  };
  // The problem of the outage that lasts, as it was told.
  let told: string | undefined;
  for (;;) {
    const startedAt = clock.now();
    try {
      const outcome = await read();
      // Ages change each second: elsewhere than on a screen only the facts count.
      const seen = redraws ? outcome.text : JSON.stringify(outcome.document);
      const hasNews = seen !== shown || (redraws && told !== undefined);
      if (hasNews) show(outcome);
      shown = seen;
      told = undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (shown === undefined || !isKubeError(error) || error.retryClass === "never") throw error;
      const problem = `${error.message}; asking again`;
      if (problem !== told) terminal.progress(terminal.paintProgress("yellow", problem));
      told = problem;
    }
    const tookMs = clock.now() - startedAt;
    await clock.sleep(Math.max(READ_EVERY_MS, tookMs * PAUSE_PER_READ), signal);
  }
}
