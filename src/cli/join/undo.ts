/** A created object and how to remove it. */
interface Step {
  readonly what: string;
  readonly undo: (signal: AbortSignal) => Promise<void>;
}

// Ten seconds more than the slowest step: the controller takes up to that long to let a Cluster go.
const STEP_TIMEOUT_MS = 30_000;

/** Remembers what one call has made, so that a failure further on can take it back in reverse order. */
export class UndoStack {
  #steps: Step[] = [];

  /** `what` names the thing for people: `Secret legation-system/member-west`. */
  push(what: string, undo: (signal: AbortSignal) => Promise<void>): void {
    this.#steps.push({ what, undo });
  }

  /** A way to leave, when it is called, what has been made up to now; what is made later is still taken back. */
  keepSoFar(): () => void {
    const made = new Set(this.#steps);
    return () => {
      this.#steps = this.#steps.filter((step) => !made.has(step));
    };
  }

  /**
   * Takes everything back, last first. Each step has its own deadline and a failed one does not stop the others.
   * Returns what could not be taken back, with the reason.
   */
  async run(report: (line: string) => void): Promise<string[]> {
    const remained: string[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.undo(AbortSignal.timeout(STEP_TIMEOUT_MS));
        report(`undone: ${step.what}`);
      } catch (error) {
        remained.push(`${step.what} (${error instanceof Error ? error.message : String(error)})`);
      }
    }
    return remained;
  }
}
