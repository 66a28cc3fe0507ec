import type { Command, Option } from "commander";
import { linesOf } from "./shell-lines.ts";

// Where a command of Legation begins: at the start, or behind what leads to another command.
const CALL =
  /(?:^|[|;&({]\s*|\$\(|\b(?:watch|npx|time|exec|sudo|then|do)\s+|\b[A-Z_]+=\S*\s+)(?:\S*bin\/)?(?:kubectl )?legation((?:\s+[^|;&)]*)?)/g;
const WORD = /"[^"]*"|'[^']*'|\S+/g;

/** Returns which commands and flags in a document Legation does not have. */
export function commandProblems(document: string, text: string, program: Command): string[] {
  return linesOf(text).flatMap((line) =>
    [...line.matchAll(CALL)].flatMap(([, rest = ""]) =>
      problemsOf(rest.match(WORD) ?? [], program).map((problem) => `${document}: \`${line}\`: ${problem}`),
    ),
  );
}

function problemsOf(words: readonly string[], program: Command): string[] {
  const end = words.indexOf("--");
  const own = end === -1 ? words : words.slice(0, end);
  const first = own.find((word, index) => !word.startsWith("-") && !takesNext(own[index - 1], program));
  // `legation --help`, or a placeholder as in `legation COMMAND --help`.
  if (first === undefined || !/^[a-z][a-z-]*$/.test(first)) return flagProblems(own, [program]);
  const command = program.commands.find((each) => each.name() === first);
  if (command === undefined) return [`legation has no command ${first}`];
  return flagProblems(own, [program, command]);
}

/** Reports whether a word is a flag whose value is the next word. */
function takesNext(word: string | undefined, program: Command): boolean {
  return (
    word !== undefined &&
    program.options.some(({ long, short, required }) => required && (word === long || word === short))
  );
}

function flagProblems(words: readonly string[], commands: readonly Command[]): string[] {
  const options = commands.flatMap((command) => [...command.options]);
  return words.flatMap((word) => {
    const [flag = ""] = /^--[a-z][a-z-]*|^-[a-zA-Z]/.exec(word) ?? [];
    return flag === "" || isKnown(flag, options) ? [] : `${commands.at(-1)?.name()} has no flag ${flag}`;
  });
}

function isKnown(flag: string, options: readonly Option[]): boolean {
  return flag === "--help" || flag === "-h" || options.some(({ long, short }) => long === flag || short === flag);
}
