import type { AnyObject, DelegatedType } from "../../../../../src/api/delegated-type.ts";
import { WHOLE_FINALIZER, WHOLE_KEY } from "../../../../../src/api/keys.ts";

export const TYPES: Readonly<Record<string, DelegatedType["spec"]>> = {
  widgets: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", sum: ["ready"] },
  engines: { group: "example.com", version: "v1", kind: "Engine", plural: "engines", exclusive: true, drift: "Report" },
  configmaps: { version: "v1", kind: "ConfigMap", plural: "configmaps" },
};
export const PLURALS: readonly string[] = ["widgets", "engines", "configmaps"];

export function objectOf(
  plural: string,
  name: string,
  version: number,
  annotations: Record<string, string> = {},
): AnyObject {
  const { kind = "", group } = TYPES[plural] ?? {};
  const apiVersion = group === undefined ? "v1" : `${group}/v1`;
  const metadata = { namespace: "team", name, annotations: { [WHOLE_KEY]: "true", ...annotations } };
  return { apiVersion, kind, metadata, ...contentOf(plural, version) };
}

export function contentOf(plural: string, version: number): object {
  return { [fieldIn(plural)]: { version, color: "red" } };
}

export function fieldIn(plural: string): "data" | "spec" {
  return plural === "configmaps" ? "data" : "spec";
}

export function fieldsOf({ spec, data }: AnyObject): Record<string, unknown> {
  return { ...((spec ?? data) as object) };
}

export function versionOf(object: AnyObject): number {
  return Number(fieldsOf(object).version ?? 0);
}

/** Marks an object as the webhook does. */
export function marked(object: AnyObject): AnyObject {
  const { labels, finalizers = [] } = object.metadata ?? {};
  const metadata = {
    ...object.metadata,
    labels: { ...labels, [WHOLE_KEY]: "true" },
    finalizers: finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER],
  };
  return { ...object, metadata };
}

/** An author's change as the webhook lets it pass. */
export function admitted(object: AnyObject, before: AnyObject): AnyObject {
  const { metadata = {} } = object;
  if (metadata.deletionTimestamp !== undefined) return object;
  const { annotations = {}, labels = {}, finalizers = [] } = metadata;
  if (annotations[WHOLE_KEY] !== undefined) {
    return before.metadata?.labels?.[WHOLE_KEY] === "true" || before.metadata?.annotations?.[WHOLE_KEY] === undefined
      ? marked(object)
      : object;
  }
  const { [WHOLE_KEY]: _, ...others } = labels;
  const isHeld = finalizers.includes(WHOLE_FINALIZER);
  return {
    ...object,
    metadata: { ...metadata, labels: isHeld ? { ...others, [WHOLE_KEY]: "false" } : others },
  };
}
