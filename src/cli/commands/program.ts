import { Command, CommanderError } from "commander";
import { diagnose, exitCodeOf, Failure } from "../failure.ts";
import { flag, flagIn } from "../flag.ts";
import type { Session } from "../session.ts";
import { addCommands } from "../subcommand.ts";
import { COMMANDS } from "./list.ts";

const EXIT_CODE_HELP = `
Exit codes:
  0 done   1 a cluster, file or the network failed   2 wrong command line   3 refused by the state of the clusters
  4 what was waited for did not come in time   5 plan: a pod would wait or be refused   130, 143 interrupted

Every flag can also be given as the environment variable shown beside it; when both are given, the flag counts.`;

/** The whole command line of Legation. */
export function createProgram(session: Session, version: string): Command {
  const { terminal } = session;
  const program = new Command("legation")
    .description("Runs unchanged Kubernetes pods and workloads in other clusters.")
    .version(version, "-V, --version", "print Legation's version")
    .helpCommand(false)
    .showHelpAfterError("(see --help)")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: (text) => terminal.write(text), writeErr: (text) => terminal.complain(text) })
    .exitOverride()
    .addHelpText("after", EXIT_CODE_HELP)
    .addOption(
      flag("--kubeconfig <file>", "kubeconfig of the host cluster (default: KUBECONFIG, ~/.kube/config, in-cluster)"),
    )
    .addOption(flag("--context <name>", "context of that kubeconfig (default: its current one)"))
    .addOption(flag("-o, --output <format>", "print the result as json or yaml"))
    .addOption(flag("--verbose", "print the stack of an error"));
  addCommands(program, COMMANDS, session);
  return program;
}

/** Runs one command line; resolves to the exit code and never rejects. */
export async function runProgram(args: readonly string[], session: Session, version: string): Promise<number> {
  const { terminal } = session;
  const program = createProgram(session, version);
  try {
    await program.parseAsync(withoutSlash(program, args), { from: "user" });
    return exitCodeOf("ok");
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.code === "commander.unknownOption") await tellMisplaced(args, program, session);
      return exitCodeOf(error.exitCode === 0 ? "ok" : "usage");
    }
    const { exit, message, remedy } = diagnose(error, session.signal);
    terminal.progress(`${terminal.paintProgress("red", "error:")} ${message}`);
    if (remedy !== undefined) terminal.progress(`       ${remedy}`);
    const { isVerbose } = await import("../flags.ts");
    if (isVerbose(program, session.env)) terminal.progress(stackOf(error));
    return exitCodeOf(exit);
  }
}

/** A flag that the command has which is named after it is not unknown, only too early. */
async function tellMisplaced(args: readonly string[], program: Command, session: Session): Promise<void> {
  const { misplacedFlags } = await import("./misplaced-flags.ts");
  const told = await misplacedFlags(withoutSlash(program, args), program.options, COMMANDS, session);
  if (told !== undefined) session.terminal.progress(told);
}

/** `status deployment/web` as `status deployment web`: so kubectl names objects. */
function withoutSlash(program: Command, args: readonly string[]): string[] {
  const operands = operandsOf(program, args);
  const [at, next] = operands;
  if (at === undefined || next === undefined || args[at] !== "status") return [...args];
  const written = args[next] ?? "";
  const kinds = COMMANDS.find(({ name }) => name === "status")?.below ?? [];
  const [, kind = "", name] = /^([^/]+)(?:\/([^/]+))?$/.exec(written) ?? [];
  const known = kinds.some((each) => [each.name, ...(each.aliases ?? [])].includes(kind.toLowerCase()));
  if (!known) {
    // Behind a flag that commander does not know the word may be its value, and help is for all lines.
    const isHelp = args.includes("--help") || args.includes("-h");
    if (isHelp || !knowsFlags(program, args.slice(0, next))) return [...args];
    throw new Failure("usage", {
      object: "legation status",
      problem: `${JSON.stringify(written)} is nothing that it shows; write ${kinds.map((each) => each.name).join(", ")}`,
      remedy: "e.g. `legation status deployment/web`; `legation status` alone shows all members",
    });
  }
  const named = [kind.toLowerCase(), ...(name === undefined ? [] : [name])];
  return [...args.slice(0, next), ...named, ...args.slice(next + 1)];
}

// Flags below `status`; commander knows them only once its command is loaded.
const NAMESPACE_FLAGS = ["-n", "--namespace"];
const WATCH_FLAGS = ["-w", "--watch"];

/** The flags of a line that may show a workload's status: those with a value, and those without. */
function statusFlags({ options }: Command): {
  readonly valued: ReadonlySet<string>;
  readonly plain: ReadonlySet<string>;
} {
  const namesOf = (required: boolean): string[] =>
    options
      .filter((option) => option.required === required)
      .flatMap(({ short, long }) => [short, long])
      .filter((name) => name !== undefined);
  return {
    valued: new Set([...namesOf(true), ...NAMESPACE_FLAGS]),
    plain: new Set([...namesOf(false), ...WATCH_FLAGS]),
  };
}

/** Where in a command line its words are that are neither flags nor their values. */
function operandsOf(program: Command, args: readonly string[]): number[] {
  const { valued } = statusFlags(program);
  const isValue = (index: number): boolean => index > 0 && valued.has(args[index - 1] ?? "");
  return args.flatMap((arg, index) => (arg.startsWith("-") || isValue(index) ? [] : [index]));
}

/** Reports whether all words that look like flags are known: `-w`, `-n shop`, `-nshop`, `--namespace=shop`. */
function knowsFlags(program: Command, words: readonly string[]): boolean {
  const { valued, plain } = statusFlags(program);
  return words.every((word) => !word.startsWith("-") || plain.has(word) || valued.has(flagIn(word)));
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack ?? error.message;
  return error.cause === undefined ? own : `${own}\ncaused by: ${stackOf(error.cause)}`;
}
