/** Handlers for termination signals. */
export interface SignalAnswers<Name> {
  /** The first one: it cleans up. */
  readonly first: (name: Name) => void;
  /** Each that comes again: who asks again does not want to wait for that. */
  readonly again: (name: Name) => void;
}

// Under `npm run` with bash as /bin/sh, a Ctrl-C arrives twice: from the terminal, and a moment later from npm.
const ONE_CTRL_C_MS = 500;

/** Answers these signals; those that come together with the first one are the same Ctrl-C. */
export function answerSignals<Name extends NodeJS.Signals>(
  names: readonly Name[],
  { first, again }: SignalAnswers<Name>,
  {
    on = (name, listener) => process.on(name, listener),
    now = () => performance.now(),
  }: {
    readonly on?: (name: Name, listener: () => void) => unknown;
    /** Milliseconds of a clock that nobody sets. */
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
