import { constants } from "node:os";
import type { Terminal } from "../../src/cli/shared/terminal.ts";
import { answerSignals } from "../../src/cli/signals.ts";
import { killProcesses } from "./process.ts";

/**
 * Returns a signal that Ctrl-C and its like abort, so that everything is stopped. A second one kills the recorded processes of the
 * folder that `running` names, and exits.
 */
export function abortedBySignals(terminal: Terminal, running: () => string | undefined): AbortSignal {
  const interruption = new AbortController();
  // The reader of the output may be gone (Ctrl-C in a pipe); everything is still stopped.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  answerSignals(["SIGINT", "SIGTERM", "SIGHUP"], {
    first: (name) => {
      terminal.progress(`\n${name}: stopping everything`);
      process.exitCode = 128 + constants.signals[name];
      interruption.abort();
    },
    again: (name) => {
      const directory = running();
      if (directory !== undefined) killProcesses(directory);
      process.exit(128 + constants.signals[name]);
    },
  });
  return interruption.signal;
}
