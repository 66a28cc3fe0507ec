import { type Argument, Command, Option } from "commander";
import type { z } from "zod";
import type { Environment } from "../../kube/environment-proxy.ts";
import { Failure } from "./failure.ts";
import type { Session } from "./session.ts";

/** Returns the environment variable of a flag: `LEGATION_WEBHOOK_URL` for `--webhook-url`. */
export function variableOf(option: Option): string {
  return `LEGATION_${option.name().replaceAll("-", "_").toUpperCase()}`;
}

/** Builds a flag whose help names its environment variable. `readInput` reads and checks both. */
export function flag(flags: string, description: string): Option {
  const option = new Option(flags);
  option.description = `${description} [${variableOf(option)}]`;
  return option;
}

/** Builds flags like `flag`, from their syntax and description. */
export function flags(descriptions: Readonly<Record<string, string>>): Option[] {
  return Object.entries(descriptions).map(([syntax, description]) => flag(syntax, description));
}

/** A command: its syntax, and its action on validated input. */
export interface Subcommand<Input = never> {
  readonly description: string;
  readonly arguments?: readonly Argument[];
  readonly flags: readonly Option[];
  /** Command lines without the leading `legation`, each with what it does. */
  readonly examples: Readonly<Record<string, string>>;
  /** Checks arguments and flags together, by their camelCase names. */
  readonly input: z.ZodType<Input>;
  /** Words for what it does, which a terminal shows while it takes long: `joining`. Undefined: it runs until it is ended. */
  readonly working?: string;
  readonly run: (input: Input, session: Session) => Promise<void>;
}

/** Adds description, arguments, flags and action to a command that has only a name. */
export type Equip = (command: Command, session: Session) => void;

/** An entry in the list of commands. `load` imports the command's code, and runs only when the command is called. */
export interface CommandEntry {
  readonly name: string;
  readonly group: string;
  readonly summary: string;
  readonly load: () => Promise<Equip>;
}

/** Returns what `CommandEntry.load` loads. The type of the input follows from its schema. */
export function equipped<Input>(spec: Subcommand<Input>): Equip {
  return (command, session) => {
    command.description(spec.description).addHelpText("after", examplesText(spec.examples));
    for (const argument of spec.arguments ?? []) command.addArgument(argument);
    for (const option of spec.flags) command.addOption(option);
    command.action(async () => {
      const args = Object.fromEntries(
        (spec.arguments ?? []).map((argument, index) => [argument.name(), command.processedArgs[index]]),
      );
      const input = readInput(command, args, session.env, spec.input);
      if (isWide(input)) session.terminal.widen();
      const run = (): Promise<void> => spec.run(input, session);
      await (spec.working === undefined ? run() : session.terminal.working(spec.working, run));
    });
  };
}

/** Adds the commands to the program. Each is loaded before commander reads its part of the command line or prints its help. */
export function addCommands(program: Command, entries: readonly CommandEntry[], session: Session): void {
  for (const { name, group, summary } of entries) {
    program.addCommand(new Command(name).helpGroup(group).summary(summary).copyInheritedSettings(program));
  }
  program.hook("preSubcommand", async (_program, command) => {
    const equip = await entries.find(({ name }) => name === command.name())?.load();
    equip?.(command, session);
    command.showHelpAfterError(`(see \`${commandPath(command)} --help\`)`);
  });
}

function isWide(input: unknown): boolean {
  return typeof input === "object" && input !== null && "output" in input && input.output === "wide";
}

function examplesText(examples: Subcommand["examples"]): string {
  const lines = Object.entries(examples).map(([line, meaning]) => `  # ${meaning}\n  legation ${line}`);
  return `\nExamples:\n${lines.join("\n")}\n`;
}

/** Returns the validated input. Flags win over variables; commander's `.env()` would take LEGATION_FORCE=false for true. */
export function readInput<Output>(
  command: Command,
  args: Readonly<Record<string, unknown>>,
  env: Environment,
  schema: z.ZodType<Output>,
): Output {
  const options = ancestry(command).flatMap((each) => each.options.map((option) => ({ option, owner: each })));
  const values: Record<string, unknown> = {};
  for (const { option, owner } of options) {
    const name = option.attributeName();
    const source = owner.getOptionValueSource(name);
    const variable = env[variableOf(option)];
    if (source !== undefined && source !== "default") values[name] = owner.getOptionValue(name);
    else if (variable !== undefined && variable !== "") values[name] = variable;
  }
  const result = schema.safeParse({ ...values, ...args });
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    const option = options.find(({ option: each }) => each.attributeName() === path[0])?.option;
    if (option === undefined) return path.length === 0 ? message : `<${String(path[0])}>: ${message}`;
    const fromVariable = values[option.attributeName()] === env[variableOf(option)] && env[variableOf(option)];
    return `${fromVariable ? variableOf(option) : (option.long ?? option.flags)}: ${message}`;
  });
  throw new Failure("usage", {
    object: commandPath(command),
    problem: problems.join("; "),
    remedy: `see \`${commandPath(command)} --help\``,
  });
}

/** Returns the command as a user types it: `legation status`. */
function commandPath(command: Command): string {
  return ancestry(command)
    .map((each) => each.name())
    .reverse()
    .join(" ");
}

function ancestry(command: Command): Command[] {
  const chain: Command[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) chain.push(each);
  return chain;
}
