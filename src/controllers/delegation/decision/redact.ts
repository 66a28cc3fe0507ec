import { OVERRIDES_ANNOTATION } from "../../../api/keys.ts";
import { fingerprint } from "../../../pods/fingerprints.ts";
import type { DelegationDecision } from "./decision.ts";
import type { View } from "./view.ts";

/** A view and the decision that was made on it, as a log line carries them. */
export interface DecisionRecord {
  /** Epoch ms. */
  readonly now: number;
  readonly view: View;
  readonly decision: DelegationDecision;
}

const OWN_PREFIX = "legation.dev/";
const SECRET_FIELDS: ReadonlySet<string> = new Set(["env", "command", "args", "httpHeaders"]);

/** Leaves out what containers run and their environment; others' annotations become fingerprints: equal values stay equal. */
export function redacted<T extends object>(value: T): T {
  return JSON.parse(JSON.stringify(value, redact));
}

function redact(key: string, value: unknown): unknown {
  if (SECRET_FIELDS.has(key)) return undefined;
  if (key !== "annotations" || typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => [name, isPublic(name) || text === null ? text : fingerprint(text)]),
  );
}

function isPublic(annotation: string): boolean {
  return annotation.startsWith(OWN_PREFIX) && annotation !== OVERRIDES_ANNOTATION;
}
