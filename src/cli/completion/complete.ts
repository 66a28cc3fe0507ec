import type { Argument, Command, Option } from "commander";
import type { KubeObject } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
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

interface WrittenLine {
  readonly plain: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  /** The flag whose value comes next. */
  readonly open: Option | undefined;
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

/** A kind of names. `ofKind`: objects of the kind that the argument before names. */
type ValueKind = "member" | "namespace" | "kind" | "ofKind" | "format";

const FORMATS: readonly OutputFormat[] = ["wide", "json", "yaml"];

// The user goes on writing meanwhile.
const TIMEOUT_MS = 3_000;
const MOST = 500;

/** Reads the names of a kind, with the kubeconfig and context of the line. Rejects with KubeError. */
async function readNames(kind: ValueKind, { flags, plain }: WrittenLine, session: Session): Promise<string[]> {
  const choice = { kubeconfig: flags.get("--kubeconfig"), context: flags.get("--context") };
  if (kind === "kind") return [...SUBJECT_NAMES];
  if (kind === "format") return [...FORMATS, ...(plain[0] === "get" ? ["name"] : [])];
  const { client, namespace } = await session.connect(choice, "host");
  if (kind === "member") return await list(client, clusters, session.signal);
  if (kind === "namespace") return await list(client, namespaces, session.signal);
  const subject = subjectOf(plain[1] ?? "");
  if (subject === undefined) return [];
  return await list(
    client,
    subject === "Service" ? services : WORKLOAD_RESOURCES[subject],
    session.signal,
    flags.get("--namespace") ?? namespace,
  );
}

async function list(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
  namespace?: string,
): Promise<string[]> {
  const { items } = await client.list(resource, {
    limit: MOST,
    timeoutMs: TIMEOUT_MS,
    dropManagedFields: true,
    signal,
    ...(namespace === undefined ? {} : { namespace }),
  });
  return items.map(({ metadata }) => metadata.name);
}
