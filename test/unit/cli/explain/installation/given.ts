import type { Connection } from "../../../../../src/cli/shared/session.ts";
import type { KubeErrorCode } from "../../../../../src/kube/errors.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import type { FakeMethods, fakeClient } from "../../../../support/clients/fake-client.ts";
import { connection, type RecordedSession, recordedSession } from "../../session.ts";

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

/** Returns a session whose host has this client. */
export function connected(client: ReturnType<typeof fakeClient>, parts: Partial<Connection> = {}): RecordedSession {
  return recordedSession({ connect: async () => connection(client, parts) });
}

/** A host that answers. */
export const answering: Required<Pick<FakeMethods, "raw" | "stream">> = {
  raw: async () => ({ gitVersion: "v1.36.3" }),
  stream: async () => ({ status: 403, headers: { date: new Date().toUTCString() }, text: "" }),
};
