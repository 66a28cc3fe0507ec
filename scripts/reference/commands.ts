import type { Command, Option } from "commander";
import { variableOf } from "../../src/cli/shared/command.ts";
import { code, heading, plain, table } from "./markdown.ts";
import { loadedProgram } from "./program.ts";

/** Returns the page of all commands and flags. */
export async function commandsPage(): Promise<string> {
  const program = await loadedProgram();
  const intro =
    "This page lists every command and flag with its environment variable. A flag wins over its variable.\n[cli.md](../cli.md) says which command to use when, what each does beyond this page, and the exit codes.";
  return [
    heading("Commands and flags", intro, "the definitions in `src/cli`"),
    `\n## Flags of every command\n\n${flags(program)}`,
    ...program.commands.map(section),
  ].join("");
}

function section(command: Command): string {
  const usage = `legation ${command.name()} ${command.usage()}`;
  const args = command.registeredArguments.map((each) => [code(each.name()), plain(each.description)]);
  return [
    `\n## legation ${command.name()}\n\n${plain(command.description())} [More](../cli.md#legation-${command.name()}).\n\n\`\`\`text\n${usage}\n\`\`\`\n`,
    args.length === 0 ? "" : `\n${table(["argument", "meaning"], args)}`,
    command.options.length === 0 ? "" : `\n${flags(command)}`,
  ].join("");
}

function flags(command: Command): string {
  const row = (option: Option): string[] => {
    const variable = variableOf(option);
    const named = option.description.includes(`[${variable}]`);
    const meaning = option.description.replace(`[${variable}]`, "").trim();
    return [code(option.flags), named ? code(variable) : "", plain(meaning)];
  };
  return table(["flag", "variable", "meaning"], command.options.map(row));
}
