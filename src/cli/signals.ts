export interface SignalAnswers<Name> {
  /** Handles the first signal: the command cleans up. */
  readonly first: (name: Name) => void;
  /** Handles a repeated signal: the user does not want to wait for that. */
  readonly again: (name: Name) => void;
}

// Under `npm run`, a Ctrl-C may arrive twice: from the terminal, and a moment later from npm.
const ONE_CTRL_C_MS = 500;

/** Handles these signals. A signal right after the first one belongs to the same Ctrl-C. */
export function answerSignals<Name extends NodeJS.Signals>(
  names: readonly Name[],
  { first, again }: SignalAnswers<Name>,
  {
    on = (name, listener) => process.on(name, listener),
    now = () => performance.now(),
  }: {
    readonly on?: (name: Name, listener: () => void) => unknown;
    /** Returns milliseconds of a monotonic clock. */
    readonly now?: () => number;
  } = {},
): void {
  let firstAt: number | undefined;
  for (const name of names) {
    on(name, () => {
      if (firstAt === undefined) {
        firstAt = now();
        first(name);
      } else if (now() - firstAt >= ONE_CTRL_C_MS) again(name);
    });
  }
}
