import { INTERNAL_ANNOTATIONS } from "./keys.ts";

type Annotations = Readonly<Record<string, string>>;

/** Bytes of all annotations of an object, keys and values (apimachinery, TotalAnnotationSizeLimitB). */
const MOST_BYTES = 256 * 1024;
/** More than Legation's own annotations take on any object. */
const OWN_BYTES = 4096;
/** Bytes that annotations of others may take, so that Legation's own fit beside them. */
export const BYTES_OF_OTHERS: number = MOST_BYTES - OWN_BYTES;

/** Returns why a pod with these annotations cannot become a proxy. */
export function annotationRoomProblem(annotations: Annotations = {}): string | undefined {
  const bytes = bytesOf(Object.entries(annotations).filter(([key]) => !INTERNAL_ANNOTATIONS.has(key)));
  if (bytes <= BYTES_OF_OTHERS) return undefined;
  return `metadata.annotations: take ${bytes} bytes, and those of a delegated pod may take ${BYTES_OF_OTHERS}, since Legation's own have to fit beside them; shorten them`;
}

/** Leaves out the longest annotations until Legation's own fit beside the others. */
export function fittingAnnotations(annotations: Record<string, string>): Record<string, string> {
  const entries = Object.entries(annotations);
  if (bytesOf(entries) <= BYTES_OF_OTHERS) return annotations;
  const kept = entries.toSorted((a, b) => bytesOf([a]) - bytesOf([b]));
  while (bytesOf(kept) > BYTES_OF_OTHERS) kept.pop();
  return Object.fromEntries(kept);
}

function bytesOf(entries: readonly (readonly [string, string])[]): number {
  return entries.reduce((bytes, [key, value]) => bytes + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
}
