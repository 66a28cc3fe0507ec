import fastJsonPatch from "fast-json-patch";
import type { PatchOperation } from "./overrides.ts";

export type Patched<T> = { readonly document: T } | { readonly problem: string };

/** Returns a patched copy of the document, or the operation that does not apply. `subject` names the document in messages. */
export function applyPatch<T>(document: T, patch: readonly PatchOperation[], subject: string): Patched<T> {
  let patched = clone(document);
  for (const [number, operation] of patch.entries()) {
    try {
      // The last argument bans changes of prototypes.
      patched = fastJsonPatch.applyOperation(patched, structuredClone(operation), true, true, true).newDocument;
    } catch (error) {
      const reason = error instanceof fastJsonPatch.JsonPatchError ? error.name : String(error);
      const from = "from" in operation ? ` from ${operation.from}` : "";
      const words = WORDS[reason];
      const why = words === undefined ? reason : `the ${subject}${words}`;
      return { problem: `patch[${number}]: ${operation.op} ${operation.path}${from}: ${why}` };
    }
  }
  return { document: patched };
}

/** Clones JSON with raw numbers, which `structuredClone` does not support. */
function clone<T>(value: T): T {
  if (typeof value !== "object" || value === null || JSON.isRawJSON(value)) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => clone(item)) as T;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, clone(inner as unknown)])) as T;
}

const WORDS: Readonly<Record<string, string>> = {
  TEST_OPERATION_FAILED: " has another value there",
  OPERATION_PATH_UNRESOLVABLE: " has nothing there",
  OPERATION_PATH_CANNOT_ADD: " has nothing to add it to",
  OPERATION_FROM_UNRESOLVABLE: " has nothing there to take",
  OPERATION_VALUE_OUT_OF_BOUNDS: "'s list is shorter",
};
