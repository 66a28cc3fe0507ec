import { parsePlacement } from "../../api/annotations.ts";
import { defined } from "../../api/defined.ts";
import { isJsonObject, type JsonObject, setAt, valueAt, withoutKeys } from "../../api/json.ts";
import {
  DELEGATE_ANNOTATION,
  ON_CONFLICT_ANNOTATION,
  ON_DELETE_ANNOTATION,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_KEY,
  WHOLE_VALUE,
} from "../../api/keys.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { type ChosenClusters, placementAnnotations } from "./clusters.ts";
import { type Division, divisionOf } from "./division.ts";
import { annotatedPath, specPath, treatmentOf } from "./kinds.ts";
import { type ObjectOverride, translateOverrides } from "./overrides.ts";
import { type ConversionReport, type Gap, LEFT_OUT } from "./report.ts";

/** An ordinary object, and where and how another project has it run. */
interface Wish {
  readonly object: WrittenObject;
  /** The name of the foreign object in findings. */
  readonly source: string;
  /** Choices of clusters, an earlier one preferred. Empty: any cluster. */
  readonly choices: readonly ChosenClusters[];
  /** Undefined: each cluster has the whole number of pods. */
  readonly division: Division | undefined;
  readonly overrides: readonly ObjectOverride[];
  /** The field of the foreign object by which copies stay when the object is deleted. */
  readonly orphan: string | undefined;
  /** Copies take over a member's own objects. */
  readonly adopts: boolean;
}

/** Returns the object with Legation's annotations. Undefined if it cannot go to members. */
export function annotate(wish: Wish, report: ConversionReport): WrittenObject | undefined {
  const { object, source, choices, orphan, adopts } = wish;
  const gap = report.about(source);
  const { treatment, why } = treatmentOf(object);
  if (treatment === "nowhere") {
    gap("kind", why, LEFT_OUT);
    return undefined;
  }
  const { patches, numbers } = translateOverrides(object, wish.overrides, report);
  if (treatment === "host") {
    report.steps.add(`${source}: stays on the host without annotations: ${why}`);
    return object;
  }
  const isWhole = treatment === "whole";
  if (isWhole) report.steps.add(allowanceOf(object));
  else if (orphan !== undefined) {
    gap(orphan, "what members run for an object goes with it", "keep the object while it is to run");
  }
  const { totals, preferences } = isWhole ? { totals: {} } : divisionOf({ ...wish, numbers }, gap);
  const annotations = {
    ...(treatment === "pods" ? { [DELEGATE_ANNOTATION]: "true" } : { [WHOLE_KEY]: WHOLE_VALUE }),
    ...placementAnnotations(choices),
    ...defined({
      [PREFERENCES_ANNOTATION]: preferences && JSON.stringify(preferences),
      [ON_DELETE_ANNOTATION]: isWhole && orphan !== undefined ? "orphan" : undefined,
      [ON_CONFLICT_ANNOTATION]: isWhole && adopts ? "adopt" : undefined,
    }),
  };
  const parsed = parsePlacement(annotations);
  const problems = parsed.ok ? [] : parsed.problems;
  for (const { key, message } of problems) {
    gap(key, message.replace(`annotation ${key}: `, ""), "write the annotation by hand");
  }
  const path = annotatedPath(object);
  const before = valueAt(object, [...path, "metadata", "annotations"]);
  const annotated = setAt(object, [...path, "metadata", "annotations"], {
    ...(isJsonObject(before) ? before : {}),
    ...withoutKeys(annotations, (key) => problems.some((problem) => problem.key === key)),
    // Each of their operations was judged already.
    ...(patches.length === 0 ? {} : { [OVERRIDES_ANNOTATION]: JSON.stringify(patches) }),
  });
  const spec = valueAt(object, specPath(object));
  if (isWhole || !isJsonObject(spec)) return annotated;
  const counted = { ...spec, ...totals };
  return setAt(annotated, specPath(object), treatment === "job" ? withoutSelector(counted, gap) : counted);
}

/** Returns the spec of a whole Job without a selector of its own, as its member generates one. */
function withoutSelector(spec: JsonObject, gap: Gap): JsonObject {
  const { manualSelector, selector: _, ...rest } = spec;
  if (manualSelector !== true) return spec;
  gap(
    "template.spec.manualSelector",
    "the member chooses the Job's selector",
    "nothing: manualSelector and selector are left out",
  );
  return rest;
}

/** Types whose DelegatedType is among the manifests. */
const SHIPPED: Readonly<Record<string, string>> = { ConfigMap: "configmaps", Secret: "secrets" };

function allowanceOf({ apiVersion, kind }: WrittenObject): string {
  const shipped = apiVersion === "v1" ? SHIPPED[kind] : undefined;
  return shipped === undefined
    ? `${kind}: members get objects of a type that a DelegatedType names; create one for ${apiVersion} ${kind}`
    : `${kind}: legation install --types ${shipped}`;
}
