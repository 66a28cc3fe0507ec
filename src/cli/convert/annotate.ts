import { parsePlacement } from "../../api/annotations.ts";
import { isJsonObject, setAt, valueAt } from "../../api/json.ts";
import {
  DELEGATE_ANNOTATION,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_KEY,
  WHOLE_VALUE,
} from "../../api/keys.ts";
import { parseOverrides } from "../../api/overrides.ts";
import { privilegeProblems } from "../../pods/overrides.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { COUNTS, countsPath, type Treatment, templatePath, treatmentOf } from "./kinds.ts";
import { type ObjectOverride, translate, translateWhole, type WrittenOverride } from "./patches.ts";
import { type ChosenClusters, placementAnnotations } from "./placement.ts";
import { type ConversionReport, type Gap, noDifference } from "./report.ts";

/** A cluster's share, as in `legation.dev/scheduling-preferences`. */
interface Share {
  readonly weight?: number | undefined;
  readonly minReplicas?: number | undefined;
  readonly maxReplicas?: number | undefined;
}

/** How many pods each cluster has: the whole number each, or a part of it. */
export type Counts =
  | { readonly how: "each" }
  | {
      readonly how: "divided";
      /** Numbers for all clusters together that replace the object's own. */
      readonly totals?: Readonly<Record<string, number>>;
      /** Absent: by the room of clusters. */
      readonly preferences?: { readonly rebalance?: boolean; readonly clusters: Readonly<Record<string, Share>> };
    };

/** An ordinary object, and where and how another project has it run. */
interface Wish {
  readonly object: WrittenObject;
  /** The name of the foreign object in findings. */
  readonly source: string;
  /** Choices of clusters, an earlier one preferred. Empty: any cluster. */
  readonly choices: readonly ChosenClusters[];
  readonly counts: Counts;
  readonly overrides: readonly ObjectOverride[];
  /** The fields of the foreign object by which copies stay when the object is deleted, and take over a member's own. */
  readonly orphan?: string | undefined;
  readonly adopt?: string | undefined;
}

type Numbers = Readonly<Record<string, number>>;

/** Returns the object with Legation's annotations. Undefined if it cannot go to members. */
export function annotate(wish: Wish, report: ConversionReport): WrittenObject | undefined {
  const { object, source } = wish;
  const { treatment, why = "" } = treatmentOf(object);
  switch (treatment) {
    case "nowhere":
      report.about(source)("kind", why, "it is left out of the output");
      return undefined;
    case "follows":
    case "host":
      refuseOverrides(wish, report);
      report.step(`${source}: stays on the host without annotations: ${why}`);
      return object;
    case "whole":
      report.step(allowanceOf(object));
      return withAnnotations(object, wholeAnnotations(wish, report), wish, report);
    case "pods":
    case "job":
    case "cronJob":
      return annotateWorkload(wish, treatment, report);
  }
}

function wholeAnnotations(wish: Wish, report: ConversionReport): Record<string, string> {
  const { choices, orphan, adopt } = wish;
  const overrides = wholeOverrides(wish, report);
  return {
    [WHOLE_KEY]: WHOLE_VALUE,
    ...placementAnnotations(choices),
    ...(orphan === undefined ? {} : { [ON_DELETE_ANNOTATION]: "orphan" }),
    ...(adopt === undefined ? {} : { [ON_CONFLICT_ANNOTATION]: "adopt" }),
    ...(overrides.length === 0 ? {} : { [OVERRIDES_ANNOTATION]: JSON.stringify(overrides) }),
  };
}

function wholeOverrides(wish: Wish, report: ConversionReport): WrittenOverride[] {
  if (wish.object.apiVersion.startsWith("rbac.authorization.k8s.io/")) {
    refuseOverrides(wish, report);
    return [];
  }
  return wish.overrides.flatMap(({ source, operations, ...where }) => {
    const gap = report.about(source);
    const patch = operations.flatMap((operation): object[] => {
      const translated = translateWhole(operation);
      if ("patch" in translated) return [translated.patch];
      gap(operation.field, translated.problem, translated.instead);
      return [];
    });
    return patch.length === 0 ? [] : [{ ...where, patch }];
  });
}

/** Types whose DelegatedType is among the manifests. */
const SHIPPED: Readonly<Record<string, string>> = { ConfigMap: "configmaps", Secret: "secrets" };

function allowanceOf({ apiVersion, kind }: WrittenObject): string {
  const shipped = apiVersion === "v1" && Object.hasOwn(SHIPPED, kind) ? SHIPPED[kind] : undefined;
  return shipped === undefined
    ? `${kind}: members get objects of a type that a DelegatedType names; create one for ${apiVersion} ${kind}`
    : `${kind}: legation install --types ${shipped}`;
}

