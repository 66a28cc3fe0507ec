import { FORWARDED_ANNOTATION, INTERNAL_ANNOTATIONS } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { forwardedAnnotations, forwardedKeys, forwardedLabels, HOST_ONLY_LABELS } from "./delegate.ts";

/** JSON merge patch of a delegate's metadata; `null` removes a key. The uid makes it a precondition. */
export interface ForwardPatch {
  readonly metadata: {
    readonly uid: string;
    readonly labels?: Record<string, string | null>;
    readonly annotations?: Record<string, string | null>;
  };
}

/**
 * What must change on the delegate so that it has its proxy's labels and annotations again; undefined when nothing.
 * Keys that came from the proxy follow it, also when they go; keys that the member set are never touched.
 */
export function forwardPatch(proxy: Pod, delegate: Stored<Pod>): ForwardPatch | undefined {
  const wanted = { labels: forwardedLabels(proxy), annotations: forwardedAnnotations(proxy) };
  const earlier = earlierKeys(delegate);
  const labels = difference(delegate.metadata.labels ?? {}, wanted.labels, earlier.labels);
  const annotations = difference(delegate.metadata.annotations ?? {}, wanted.annotations, earlier.annotations);
  const keys = forwardedKeys(wanted.labels, wanted.annotations);
  if (labels === undefined && annotations === undefined) return undefined;
  return {
    metadata: {
      uid: delegate.metadata.uid,
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [FORWARDED_ANNOTATION]: keys },
    },
  };
}

function difference(
  current: Record<string, string>,
  wanted: Record<string, string>,
  earlier: readonly string[],
): Record<string, string | null> | undefined {
  const changes: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted)) if (current[key] !== value) changes[key] = value;
  for (const key of earlier) if (!(key in wanted) && key in current) changes[key] = null;
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** The keys the delegate had from its proxy when it was last written; none when the record is unreadable. */
function earlierKeys(delegate: Pod): { labels: readonly string[]; annotations: readonly string[] } {
  const text = delegate.metadata?.annotations?.[FORWARDED_ANNOTATION];
  if (text === undefined) return { labels: [], annotations: [] };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return { labels: [], annotations: [] };
    const { labels, annotations } = value as Record<string, unknown>;
    return {
      labels: strings(labels).filter((key) => !HOST_ONLY_LABELS.has(key)),
      annotations: strings(annotations).filter((key) => !INTERNAL_ANNOTATIONS.has(key)),
    };
  } catch {
    return { labels: [], annotations: [] };
  }
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
