import { isJsonObject, type JsonObject, jsonOrNothing } from "./json.ts";

/** The annotation with the manifest that `kubectl apply` applied (k8s.io/api/core/v1, LastAppliedConfigAnnotation). */
export const LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns the manifest that `kubectl apply` recorded. Undefined if there is none or it is no JSON object. */
export function lastApplied(annotations: Readonly<Record<string, string>> | undefined): JsonObject | undefined {
  const manifest = jsonOrNothing(annotations?.[LAST_APPLIED_ANNOTATION]);
  return isJsonObject(manifest) ? manifest : undefined;
}
