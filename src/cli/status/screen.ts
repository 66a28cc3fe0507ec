import { type Outcome, printOutcome } from "../output.ts";
import type { Terminal } from "../terminal.ts";

const CLEAR = "\u001B[H\u001B[2J";

/** Shows one result after another: in place on a terminal, one below the other elsewhere; the same twice only once. */
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
