import { isJsonObject, type JsonObject } from "./json-object.ts";

/** The annotation with the manifest that `kubectl apply` applied (k8s.io/api/core/v1, LastAppliedConfigAnnotation). */
export const LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

/** The manifest of an object that `kubectl apply` wrote; undefined where there is none, or none that is a JSON object. */
export function lastApplied(annotations: Readonly<Record<string, string>> | undefined): JsonObject | undefined {
  const text = annotations?.[LAST_APPLIED_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const manifest: unknown = JSON.parse(text);
    return isJsonObject(manifest) ? manifest : undefined;
  } catch {
    // Anybody may write there.
    return undefined;
  }
}