function annotateWorkload(wish: Wish, treatment: Treatment, report: ConversionReport): WrittenObject {
  const { object, source, choices, orphan } = wish;
  const gap = report.about(source);
  if (orphan !== undefined) {
    gap(orphan, "what members run for an object goes with it", "keep the object while it is to run");
  }
  const fields = COUNTS[treatment] ?? [];
  const path = countsPath(treatment);
  const { patches, numbers } = translateAll(wish, { path, fields }, report);
  const { totals, preferences } = divideWish(wish, { path, fields, numbers, treatment }, gap);
  const isJob = treatment !== "pods";
  const counted = Object.entries(totals).reduce(
    (changed, [field, value]) => setAt(changed, [...path, field], value),
    object,
  );
  const annotations = {
    ...(isJob ? { [WHOLE_KEY]: WHOLE_VALUE } : { [DELEGATE_ANNOTATION]: "true" }),
    ...placementAnnotations(choices),
    ...(preferences === undefined ? {} : { [PREFERENCES_ANNOTATION]: JSON.stringify(preferences) }),
    ...(patches.length === 0 ? {} : { [OVERRIDES_ANNOTATION]: JSON.stringify(patches) }),
  };
  const selected = isJob ? withoutSelector(counted, path, gap) : counted;
  return withAnnotations(selected, annotations, wish, report);
}

/** Translates all overrides: to patches of pods, and to numbers by cluster. */
function translateAll(
  { object, overrides }: Wish,
  counts: { readonly path: readonly string[]; readonly fields: readonly string[] },
  report: ConversionReport,
): { readonly patches: readonly WrittenOverride[]; readonly numbers: ReadonlyMap<string, Numbers> } {
  const template = templatePath(object);
  const numbers = new Map<string, Numbers>();
  const patches: WrittenOverride[] = [];
  for (const { source, operations, ...where } of overrides) {
    const gap = report.about(source);
    const patch: object[] = [];
    for (const operation of operations) {
      const { field } = operation;
      const translated = translate(operation, template, counts);
      if ("problem" in translated) gap(field, translated.problem, translated.instead);
      else if ("patch" in translated) {
        const hindrance = hindranceTo([...patch, translated.patch], object);
        if (hindrance === undefined) patch.push(translated.patch);
        else gap(field, hindrance, "have an operator write legation.dev/overrides on the namespace");
      } else if (where.clusters === undefined || where.clusterSelector !== undefined) {
        const problem = `${translated.count} for clusters that are not named`;
        gap(field, problem, "write scheduling-preferences by name");
      } else {
        const { count, value } = translated;
        for (const name of where.clusters) numbers.set(name, { ...numbers.get(name), [count]: value });
      }
    }
    if (patch.length > 0) patches.push({ ...where, patch });
  }
  return { patches, numbers };
}

/** Returns why admission refuses a patch in an author's annotation. */
function hindranceTo(patch: readonly object[], object: WrittenObject): string | undefined {
  const parsed = parseOverrides(JSON.stringify([{ patch }]));
  if ("problem" in parsed) return parsed.problem;
  const spec = valueAt(object, [...templatePath(object), "spec"]);
  const [problem] = privilegeProblems({ containers: [], ...(isJsonObject(spec) ? spec : {}) }, parsed);
  return problem?.replace(/^\[0\]\.patch: /, "").split(";")[0];
}

/** A member generates the selector of a whole Job. */
function withoutSelector(object: WrittenObject, path: readonly string[], gap: Gap): WrittenObject {
  const spec = valueAt(object, path);
  if (!isJsonObject(spec) || spec.manualSelector !== true) return object;
  const { manualSelector: _, selector: __, ...rest } = spec;
  gap(
    "template.spec.manualSelector",
    "the member chooses the Job's selector",
    "nothing: manualSelector and selector are left out",
  );
  return setAt(object, path, rest);
}

function refuseOverrides({ overrides }: Wish, report: ConversionReport): void {
  for (const { source, operations } of overrides) {
    for (const { field, path } of operations) noDifference(path, field, report.about(source));
  }
}

/** Writes annotations where Legation reads them, without any that it would refuse. */
function withAnnotations(
  object: WrittenObject,
  annotations: Record<string, string>,
  { source }: Wish,
  report: ConversionReport,
): WrittenObject {
  const { [OVERRIDES_ANNOTATION]: _, ...others } = annotations;
  // Overrides were checked one by one.
  const judged = treatmentOf(object).treatment === "whole" ? others : annotations;
  const parsed = parsePlacement(judged);
  const problems = parsed.ok ? [] : parsed.problems;
  for (const { key, message } of problems) {
    report.about(source)(key, message.replace(`annotation ${key}: `, ""), "write the annotation by hand");
  }
  const kept = Object.entries(annotations).filter(([key]) => !problems.some((problem) => problem.key === key));
  const path =
    object.kind === "CronJob" ? ["spec", "jobTemplate", "metadata", "annotations"] : ["metadata", "annotations"];
  const before = valueAt(object, path);
  return setAt(object, path, { ...(isJsonObject(before) ? before : {}), ...Object.fromEntries(kept) });
}

/** The object's fields with numbers of pods. */
interface Dividing {
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

function divideWish(wish: Wish, dividing: Dividing, gap: Gap): Division {
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
