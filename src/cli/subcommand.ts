import { type Argument, Command, type Option } from "commander";
import type { z } from "zod";
import type { Session } from "./session.ts";

/** A subcommand: its syntax, and its action on validated input. */
export interface Subcommand<Input = never> {
  /** Description in full sentences. */
  readonly description: string;
  readonly arguments?: readonly Argument[];
  readonly flags: readonly Option[];
  /** Command lines without the leading `legation`, each with what it does. */
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Checks arguments and flags together, by their camelCase names. */
  readonly input: z.ZodType<Input>;
  readonly run: (input: Input, session: Session) => Promise<void>;
}

/** Makes a command that has only a name into all that it is. */
type Equip = (command: Command, session: Session) => void;

/** An entry in a list of commands. The command itself is loaded when it is called. */
export interface CommandEntry {
  readonly name: string;
  /** Other names that it answers to. */
  readonly aliases?: readonly string[];
  /** Summary in one line. */
  readonly summary: string;
  readonly load: () => Promise<Equip>;
  /** Subcommands of its own. */
  readonly below?: readonly CommandEntry[];
}

/** Builds the loader of a `CommandEntry`. */
export function equipped<Input>(spec: Subcommand<Input>): Equip {
  return (command, session) => {
    command.description(spec.description).addHelpText("after", examplesText(spec.examples));
    for (const argument of spec.arguments ?? []) command.addArgument(argument);
    for (const option of spec.flags) command.addOption(option);
    command.action(async () => {
      const args = Object.fromEntries(
        (spec.arguments ?? []).map((argument, index) => [argument.name(), command.processedArgs[index]]),
      );
      const { readInput } = await import("./flags.ts");
      await spec.run(readInput(command, args, session.env, spec.input), session);
    });
  };
}

/** Adds commands to their parent; each is loaded before its own part of the command line, or its help, is read. */
export function addCommands(parent: Command, entries: readonly CommandEntry[], session: Session): void {
  for (const { name, aliases = [], summary, below = [] } of entries) {
    const command = new Command(name).aliases(aliases).summary(summary).copyInheritedSettings(parent);
    parent.addCommand(command);
    addCommands(command, below, session);
  }
  parent.hook("preSubcommand", async (_parent, command) => {
    const equip = await entries.find(({ name }) => name === command.name())?.load();
    equip?.(command, session);
  });
}

function examplesText(examples: Subcommand["examples"]): string {
  return `\nExamples:\n${examples.map(([line, meaning]) => `  # ${meaning}\n  legation ${line}`).join("\n")}\n`;
}
