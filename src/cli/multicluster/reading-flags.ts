import { Argument, type Option } from "commander";
import { z } from "zod";
import { flags } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import type { Gaps } from "../shared/gaps.ts";
import { duration, toggle } from "../shared/input.ts";
import { some } from "../shared/output.ts";
import { HOST, type ReadCluster, type WantedClusters, wantedClusters } from "./clusters.ts";
import { type ClusterAnswer, namedObject, type StartedList } from "./lists.ts";

const DEFAULT_TIMEOUT_MS = 10_000;

interface ReadingInput {
  readonly clusters?: WantedClusters | undefined;
  readonly namespace?: string | undefined;
  readonly selector?: string | undefined;
  readonly strict: boolean;
  readonly timeout: number;
}

export const READING_FLAGS: readonly Option[] = flags({
  "--clusters <list>": `members, '*' for all, and ${HOST}; or a selector of Clusters (default: all members)`,
  "-n, --namespace <name>": "namespace in each cluster (default: the context's)",
  "-l, --selector <selector>": "only objects with such labels",
  "--strict": "end with 1 if anything could not be shown",
  "--timeout <duration>": "how long each member may take to answer (default: 10s)",
});

/** Arguments of a command that reads objects. */
export function objectArguments(example: string): readonly Argument[] {
  return [
    new Argument("<type>", `types as for kubectl: ${example}; or TYPE/NAME`),
    new Argument("[names...]", "names of objects, or more TYPE/NAME (default: all objects)"),
  ];
}

export const readingShape: { readonly [Key in keyof Required<ReadingInput>]: z.ZodType<ReadingInput[Key]> } = {
  clusters: wantedClusters.optional(),
  namespace: z.string().optional(),
  selector: z.string().optional(),
  strict: toggle,
  timeout: duration.default(DEFAULT_TIMEOUT_MS),
};

/** Throws a `Failure` if no cluster has an object that was asked for by name. */
export function requireNamed(answers: readonly ClusterAnswer[]): void {
  const answered = answers.filter(({ failure }) => failure === undefined);
  const found = new Set(answered.flatMap(({ lists }) => lists.flatMap(namesIn)));
  // A cluster without the type says nothing of its names, and has none of them.
  const nowhere = [...new Set(answered.flatMap(({ missing }) => missing))].filter((name) => !found.has(name));
  if (nowhere.length === 0) return;
  throw new Failure("failure", {
    object: some(nowhere),
    problem: "not found in any of these clusters",
    remedy: "check the name and the namespace (-n)",
  });
}

function namesIn({ resource, first }: StartedList): string[] {
  return first.rows.map(({ object }) => namedObject(resource, object.metadata?.name ?? ""));
}

/** Throws a `Failure` if something of every cluster is missing, or with `strict` of any. */
export function requireShown(
  object: string,
  {
    gaps,
    clusters,
    strict,
  }: { readonly gaps: Gaps; readonly clusters: readonly ReadCluster[]; readonly strict: boolean },
): void {
  const lacking = clusters.map(({ name }) => name).filter((name) => gaps.lacking.includes(name));
  if (lacking.length === 0 || (!strict && lacking.length < clusters.length)) return;
  throw new Failure("failure", { object, problem: `not shown in full, as told above: ${some(lacking)}` });
}
