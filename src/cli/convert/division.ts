import { valueAt } from "../../api/json.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { Treatment } from "./kinds.ts";
import type { Counts, Numbers, Wish } from "./model.ts";
import type { Gap } from "./report.ts";

/** The object's fields with numbers of pods. */
export interface Dividing {
  readonly path: readonly string[];
  readonly fields: readonly string[];
  /** Numbers of single clusters. */
  readonly numbers: ReadonlyMap<string, Numbers>;
  readonly treatment: Treatment;
}

interface Division {
  readonly totals: Numbers;
  readonly preferences?: object;
}

export function divideWish(wish: Wish, dividing: Dividing, gap: Gap): Division {
  const { counts, choices } = wish;
  const { path, fields, numbers } = dividing;
  if (counts.how === "divided") {
    const { totals, preferences } = counts;
    // KubeFed's preferences replace the numbers of overrides.
    if (numbers.size > 0 && totals === undefined) {
      gap(
        "overrides",
        `numbers of pods beside a division of ${fields[0]}`,
        "write minReplicas and maxReplicas in scheduling-preferences",
      );
    }
    const all = totals ?? {};
    return preferences === undefined ? { totals: all } : dividedBy(preferences, all, wish, dividing, gap);
  }
  const [choice = {}] = choices;
  const names =
    choices.length === 1 && choice.labels === undefined
      ? choice.names?.filter((name) => choice.excluded?.includes(name) !== true)
      : undefined;
  const own = ownNumbers(wish.object, path, fields);
  if (names === undefined) {
    const [main = "pods"] = fields;
    gap(
      [...path, main].join("."),
      `every selected cluster had ${own[main] ?? 1} of them; now they are as many in all`,
      `write the sum of all clusters in ${[...path, main].join(".")}`,
    );
    for (const name of numbers.keys())
      gap("overrides", `another number in ${name}`, "write scheduling-preferences by name");
    return dividing.treatment === "pods" && wish.object.kind !== "Pod"
      ? { totals: {}, preferences: { clusters: { "*": { weight: 1 } } } }
      : { totals: {} };
  }
  return sumOf(names, own, wish, dividing, gap);
}

/** Every named cluster had its own number: the object gets the sum, divided in that proportion. */
function sumOf(names: readonly string[], own: Numbers, wish: Wish, dividing: Dividing, gap: Gap): Division {
  const { object } = wish;
  const each = names.map((name) => ({ name, numbers: { ...own, ...dividing.numbers.get(name) } }));
  if (object.kind === "Pod") {
    if (names.length > 1)
      gap(
        "placement",
        `a pod ran in each of ${names.join(", ")}; now one runs in one of them`,
        "write a Deployment, or a pod per member",
      );
    return { totals: {} };
  }
  const totals = Object.fromEntries(
    dividing.fields.flatMap((field) => {
      const given = each.map(({ numbers }) => numbers[field]).filter((value) => value !== undefined);
      return given.length === 0 ? [] : [[field, given.reduce((sum, value) => sum + value, 0)]];
    }),
  );
  if (names.length === 1) return dividing.numbers.size === 0 ? { totals: {} } : { totals };
  const main = dividing.fields.findLast((field) => totals[field] !== undefined) ?? "";
  const clusters = Object.fromEntries(each.map(({ name, numbers }) => [name, { weight: numbers[main] ?? 1 }]));
  if (object.kind === "StatefulSet") {
    gap(
      "template",
      `each of ${names.join(", ")} had pods ${object.metadata.name}-0, -1 …; now the numbers of all pods differ`,
      "check what relies on them",
    );
  }
  return dividedBy({ clusters }, totals, wish, dividing, gap);
}

function dividedBy(
  preferences: NonNullable<Extract<Counts, { how: "divided" }>["preferences"]>,
  totals: Numbers,
  { object, counts }: Wish,
  { path, treatment }: Dividing,
  gap: Gap,
): Division {
  if (treatment === "pods") return { totals, preferences };
  const { rebalance, ...others } = preferences;
  const job = path.join(".");
  const undivided = { totals: counts.how === "divided" ? totals : {} };
  if (valueAt(object, [...path, "completionMode"]) === "Indexed") {
    gap(`${job}.completionMode`, "an Indexed Job is not divided, and goes to one member", "write a Job per member");
    return undivided;
  }
  if ((totals.completions ?? valueAt(object, [...path, "completions"])) === undefined) {
    gap(
      `${job}.completions`,
      "a Job without them is not divided, and goes to one member",
      "write completions, or a Job per member",
    );
    return undivided;
  }
  if (rebalance === true) gap("spec.rebalance", "completions never move to another member", "nothing: it is left out");
  return { totals, preferences: others };
}

function ownNumbers(object: WrittenObject, path: readonly string[], fields: readonly string[]): Numbers {
  const numbers = fields.map((field) => [field, valueAt(object, [...path, field])] as const);
  const defaults = fields.filter((field) => field !== "completions").map((field) => [field, 1] as const);
  return Object.fromEntries([
    ...defaults,
    ...numbers.filter((entry): entry is [string, number] => typeof entry[1] === "number"),
  ]);
}
