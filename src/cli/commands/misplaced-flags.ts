import { Command, type Option } from "commander";
import { flagIn } from "../flag.ts";
import type { Session } from "../session.ts";
import type { CommandEntry } from "../subcommand.ts";

/** A flag as it was written: its name, and its words, which it shares with a value. */
interface Written {
  readonly name: string;
  readonly words: readonly string[];
}

/**
 * What is wrong with a command line whose flags stand before the command that has them, and the right line. Undefined when that
 * is not what is wrong: no command is named, or the one that is has not all of these flags.
 */
export async function misplacedFlags(
  args: readonly string[],
  globals: readonly Option[],
  entries: readonly CommandEntry[],
  session: Session,
): Promise<string | undefined> {
  for (const path of pathsOf(args, entries)) {
    const own = await optionsOf(path, session);
    const moved = placed(args, path, globals, own);
    if (moved === undefined || moved.flags.length === 0) continue;
    const names = moved.flags.map(({ name }) => name);
    const line = ["legation", ...moved.line].map(quoted).join(" ");
    return `${names.join(", ")} ${names.length === 1 ? "belongs" : "belong"} after the command: ${line}`;
  }
  return undefined;
}

/** A command that is named, at `index` in the arguments. */
interface Step {
  readonly entry: CommandEntry;
  readonly index: number;
}

/** The commands that a line may name, longest first: a word may be a flag's value, too. */
function pathsOf(args: readonly string[], entries: readonly CommandEntry[], from = 0): Step[][] {
  const end = args.indexOf("--");
  const words = end === -1 ? args : args.slice(0, end);
  return words
    .flatMap((word, index): Step[][] => {
      const entry = entries.find(({ name, aliases = [] }) => name === word || aliases.includes(word));
      if (index < from || entry === undefined) return [];
      const step = { entry, index };
      return [...pathsOf(args, entry.below ?? [], index + 1).map((below) => [step, ...below]), [step]];
    })
    .sort((a, b) => b.length - a.length);
}

async function optionsOf(path: readonly Step[], session: Session): Promise<readonly Option[]> {
  const commands = path.map(async ({ entry }) => {
    const command = new Command(entry.name);
    (await entry.load())(command, session);
    return command.options;
  });
  return (await Promise.all(commands)).flat();
}

/** The line with the commands' own flags after them; undefined when these are not the commands, or have not all flags. */
function placed(
  args: readonly string[],
  path: readonly Step[],
  globals: readonly Option[],
  own: readonly Option[],
): { readonly flags: readonly Written[]; readonly line: readonly string[] } | undefined {
  const last = path.at(-1)?.index ?? -1;
  const kept: string[] = [];
  const flags: Written[] = [];
  let index = 0;
  while (index < last) {
    const word = args[index] ?? "";
    index += 1;
    if (path.some((step) => step.index === index - 1)) continue;
    const global = optionIn(globals, word);
    const option = global ?? optionIn(own, word);
    if (option === undefined) return undefined;
    const words = [word];
    if (option.required && word === flagIn(word)) words.push(args[index++] ?? "");
    if (global === undefined) flags.push({ name: flagIn(word), words });
    else kept.push(...words);
  }
  // Otherwise a command's name was a flag's value.
  if (index !== last) return undefined;
  const rest = args.slice(last + 1);
  const end = rest.includes("--") ? rest.indexOf("--") : rest.length;
  const names = path.map((step) => args[step.index] ?? "");
  const moved = flags.flatMap(({ words }) => words);
  return { flags, line: [...kept, ...names, ...rest.slice(0, end), ...moved, ...rest.slice(end)] };
}

function optionIn(options: readonly Option[], word: string): Option | undefined {
  return word.startsWith("-") ? options.find(({ long, short }) => [long, short].includes(flagIn(word))) : undefined;
}

/** As a shell takes it for one word. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
