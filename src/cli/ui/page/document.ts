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

/** Returns why the page's server, or a proxy before it, refuses a request. */
export async function refusalOf(response: Response): Promise<string> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return String((await response.json()).message);
  return type.startsWith("text/plain") ? response.text() : `the answer has the status ${response.status}`;
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
    if (!response.ok) return { ...before, problem: await refusalOf(response) };
    return { value: (await response.json()) as T, readAt: Date.now() };
  } catch (error) {
    const problem = timeout.aborted ? noAnswer(withinMs) : `the page's server does not answer: ${String(error)}`;
    return { ...before, problem };
  }
}
