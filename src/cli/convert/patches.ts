import { parseObjectOverrides, parseOverrides } from "../../api/overrides.ts";
import { OBJECT_PER_GROUP } from "./report.ts";

/** An operation of a JSON patch, as KubeFed and Karmada know them; its path begins at the object. */
export interface ObjectOperation {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  readonly value?: unknown;
  /** The operation's place in the input, for findings: `spec.overrides[0].clusterOverrides[1]`. */
  readonly field: string;
}

export interface ObjectOverride {
  readonly source: string;
  /** Absent: every cluster. */
  readonly clusters?: readonly string[];
  /** In the grammar of `kubectl get -l`. Absent: every cluster. */
  readonly clusterSelector?: string;
  readonly operations: readonly ObjectOperation[];
}

/** An entry of the annotation `legation.dev/overrides`. */
export interface WrittenOverride {
  readonly clusters?: readonly string[];
  readonly clusterSelector?: string;
  readonly patch: readonly object[];
}

/** The translation of one operation: of the pod or whole object, of a count such as `replicas`, or what hinders it. */
export type Translated =
  | { readonly patch: object }
  | { readonly count: string; readonly value: number }
  | { readonly problem: string; readonly instead: string };

/** Translates an operation on a workload to one on its pods. `template` and `counts` are paths in the workload. */
export function translate(
  { op, path, value }: ObjectOperation,
  template: readonly string[],
  counts: { readonly path: readonly string[]; readonly fields: readonly string[] },
): Translated {
  const segments = path.split("/").slice(1);
  const field = segments.at(-1) ?? "";
  if (
    startsWith(segments, counts.path) &&
    segments.length === counts.path.length + 1 &&
    counts.fields.includes(field)
  ) {
    if (op !== "remove" && typeof value === "number") return { count: field, value };
    return { problem: `${op} ${path} is no number of pods`, instead: "write the number in scheduling-preferences" };
  }
  const inPod = startsWith(segments, template) ? segments.slice(template.length) : undefined;
  if (inPod === undefined || inPod[0] !== "spec") {
    const isMetadata = segments[0] === "metadata" || inPod?.[0] === "metadata";
    return isMetadata
      ? {
          problem: `${path}: labels and annotations are the same in all members`,
          instead: "write them in the object itself, for all members",
        }
      : {
          problem: `${path} is no field of its pods, and only these differ between members`,
          instead: OBJECT_PER_GROUP,
        };
  }
  const podPath = `/${inPod.join("/")}`;
  const patch = op === "remove" ? { op, path: podPath } : { op, path: podPath, value };
  const parsed = parseOverrides(JSON.stringify([{ patch: [patch] }]));
  if (!("problem" in parsed)) return { patch };
  return {
    problem: reasonOf(parsed.problem),
    instead: "write it in the pod template, for all members, or an object per group of members",
  };
}

export function translateWhole({ op, path, value }: ObjectOperation): Exclude<Translated, { readonly count: string }> {
  const patch = op === "remove" ? { op, path } : { op, path, value };
  const parsed = parseObjectOverrides(JSON.stringify([{ patch: [patch] }]));
  if (!("problem" in parsed)) return { patch };
  return { problem: reasonOf(parsed.problem), instead: "write it in the object itself, for all members" };
}

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((segment, index) => segments[index] === segment);
}

/** Leaves out the place and the example of the annotation's own message. */
function reasonOf(problem: string): string {
  return problem.replace(/^\[0\]\.patch\[0\]\.[a-z]+: /, "").replace(/; write e\.g\. \[.*$/s, "");
}
