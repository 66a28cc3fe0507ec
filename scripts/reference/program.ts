import { Readable } from "node:stream";
import type { Command } from "commander";
import { COMMANDS } from "../../src/cli/commands.ts";
import { createProgram } from "../../src/cli/program.ts";
import type { Session } from "../../src/cli/shared/session.ts";
import { Terminal } from "../../src/cli/shared/terminal.ts";

const unreachable = (): never => {
  throw new Error("documents are made without clusters");
};

/** The command line with all commands loaded, for reading only. */
export async function loadedProgram(): Promise<Command> {
  const session: Session = {
    env: {},
    stdin: Readable.from([]),
    terminal: new Terminal(process.stdout, process.stderr, {}),
    signal: new AbortController().signal,
    connect: unreachable,
    connectText: unreachable,
    openReading: unreachable,
  };
  const program = createProgram(session, "0.0.0");
  for (const { name, load } of COMMANDS) {
    const command = program.commands.find((each) => each.name() === name);
    if (command !== undefined) (await load())(command, session);
  }
  return program;
}
