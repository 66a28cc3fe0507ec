import type { Argument, Command, Option } from "commander";
import type { CommandEntry } from "../shared/command.ts";
import type { Session } from "../shared/session.ts";
import { readNames, type ValueKind } from "./names.ts";
import { readLine, type WrittenLine } from "./written-line.ts";

export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

const FLAG_VALUES: Readonly<Record<string, ValueKind>> = {
  "--namespace": "namespace",
  "--members": "member",
  "--clusters": "member",
  "--output": "format",
};

const ARGUMENT_VALUES: Readonly<Record<string, Readonly<Record<string, ValueKind>>>> = {
  unjoin: { name: "member" },
  join: { name: "member" },
  kubeconfig: { name: "member" },
  status: { type: "kind", name: "ofKind" },
};

/** Returns what may stand for the last of the words, which the user has begun to write. Never rejects: it has nothing to say then. */
export async function candidates(
  words: readonly string[],
  program: Command,
  entries: readonly CommandEntry[],
  session: Session,
): Promise<readonly CompletionWord[]> {
  const begun = words.at(-1) ?? "";
  const found = await allCandidates(words.slice(0, -1), begun.startsWith("-"), program, entries, session);
  return found.filter(({ word }) => word.startsWith(begun));
}

async function allCandidates(
  before: readonly string[],
  isFlag: boolean,
  program: Command,
  entries: readonly CommandEntry[],
  session: Session,
): Promise<readonly CompletionWord[]> {
  // The command comes before its own flags, so it is known without them.
  const line = readLine(before, program.options);
  if (line.open !== undefined) return await values(FLAG_VALUES[line.open.long ?? ""], line, session);
  const [name] = line.plain;
  if (name === undefined && !isFlag) return entries.map(({ name: word, summary }) => ({ word, description: summary }));
  const entry = entries.find((each) => each.name === name);
  const command = program.commands.find((each) => each.name() === name);
  if (entry === undefined || command === undefined) return isFlag ? program.options.map(flagCandidate) : [];
  (await entry.load())(command, session);
  const whole = readLine(before, [...program.options, ...command.options]);
  if (whole.open !== undefined) return await values(FLAG_VALUES[whole.open.long ?? ""], whole, session);
  if (isFlag) return [...command.options, ...program.options].map(flagCandidate);
  const argument: Argument | undefined = command.registeredArguments[whole.plain.length - 1];
  return await values(ARGUMENT_VALUES[entry.name]?.[argument?.name() ?? ""], whole, session);
}

function flagCandidate({ long, short, description }: Option): CompletionWord {
  return { word: long ?? short ?? "", description };
}

async function values(
  kind: ValueKind | undefined,
  line: WrittenLine,
  session: Session,
): Promise<readonly CompletionWord[]> {
  if (kind === undefined) return [];
  try {
    return (await readNames(kind, line, session)).map((word) => ({ word, description: "" }));
  } catch {
    // The user goes on writing without candidates.
    return [];
  }
}
