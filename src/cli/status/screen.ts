import { KubeError } from "../../kube/errors.ts";
import { type Clock, realClock } from "../../runtime/clock.ts";
import { type Outcome, printOutcome } from "../shared/output.ts";
import type { Session } from "../shared/session.ts";
import type { Terminal } from "../shared/terminal.ts";

const CLEAR = "\u001B[H\u001B[2J";

/** Shows results in place on a terminal, and one below the other elsewhere. Skips an unchanged result. */
export class Screen {
  readonly #terminal: Terminal;
  readonly #format: "text" | "json" | "yaml";
  #shown: string | undefined;

  constructor(terminal: Terminal, format: "text" | "json" | "yaml") {
    this.#terminal = terminal;
    this.#format = format;
  }

  show(outcome: Outcome): void {
    const identity = JSON.stringify(outcome.document);
    if (identity === this.#shown) return;
    if (this.#terminal.interactive && this.#format === "text") this.#terminal.write(CLEAR);
    else if (this.#shown !== undefined && this.#format !== "json")
      this.#terminal.write(this.#format === "yaml" ? "---\n" : "\n");
    this.#shown = identity;
    printOutcome(this.#terminal, this.#format, outcome);
  }
}

/** Shows what `read` returns, with `watch` until the signal fires. A failing API server ends only the first read. */
export async function showFollowing(
  { watch, output }: { readonly watch: boolean; readonly output: "text" | "json" | "yaml" },
  { terminal, signal }: Session,
  everyMs: number,
  read: () => Promise<Outcome>,
  clock: Clock = realClock,
): Promise<void> {
  const screen = new Screen(terminal, output);
  screen.show(await read());
  let failure: string | undefined;
  while (watch) {
    await clock.sleep(everyMs, signal);
    try {
      const outcome = await read();
      if (failure !== undefined) terminal.progress("the host answers again");
      failure = undefined;
      screen.show(outcome);
    } catch (error) {
      if (signal.aborted || !(error instanceof KubeError) || error.retryClass === "never") throw error;
      if (error.message !== failure) terminal.progress(`${error.message}; what is shown is old, and is read again`);
      failure = error.message;
    }
  }
}
