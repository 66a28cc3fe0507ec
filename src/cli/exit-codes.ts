/** How a command ends, by name. */
export type ExitName = "ok" | "failure" | "usage" | "refused" | "notReady" | "unfit" | "interrupted" | "terminated";

/** Every exit code of `legation`, with what it tells a script. docs/cli.md holds the same table. */
export const EXIT_CODES: Readonly<Record<ExitName, number>> = {
  ok: 0,
  /** An API server, file or the network failed; the message says which. */
  failure: 1,
  /** The command line or environment is wrong; nothing was done. */
  usage: 2,
  /** The request is clear, but the state of the clusters forbids it. */
  refused: 3,
  /** A wait timed out. */
  notReady: 4,
  /** `plan`: a pod of the manifest would wait or be refused; nothing was done. */
  unfit: 5,
  /** Ctrl-C (SIGINT), after cleaning up: 128 + 2, as shells count it. */
  interrupted: 130,
  /** SIGTERM, after cleaning up: 128 + 15. */
  terminated: 143,
};
