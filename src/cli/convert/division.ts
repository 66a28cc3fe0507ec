import { valueAt } from "../../api/json.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { ChosenClusters } from "./clusters.ts";
import { COUNTS, specPath, treatmentOf } from "./kinds.ts";
import type { Numbers } from "./overrides.ts";
import type { Gap } from "./report.ts";

/** The numbers of pods of all clusters together, where they are not the object's own, and the clusters' shares of them. */
export interface Division {
  readonly totals: Numbers;
  /** The content of `legation.dev/scheduling-preferences`. Absent: by the room of clusters. */
  readonly preferences?: { readonly rebalance?: boolean; readonly clusters: Readonly<Record<string, object>> };
}

/** Equal shares of all clusters. */
export const EVENLY: Readonly<Record<string, object>> = { "*": { weight: 1 } };

/** The pods that clusters had of an object. */
interface ClustersPods {
  readonly object: WrittenObject;
  /** Undefined: each cluster had the object's own number. */
  readonly division: Division | undefined;
  readonly choices: readonly ChosenClusters[];
  /** Other numbers of single clusters. */
  readonly numbers: ReadonlyMap<string, Numbers>;
}

/** Returns the division that gives clusters the pods they had, as far as there is one. */
export function divisionOf(pods: ClustersPods, gap: Gap): Division {
  const { object, numbers } = pods;
  const division = pods.division ?? sumOf(pods, gap);
  const { totals, preferences } = division;
  if (numbers.size > 0 && Object.keys(totals).length === 0) {
    gap("overrides", `other numbers in ${[...numbers.keys()].join(", ")}`, "write scheduling-preferences by name");
  }
  if (preferences === undefined || treatmentOf(object).treatment !== "job") return division;
  const spec = specPath(object);
  const isIndexed = valueAt(object, [...spec, "completionMode"]) === "Indexed";
  if (isIndexed || (totals.completions ?? valueAt(object, [...spec, "completions"])) === undefined) {
    gap(
      [...spec, isIndexed ? "completionMode" : "completions"].join("."),
      `${isIndexed ? "an Indexed Job" : "a Job without completions"} is not divided, and goes to one member`,
      "write a Job per member",
    );
    return { totals: pods.division?.totals ?? {} };
  }
  const { rebalance, clusters } = preferences;
  if (rebalance === true) gap("spec.rebalance", "completions never move to another member", "nothing: it is left out");
  return { totals, preferences: { clusters } };
}

/** Every cluster had its own number: the object gets the sum, divided in that proportion. */
function sumOf({ object, choices, numbers }: ClustersPods, gap: Gap): Division {
  const { kind, metadata } = object;
  const fields = COUNTS[treatmentOf(object).treatment];
  const own: Numbers = Object.fromEntries(
    fields
      .map((field) => [field, valueAt(object, [...specPath(object), field])] as const)
      .filter((entry): entry is [string, number] => typeof entry[1] === "number"),
  );
  const [main = ""] = fields;
  const [choice, ...others] = choices;
  const names = choice?.labels.length === 0 && others.length === 0 ? choice.names : undefined;
  if (names === undefined) {
    const field = [...specPath(object), main].join(".");
    gap(
      field,
      `every selected cluster had ${own[main] ?? 1} of them; now they are as many in all`,
      `write the sum of all clusters in ${field}`,
    );
    const isDivided = main === "replicas" && kind !== "Pod";
    return { totals: {}, ...(isDivided ? { preferences: { clusters: EVENLY } } : {}) };
  }
  const [only] = names;
  if (names.length === 1 && only !== undefined) return { totals: { ...own, ...numbers.get(only) } };
  if (kind === "Pod") {
    const problem = `a pod ran in each of ${names.join(", ")}; now one runs in one of them`;
    gap("placement", problem, "write a Deployment, or a pod per member");
    return { totals: {} };
  }
  if (kind === "StatefulSet") {
    const problem = `each of ${names.join(", ")} had pods ${metadata.name}-0, -1 …; now the numbers of all pods differ`;
    gap("template", problem, "check what relies on them");
  }
  const each: Numbers[] = names.map((name) => ({ [main]: 1, ...own, ...numbers.get(name) }));
  const totals = Object.fromEntries(
    fields
      .filter((field) => each.some((own) => own[field] !== undefined))
      .map((field) => [field, each.reduce((sum, own) => sum + (own[field] ?? 0), 0)]),
  );
  const weighed = fields.at(-1) ?? main;
  const clusters = Object.fromEntries(names.map((name, index) => [name, { weight: each[index]?.[weighed] ?? 1 }]));
  return { totals, preferences: { clusters } };
}
