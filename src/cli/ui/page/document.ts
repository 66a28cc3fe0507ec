import { noAnswer } from "../../../api/wording.ts";

/** A reading of one of the server's documents: not read yet, the last document, or why it was not read. */
export interface Reading<T> {
  readonly value?: T;
  /** When the value was read; epoch ms. */
  readonly readAt?: number;
  /** Why the last reading failed. */
  readonly problem?: string;
}

/** Longer than a member that is far away takes. */
export const ANSWER_WITHIN_MS = 15_000;

/** Returns the path of a document: its kind, and the names of what it is of. */
export function apiPath(kind: string, ...names: readonly string[]): string {
  return ["/api", kind, ...names.map(encodeURIComponent)].join("/");
}

/** Reads a document once. The value that was read before stays beside a problem. */
export async function readDocument<T>(
  url: string,
  before: Reading<T>,
  signal: AbortSignal,
  withinMs: number = ANSWER_WITHIN_MS,
): Promise<Reading<T>> {
  const timeout = AbortSignal.timeout(withinMs);
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, timeout]) });
    const body = await response.json();
    if (response.ok) return { value: body as T, readAt: Date.now() };
    return { ...before, problem: String((body as { message?: unknown }).message) };
  } catch (error) {
    const problem = timeout.aborted ? noAnswer(withinMs) : `the page's server does not answer: ${String(error)}`;
    return { ...before, problem };
  }
}
