import { z } from "zod";
import { clusterNameProblem } from "./cluster.ts";
import type { PodSpec } from "./kubernetes.ts";
import { parseLabelSelector, type Selector, selectorMatches } from "./label-selector.ts";
import { structuredTextReader } from "./structured-text.ts";

/** An operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string }
  | { readonly op: "move" | "copy"; readonly from: string; readonly path: string };

/** A patch of delegates, or of copies of a whole object, in some members. */
export interface Override {
  /** Members by name; default: any. */
  readonly clusters?: readonly string[];
  /** Members by the labels of their Cluster; default: any. */
  readonly selector?: Selector;
  readonly patch: readonly PatchOperation[];
  /** Undefined for an author's override, which may not change what the host's admission judges. */
  readonly by?: "namespace";
}

/** The overrides, or all problems and what to write instead. */
export type ParsedOverrides = readonly Override[] | { readonly problem: string };

type OptionalField = Exclude<keyof PodSpec, "containers">;

/**
 * Fields of a pod's spec that are not copied to delegates and that no override may set: the host's admission fills
 * them in, or the member decides them.
 */
export const FIELDS_NOT_DELEGATED: readonly OptionalField[] = [
  "nodeName",
  "schedulerName",
  "schedulingGates",
  // Resolved from the class names, which are copied.
  "priority",
  "preemptionPolicy",
  "overhead",
  // Deprecated alias of serviceAccountName, filled in by defaulting.
  "serviceAccount",
  // Refused by the API server at creation; forwarded afterwards.
  "ephemeralContainers",
];

// Fields that Legation or the member decides. A Set, since path segments may be any text.
const KEPT_FIELDS: ReadonlySet<string> = new Set(FIELDS_NOT_DELEGATED);

/** Rules for the paths of patches: each returns why a path is refused. */
interface PathRules {
  readonly read: (path: string) => string | undefined;
  readonly write: (path: string) => string | undefined;
  readonly example: string;
}

function pathThat(problemOf: (path: string) => string | undefined): z.ZodType<string> {
  return z.string().check(({ value, issues }) => {
    const problem = problemOf(value);
    if (problem !== undefined) issues.push({ code: "custom", message: problem, input: value });
  });
}

function overridesReader(rules: PathRules): (text: string) => ParsedOverrides {
  const read = pathThat(rules.read);
  const written = pathThat((path) => rules.read(path) ?? rules.write(path));
  const operationSchema: z.ZodType<PatchOperation> = z.discriminatedUnion(
    "op",
    [
      z.strictObject({ op: z.enum(["add", "replace"]), path: written, value: z.json() }),
      z.strictObject({ op: z.literal("test"), path: read, value: z.json() }),
      z.strictObject({ op: z.literal("remove"), path: written }),
      z.strictObject({ op: z.literal("move"), from: written, path: written }),
      z.strictObject({ op: z.literal("copy"), from: read, path: written }),
    ],
    { error: "op: must be add, remove, replace, move, copy or test" },
  );
  const readText = structuredTextReader(
    z.array(
      z.strictObject({
        clusters: z.array(z.string()).min(1).optional(),
        clusterSelector: z.string().optional(),
        patch: z.array(operationSchema).min(1),
      }),
    ),
  );
  const advice = `write e.g. [{"clusters": ["west"], "patch": [{"op": "replace", "path": "${rules.example}", "value": "…"}]}]`;
  return (text) => {
    const parsed = readText(text);
    if (!parsed.ok) return { problem: `${parsed.problems.join("; ")}; ${advice}` };
    const problems: string[] = [];
    const overrides = parsed.value.map(({ clusters, clusterSelector, patch }, index): Override => {
      for (const name of clusters ?? []) {
        const problem = clusterNameProblem(name);
        if (problem !== undefined)
          problems.push(`[${index}].clusters: ${JSON.stringify(name.slice(0, 100))} ${problem}`);
      }
      const selector = clusterSelector === undefined ? undefined : parseLabelSelector(clusterSelector);
      if (selector?.ok === false) problems.push(`[${index}].clusterSelector: ${selector.message}`);
      return {
        ...(clusters === undefined ? {} : { clusters }),
        ...(selector?.ok === true ? { selector: selector.selector } : {}),
        patch,
      };
    });
    return problems.length === 0 ? overrides : { problem: `${problems.join("; ")}; ${advice}` };
  };
}

/** Parses overrides of pods; their paths begin at the pod. */
export const parseOverrides: (text: string) => ParsedOverrides = overridesReader({
  read: podReadProblem,
  write: podWriteProblem,
  example: "/spec/containers/0/image",
});

/** Parses overrides of a whole object; their paths begin at the object. */
export const parseObjectOverrides: (text: string) => ParsedOverrides = overridesReader({
  read: objectPathProblem,
  write: objectPathProblem,
  example: "/data/region",
});

export function overrideApplies(
  { clusters, selector }: Override,
  member: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): boolean {
  if (clusters !== undefined && !clusters.includes(member.name)) return false;
  return selector === undefined || selectorMatches(selector, member.labels);
}

// A path through a property of every JavaScript object would change the process.
function sharedIn(segments: readonly string[]): string | undefined {
  return segments.find((segment) => segment === "__proto__" || segment === "constructor" || segment === "prototype");
}

function podReadProblem(path: string): string | undefined {
  const [root, top, field = "", ...rest] = path.split("/");
  const shared = sharedIn([field, ...rest]);
  if (shared !== undefined) return `${JSON.stringify(path)}: ${shared} is no field of a pod`;
  if (root === "" && top === "spec" && field !== "") return undefined;
  return `${JSON.stringify(path)} is not inside /spec/: names, labels and owners of a delegate are Legation's`;
}

function podWriteProblem(path: string): string | undefined {
  const [, , field = "", ...rest] = path.split("/");
  if (KEPT_FIELDS.has(field)) return `${JSON.stringify(path)}: spec.${field} is Legation's or the member's to decide`;
  // The proxy could not report the status of an added container.
  if ((field === "containers" || field === "initContainers") && (rest.length < 2 || rest[1] === "name")) {
    return `${JSON.stringify(path)}: containers keep their number, order and names; write a field of one, e.g. /spec/${field}/0/image`;
  }
  return undefined;
}

function objectPathProblem(path: string): string | undefined {
  const [root, ...segments] = path.split("/");
  const [top = ""] = segments;
  const shared = sharedIn(segments);
  if (shared !== undefined) return `${JSON.stringify(path)}: ${shared} is no field of an object`;
  if (root !== "" || top === "") {
    return `${JSON.stringify(path)} is no JSON pointer of a field; write a path from the object's root, e.g. /data/region`;
  }
  return top === "apiVersion" || top === "kind" || top === "metadata" || top === "status"
    ? `${JSON.stringify(path)}: apiVersion, kind, metadata and status are Legation's to write; name another field, e.g. one inside /spec/ or /data/`
    : undefined;
}
