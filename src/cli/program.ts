import { Command, CommanderError } from "commander";
import { COMMANDS } from "./commands.ts";
import { COMPLETE } from "./completion/shells.ts";
import { addCommands, flag } from "./shared/command.ts";
import { diagnose, EXIT_CODES } from "./shared/failure.ts";
import type { Session } from "./shared/session.ts";

const EXIT_CODE_HELP = `
Exit codes:
  0         done
  1         a cluster, a file or the network failed
  2         the command line is wrong
  3         the state of the clusters forbids it
  4         what was waited for did not come in time
  5         plan: a pod would wait or be refused; convert --strict: a field has no equal
  130, 143  interrupted

Every flag can also be given as the environment variable shown beside it; when both are given, the flag counts.`;

/** Builds the command line of Legation. `fitHelp` breaks the lines of a help text. */
export function createProgram(
  session: Session,
  version: string,
  fitHelp: (text: string) => string = (text) => text,
): Command {
  const { terminal } = session;
  const program = new Command("legation")
    .description("Runs unchanged Kubernetes pods and workloads in other clusters.")
    .version(version, "-V, --version", "print Legation's version")
    .helpCommand(false)
    .showHelpAfterError("(see --help)")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => terminal.write(fitHelp(text)),
      writeErr: (text) => terminal.complain(text),
      getOutHelpWidth: () => Number.POSITIVE_INFINITY,
    })
    .exitOverride()
    .addHelpText("after", EXIT_CODE_HELP)
    .addOption(
      flag("--kubeconfig <file>", "kubeconfig of the host cluster (default: KUBECONFIG, ~/.kube/config, in-cluster)"),
    )
    .addOption(flag("--context <name>", "context of that kubeconfig (default: its current one)"))
    .addOption(
      flag(
        "-o, --output <format>",
        "format of the result: wide (tables with all columns, however narrow the terminal), json or yaml; with get also name",
      ),
    )
    .addOption(flag("--verbose", "print the stack of an error"));
  addCommands(program, COMMANDS, session);
  return program.showHelpAfterError("(see --help; the flags of a command stand after it: `legation COMMAND --help`)");
}

/** Runs one command line. Resolves to the exit code, and never rejects. */
export async function runProgram(args: readonly string[], session: Session, version: string): Promise<number> {
  const { terminal } = session;
  const program = createProgram(session, version, await helpFitting(terminal.width));
  if (args[0] === COMPLETE) return await complete(args.slice(1), program, session);
  try {
    await program.parseAsync(args, { from: "user" });
    return EXIT_CODES.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
    const { exit, message, remedy } = diagnose(error, session.signal);
    // Ctrl-C is how a command ends that follows something.
    if (exit === "interrupted") terminal.progress(message);
    else terminal.progress(`${terminal.paintProgress("red", "error:")} ${message}`);
    if (remedy !== undefined) terminal.progress(`       ${remedy}`);
    const { isVerbose } = await import("./shared/input.ts");
    if (isVerbose(program, session.env)) terminal.progress(stackOf(error));
    return EXIT_CODES[exit];
  }
}

/** Returns how help is broken into lines: on a terminal only. */
async function helpFitting(width: number): Promise<((text: string) => string) | undefined> {
  if (width === Number.POSITIVE_INFINITY) return undefined;
  const { fittedHelp } = await import("./shared/help-text.ts");
  return (text) => fittedHelp(text, width);
}

/** Prints what may come next on a command line, for the scripts of `legation completion`. */
async function complete(words: readonly string[], program: Command, session: Session): Promise<number> {
  const { candidates } = await import("./completion/complete.ts");
  for (const { word, description } of await candidates(words, program, COMMANDS, session)) {
    session.terminal.print(`${word}\t${description}`);
  }
  return EXIT_CODES.ok;
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack ?? error.message;
  return error.cause === undefined ? own : `${own}\ncaused by: ${stackOf(error.cause)}`;
}
