import { isJsonObject, valueAt } from "../../api/json.ts";
import { parseObjectOverrides, parseOverrides } from "../../api/overrides.ts";
import { privilegeProblems } from "../../pods/overrides.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { COUNTS, specPath, templatePath, treatmentOf } from "./kinds.ts";
import type { ConversionReport } from "./report.ts";

/** An operation of a JSON patch, as KubeFed and Karmada know them; its path begins at the object. */
export interface ObjectOperation {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  readonly value?: unknown;
  /** The operation's place in the input, for findings: `spec.overrides[0].clusterOverrides[1]`. */
  readonly field: string;
}

/** The clusters of an entry of the annotation `legation.dev/overrides`. */
interface OverriddenClusters {
  /** Absent: every cluster. */
  readonly clusters?: readonly string[];
  /** A label selector in the grammar of `kubectl get -l`. Absent: every cluster. */
  readonly clusterSelector?: string;
}

export interface ObjectOverride extends OverriddenClusters {
  /** The name of the foreign object in findings. */
  readonly source: string;
  readonly operations: readonly ObjectOperation[];
}

interface WrittenOverride extends OverriddenClusters {
  readonly patch: readonly object[];
}

/** Numbers of pods by the object's fields, such as `replicas`. */
export type Numbers = Readonly<Record<string, number>>;

/** The translation of overrides: entries of `legation.dev/overrides`, and clusters' own numbers of pods. */
interface TranslatedOverrides {
  readonly patches: readonly WrittenOverride[];
  readonly numbers: ReadonlyMap<string, Numbers>;
}

/** The remedy for fields that differ between members. */
export const OBJECT_PER_GROUP: string =
  "write it in the object itself, for all members, or an object per group of members, with its own legation.dev/clusters";

export function translateOverrides(
  object: WrittenObject,
  overrides: readonly ObjectOverride[],
  report: ConversionReport,
): TranslatedOverrides {
  const counts = COUNTS[treatmentOf(object).treatment].map((name) => ({
    name,
    path: pointerOf([...specPath(object), name]),
  }));
  const root = counts.length === 0 ? "" : pointerOf(templatePath(object));
  const numbers = new Map<string, Numbers>();
  const patches = overrides.flatMap(({ source, operations, ...where }) => {
    const gap = report.about(source);
    const patch: object[] = [];
    for (const { field, op, path, value } of operations) {
      const count = counts.find((each) => each.path === path && op !== "remove" && typeof value === "number");
      if (count !== undefined && (where.clusters === undefined || where.clusterSelector !== undefined)) {
        gap(field, `${count.name} for clusters that are not named`, "write scheduling-preferences by name");
      } else if (count !== undefined) {
        for (const name of where.clusters ?? []) {
          numbers.set(name, { ...numbers.get(name), [count.name]: Number(value) });
        }
      } else {
        const operation = { op, path: path.slice(root.length), ...(op === "remove" ? {} : { value }) };
        const refusal = path.startsWith(`${root}/`)
          ? refusalOf({ ...where, patch: [...patch, operation] }, object)
          : { problem: `${path} is no field of its pods, and only these differ between members` };
        if (refusal === undefined) patch.push(operation);
        else gap(field, refusal.problem, refusal.remedy ?? OBJECT_PER_GROUP);
      }
    }
    return patch.length === 0 ? [] : [{ ...where, patch }];
  });
  return { patches, numbers };
}

/** Returns why admission refuses an override in an author's annotation, and the remedy, if it is one of its own. */
function refusalOf(
  override: WrittenOverride,
  object: WrittenObject,
): { readonly problem: string; readonly remedy?: string } | undefined {
  const { treatment } = treatmentOf(object);
  if (treatment === "host" || object.apiVersion.startsWith("rbac.authorization.k8s.io/")) {
    return { problem: "members get the object as it is, without differences" };
  }
  const text = JSON.stringify([override]);
  const parsed = treatment === "whole" ? parseObjectOverrides(text) : parseOverrides(text);
  if ("problem" in parsed) return { problem: reasonOf(parsed.problem) };
  if (treatment === "whole") return undefined;
  const spec = valueAt(object, [...templatePath(object), "spec"]);
  const [problem] = privilegeProblems({ containers: [], ...(isJsonObject(spec) ? spec : {}) }, parsed);
  const remedy = "have an operator write legation.dev/overrides on the namespace";
  return problem === undefined ? undefined : { problem: reasonOf(problem), remedy };
}

/** Leaves out the place in the annotation, and its example. */
function reasonOf(problem: string): string {
  return problem.replace(/^\[0\]\.patch\S*: /, "").replace(/; write e\.g\. \[.*$/s, "");
}

function pointerOf(path: readonly string[]): string {
  return path.map((field) => `/${field}`).join("");
}
