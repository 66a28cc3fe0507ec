import { z } from "zod";
import { closestKey } from "./closest-key.ts";
import { clusterNameProblem } from "./cluster.ts";
import { cachedReader, lengthProblem, readYaml } from "./structured-text.ts";

/** A cluster's share of a workload's replicas. */
export interface ClusterPreferences {
  /** Weight for the replicas beyond all minimums; 0 gets none of them. */
  readonly weight: number;
  /** Replicas given before any are shared by weight. */
  readonly minReplicas: number;
  /** Upper limit. Undefined means none. */
  readonly maxReplicas?: number;
}

/** The division of one workload's replicas over clusters. */
export interface SchedulingPreferences {
  /** Allows evicting running replicas to keep the division. */
  readonly rebalance: boolean;
  /** Shares by cluster; `*` covers clusters without an entry. Others get nothing. */
  readonly clusters: Readonly<Record<string, ClusterPreferences>>;
}

const ANY_CLUSTER = "*";

const EXAMPLE = '{"clusters": {"west": {"weight": 2}, "*": {"weight": 1, "maxReplicas": 10}}}';

// KubeFed's 32 bits; sums and products of these stay exact.
const MOST = 2 ** 31 - 1;
const count = z.number().int().min(0).max(MOST);
const clusterPreferences = z
  .strictObject({ weight: count.default(0), minReplicas: count.default(0), maxReplicas: count.optional() })
  .refine(({ minReplicas, maxReplicas }) => maxReplicas === undefined || minReplicas <= maxReplicas, {
    message: "minReplicas is greater than maxReplicas",
  });
const preferences = z.strictObject({
  rebalance: z.boolean().default(false),
  clusters: z.record(z.string(), clusterPreferences).optional(),
});

/** Fields of KubeFed's resource that do not belong in the annotation. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  totalReplicas: "the workload's own replicas say that; remove it",
  targetKind: "the annotation stands on the workload itself; remove it",
  intersectWithClusterSelector: "legation.dev/cluster-selector always counts too; remove it",
};

type Parsed = SchedulingPreferences | { readonly problem: string };

/** Parses preferences, or returns all problems and what to write instead. Equal texts give the same object. */
export const parsePreferences: (text: string) => Parsed = cachedReader(read);

/** Returns the share of a cluster. Undefined when the preferences leave it out. */
export function preferencesFor({ clusters }: SchedulingPreferences, cluster: string): ClusterPreferences | undefined {
  return Object.hasOwn(clusters, cluster) ? clusters[cluster] : clusters[ANY_CLUSTER];
}

function read(text: string): Parsed {
  const tooLong = lengthProblem(text);
  if (tooLong !== undefined) return { problem: tooLong };
  const written = readYaml(text);
  if ("problem" in written) return { problem: `${written.problem}; write e.g. ${EXAMPLE}` };
  const { value } = written;
  const parsed = preferences.safeParse(value);
  const problems = parsed.success ? [] : parsed.error.issues.flatMap(problemsOf);
  if (typeof value === "object" && value !== null && "clusters" in value)
    problems.push(...nameProblems(value.clusters));
  if (!parsed.success || problems.length > 0) return { problem: `${problems.join(", ")}; write e.g. ${EXAMPLE}` };
  const { rebalance, clusters = {} } = parsed.data;
  // As in KubeFed, no entries mean equal weights.
  const named = Object.keys(clusters).length > 0 ? clusters : { [ANY_CLUSTER]: { weight: 1, minReplicas: 0 } };
  return { rebalance, clusters: Object.fromEntries(Object.entries(named).map(([name, own]) => [name, present(own)])) };
}

function present({ maxReplicas, ...rest }: z.infer<typeof clusterPreferences>): ClusterPreferences {
  return maxReplicas === undefined ? rest : { ...rest, maxReplicas };
}

const ROOT_FIELDS = ["rebalance", "clusters"];
const CLUSTER_FIELDS = ["weight", "minReplicas", "maxReplicas"];

function problemsOf(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join(".");
  const at = path === "" ? "" : `${path}: `;
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => `${path === "" ? key : `${path}.${key}`}: ${unknownField(key, path === "")}`);
    case "invalid_type":
      if (issue.path.length === 0) return [`must be a map with the fields ${ROOT_FIELDS.join(" and ")}`];
      return [`${at}${issue.expected === "int" ? "must be a whole number" : `must be a ${kindOf(issue.expected)}`}`];
    case "too_small":
      return [`${at}must not be negative`];
    case "too_big":
      return [`${at}must be at most ${MOST}`];
    default:
      return [`${at}${issue.message}`];
  }
}

function kindOf(expected: string): string {
  return { record: "map", object: "map", number: "whole number" }[expected] ?? expected;
}

function unknownField(key: string, atRoot: boolean): string {
  const elsewhere = atRoot ? ELSEWHERE[key] : undefined;
  if (elsewhere !== undefined) return elsewhere;
  const fields = atRoot ? ROOT_FIELDS : CLUSTER_FIELDS;
  const closest = closestKey(key, fields);
  return `is no field here; ${closest === undefined ? `there are ${fields.join(", ")}` : `did you mean ${closest}?`}`;
}

function nameProblems(clusters: unknown): string[] {
  if (typeof clusters !== "object" || clusters === null) return [];
  return Object.keys(clusters).flatMap((name) => {
    const problem = name === ANY_CLUSTER ? undefined : clusterNameProblem(name);
    return problem === undefined ? [] : [`clusters: ${JSON.stringify(name.slice(0, 100))} ${problem}`];
  });
}
