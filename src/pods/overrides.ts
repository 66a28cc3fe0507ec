import fastJsonPatch from "fast-json-patch";
import type { PodSpec } from "../api/kubernetes.ts";
import { type Override, overrideApplies } from "../api/overrides.ts";

/** A pod's spec as it is in one member, or which operation failed and why. */
export type OverriddenSpec = { readonly spec: PodSpec } | { readonly problem: string };

/** Applies the overrides that are for a member, in their order. */
export function overrideSpec(
  spec: PodSpec,
  overrides: readonly Override[],
  member: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): OverriddenSpec {
  const applying = overrides
    .map((override, index) => ({ override, index }))
    .filter(({ override }) => overrideApplies(override, member));
  if (applying.length === 0) return { spec };
  let document = { spec: clone(spec) };
  for (const { override, index } of applying) {
    for (const [number, operation] of override.patch.entries()) {
      try {
        // The last: no operation may reach the prototypes that everything here shares, whoever let it through.
        document = fastJsonPatch.applyOperation(document, structuredClone(operation), true, true, true).newDocument;
      } catch (error) {
        const reason = error instanceof fastJsonPatch.JsonPatchError ? error.name : String(error);
        const from = "from" in operation ? ` from ${operation.from}` : "";
        return {
          problem: `[${index}].patch[${number}]: ${operation.op} ${operation.path}${from}: ${wordsFor(reason)}`,
        };
      }
    }
  }
  return document;
}

/** Integers that JavaScript has no number for stay as they were written, which `structuredClone` does not know. */
function clone<T>(value: T): T {
  if (typeof value !== "object" || value === null || JSON.isRawJSON(value)) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => clone(item)) as T;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, clone(inner as unknown)])) as T;
}

const WORDS: Readonly<Record<string, string>> = {
  TEST_OPERATION_FAILED: "the pod has another value there",
  OPERATION_PATH_UNRESOLVABLE: "the pod has nothing there",
  OPERATION_PATH_CANNOT_ADD: "the pod has nothing to add it to",
  OPERATION_FROM_UNRESOLVABLE: "the pod has nothing there to take",
  OPERATION_VALUE_OUT_OF_BOUNDS: "the pod's list is shorter",
};

function wordsFor(reason: string): string {
  return WORDS[reason] ?? reason;
}
