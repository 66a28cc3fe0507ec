import { withoutNulls } from "../api/json.ts";
import { applyPatch } from "../api/json-patch.ts";
import type { PodSpec } from "../api/kubernetes.ts";
import { type Override, overrideApplies } from "../api/overrides.ts";
import { changedPrivileges } from "./privileges.ts";
import { shapeProblems } from "./spec-shape.ts";

export type OverriddenSpec = { readonly spec: PodSpec } | { readonly problem: string };

/** An author's override gives no privileges that the host has not judged. */
export function overrideSpec(
  spec: PodSpec,
  overrides: readonly Override[],
  member: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): OverriddenSpec {
  let overridden = spec;
  for (const [index, override] of overrides.entries()) {
    if (!overrideApplies(override, member)) continue;
    const patched = patchSpec(overridden, override);
    if ("problem" in patched) return { problem: `[${index}].${patched.problem}` };
    const problem = privilegeProblem(overridden, patched.spec, override);
    if (problem !== undefined) return { problem: `[${index}].patch: ${problem}` };
    overridden = patched.spec;
  }
  if (overridden === spec) return { spec };
  const changed = withoutNulls(overridden);
  const [wrong] = shapeProblems(changed);
  return wrong === undefined ? { spec: changed } : { problem: `makes what is no pod's spec: ${wrong}` };
}

export function privilegeProblems(spec: PodSpec, overrides: readonly Override[]): string[] {
  return overrides.flatMap((override, index) => {
    const patched = patchSpec(spec, override);
    // A patch may depend on earlier overrides and on the member.
    const problem = "problem" in patched ? undefined : privilegeProblem(spec, patched.spec, override);
    return problem === undefined ? [] : [`[${index}].patch: ${problem}`];
  });
}

function privilegeProblem(before: PodSpec, after: PodSpec, { by }: Override): string | undefined {
  const changed = by === "namespace" ? [] : changedPrivileges(before, after);
  if (changed.length === 0) return undefined;
  return (
    `changes ${changed.join(", ")}, which this cluster's admission judges in the pod as it is written; ` +
    "write it in the pod itself, or have an operator write the override on the namespace"
  );
}

function patchSpec(spec: PodSpec, { patch }: Override): OverriddenSpec {
  const patched = applyPatch({ spec }, patch, "pod");
  return "problem" in patched ? patched : patched.document;
}
