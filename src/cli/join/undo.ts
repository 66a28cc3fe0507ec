/** A created object and how to remove it. */
interface Step {
  readonly what: string;
  readonly undo: (signal: AbortSignal) => Promise<void>;
}

// The slowest step waits ten seconds for the controller and twenty for a namespace.
const STEP_TIMEOUT_MS = 30_000;

/** Records what one call created, so that a later failure can remove it in reverse order. */
export class UndoStack {
  #steps: Step[] = [];

  /** Records a step. `what` names the object for people: `Secret legation-system/member-west`. */
  push(what: string, undo: (signal: AbortSignal) => Promise<void>): void {
    this.#steps.push({ what, undo });
  }

  /** Returns a function that exempts all steps up to now from the undo. */
  keepSoFar(): () => void {
    const made = new Set(this.#steps);
    return () => {
      this.#steps = this.#steps.filter((step) => !made.has(step));
    };
  }

  /** Undoes all steps, last first, each with a deadline of its own. Returns the steps that failed, with the reason. */
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
