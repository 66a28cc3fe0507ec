import { type Argument, Command, type Option } from "commander";
import type { z } from "zod";
import { readInput } from "./flags.ts";
import type { Session } from "./session.ts";

/** One subcommand: how it is written, and what it does with checked input. */
export interface Subcommand<Input = never> {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What it does, in full sentences. */
  readonly description: string;
  readonly arguments?: readonly Argument[];
  readonly flags: readonly Option[];
  /** Command lines without the leading `legation`, each with what it does. */
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Checks arguments and flags together, by their camelCase names. */
  readonly input: z.ZodType<Input>;
  readonly run: (input: Input, session: Session) => Promise<void>;
}

/** Adds a subcommand to its parent and returns it, so that others can be added below it. */
export function addSubcommand<Input>(parent: Command, spec: Subcommand<Input>, session: Session): Command {
  const command = new Command(spec.name)
    .summary(spec.summary)
    .description(spec.description.replaceAll("\n", " "))
    .addHelpText("after", examplesText(spec.examples))
    .copyInheritedSettings(parent);
  for (const argument of spec.arguments ?? []) command.addArgument(argument);
  for (const option of spec.flags) command.addOption(option);
  command.action(async () => {
    const args = Object.fromEntries(
      (spec.arguments ?? []).map((argument, index) => [argument.name(), command.processedArgs[index]]),
    );
    await spec.run(readInput(command, args, session.env, spec.input), session);
  });
  parent.addCommand(command);
  return command;
}

function examplesText(examples: Subcommand["examples"]): string {
  return `\nExamples:\n${examples.map(([line, meaning]) => `  # ${meaning}\n  legation ${line}`).join("\n")}\n`;
}
