import type { Command, Option } from "commander";
import type { KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { namespaces, type Resource, services } from "../../kube/resources.ts";
import type { CommandEntry } from "../shared/command.ts";
import type { OutputFormat } from "../shared/output.ts";
import type { Session } from "../shared/session.ts";
import { SUBJECT_NAMES, subjectOf } from "../simulation/subjects.ts";
import { WORKLOAD_RESOURCES } from "../simulation/workloads.ts";

interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

interface WrittenLine {
  readonly plain: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  /** The flag whose value comes next. */
  readonly open: Option | undefined;
}

/** Reads the names that may come next on a line. Rejects with KubeError. */
type ReadNames = (line: WrittenLine, session: Session) => Promise<readonly string[]>;

// The user goes on writing meanwhile.
const TIMEOUT_MS = 3_000;
const MOST = 500;

/** Returns the reader of the objects' names, with the kubeconfig, context and namespace of the line. */
function namesOf(resource: Resource<KubeObject>): ReadNames {
  return async ({ flags }, session) => {
    const choice = { kubeconfig: flags.get("--kubeconfig"), context: flags.get("--context") };
    const { client, namespace } = await session.connect(choice, "host");
    const where = resource.namespaced ? { namespace: flags.get("--namespace") ?? namespace } : {};
    const options = { limit: MOST, timeoutMs: TIMEOUT_MS, dropManagedFields: true, signal: session.signal, ...where };
    return (await client.list(resource, options)).items.map(({ metadata }) => metadata.name);
  };
}

const members = namesOf(clusters);
const FORMATS: readonly OutputFormat[] = ["wide", "json", "yaml"];

const FLAG_VALUES: Readonly<Record<string, ReadNames>> = {
  "--namespace": namesOf(namespaces),
  "--members": members,
  "--clusters": members,
  "--output": async ({ plain }) => [...FORMATS, ...(plain[0] === "get" ? ["name"] : [])],
};

/** Readers for the arguments of commands, in order. */
const ARGUMENT_VALUES: Readonly<Record<string, readonly ReadNames[]>> = {
  unjoin: [members],
  join: [members],
  kubeconfig: [members],
  status: [
    async () => SUBJECT_NAMES,
    async (line, session) => {
      const subject = subjectOf(line.plain[1] ?? "");
      if (subject === undefined) return [];
      return await namesOf(subject === "Service" ? services : WORKLOAD_RESOURCES[subject])(line, session);
    },
  ],
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
  const [name] = readLine(before, program.options).plain;
  const command = program.commands.find((each) => each.name() === name);
  const equip = await entries.find((each) => each.name === name)?.load();
  if (command !== undefined) equip?.(command, session);
  const options = [...(command?.options ?? []), ...program.options];
  const line = readLine(before, options);
  if (line.open === undefined && isFlag) {
    return options.map(({ long, short, description }) => ({ word: long ?? short ?? "", description }));
  }
  if (line.open === undefined && name === undefined) {
    return entries.map(({ name: word, summary }) => ({ word, description: summary }));
  }
  const read = line.open ? FLAG_VALUES[line.open.long ?? ""] : ARGUMENT_VALUES[name ?? ""]?.[line.plain.length - 1];
  // The user goes on writing without candidates where the host does not answer.
  const names = await read?.(line, session).catch(() => []);
  return (names ?? []).map((word) => ({ word, description: "" }));
}

/** Reads the words of a command line. An unknown flag counts as one without a value. */
export function readLine(words: readonly string[], options: readonly Option[]): WrittenLine {
  const plain: string[] = [];
  const flags = new Map<string, string>();
  let open: Option | undefined;
  for (const word of words) {
    const [written = "", value] = word.startsWith("--") ? word.split(/=(.*)/s, 2) : [word];
    const option = options.find(({ short, long }) => written === short || written === long);
    if (open !== undefined) {
      flags.set(open.long ?? "", word);
      open = undefined;
    } else if (!word.startsWith("-") || word === "-") plain.push(word);
    else if (value !== undefined) flags.set(written, value);
    else if (option?.required === true) open = option;
  }
  return { plain, flags, open };
}
