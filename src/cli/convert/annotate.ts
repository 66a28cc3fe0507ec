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
import { divideWish } from "./division.ts";
import { COUNTS, countsPath, type Treatment, templatePath, treatmentOf } from "./kinds.ts";
import type { Numbers, Wish } from "./model.ts";
import { translate, translateWhole, type WrittenOverride } from "./patches.ts";
import { placementAnnotations } from "./placement.ts";
import { type ConversionReport, type Gap, noDifference } from "./report.ts";

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
  const kept = withoutRefused(annotations, judged, report.about(source));
  const path =
    object.kind === "CronJob" ? ["spec", "jobTemplate", "metadata", "annotations"] : ["metadata", "annotations"];
  const before = valueAt(object, path);
  return setAt(object, path, { ...(isJsonObject(before) ? before : {}), ...kept });
}

/** Returns annotations without those that Legation would refuse by the `judged` ones. Tells of each. */
export function withoutRefused(
  annotations: Readonly<Record<string, string>>,
  judged: Readonly<Record<string, string>>,
  gap: Gap,
): Record<string, string> {
  const parsed = parsePlacement(judged);
  const problems = parsed.ok ? [] : parsed.problems;
  for (const { key, message } of problems) {
    gap(key, message.replace(`annotation ${key}: `, ""), "write the annotation by hand");
  }
  const isRefused = (key: string): boolean => problems.some((problem) => problem.key === key);
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !isRefused(key)));
}
