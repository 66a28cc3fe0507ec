import type { KubeErrorCode } from "../../../../../src/kube/errors.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";

export const NOW: number = Date.parse("2026-11-27T12:00:00Z");
export const DAY_MS: number = 24 * 60 * 60_000;

/** The life of a certificate that was made so many days ago, for ninety days. */
export function ago(days: number): { readonly now: number; readonly lifetimeMs: number } {
  return { now: NOW - days * DAY_MS, lifetimeMs: 90 * DAY_MS };
}

/** Metadata that an API server gives an object. */
export const stored = { uid: "u", resourceVersion: "1" } as const;

export const signal: AbortSignal = new AbortController().signal;
export const limits: { readonly signal: AbortSignal; readonly timeoutMs: number } = { signal, timeoutMs: 1_000 };

/** Returns a request that is refused. */
export function refusing(code: KubeErrorCode, detail: string): () => Promise<never> {
  return async () => {
    throw kubeError(code, detail, { cluster: "host", verb: "create", resource: "x" });
  };
}
