import { z } from "zod";
import { authorAnnotations } from "../../api/annotations.ts";
import { isJsonObject } from "../../api/json.ts";
import { parseAmounts } from "../../api/quantity.ts";
import type { WrittenObject } from "./documents.ts";

/**
 * Whether a workload's template, as it is written, is that of the stored one. What is taken out of it is seen of Legation's
 * annotations alone: of the rest it may be a default.
 */
export function isSameTemplate(storedWorkload: WrittenObject, writtenWorkload: WrittenObject): boolean {
  const [stored, written] = [templateOf(storedWorkload), templateOf(writtenWorkload)];
  return covers(stored, written) && covers(ownAnnotations(written), ownAnnotations(stored));
}

function templateOf({ spec }: WrittenObject): unknown {
  return isJsonObject(spec) ? spec.template : undefined;
}

function ownAnnotations(template: unknown): Record<string, string> {
  const metadata = isJsonObject(template) ? template.metadata : undefined;
  const annotations = isJsonObject(metadata) && isJsonObject(metadata.annotations) ? metadata.annotations : {};
  return authorAnnotations(Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)])));
}

// Switches that the API server does not keep when they are off (k8s.io/api/core/v1: no pointers, omitempty).
const FALSE_BY_ABSENCE: ReadonlySet<string> = new Set([
  "hostIPC",
  "hostNetwork",
  "hostPID",
  "readOnly",
  "stdin",
  "stdinOnce",
  "tty",
]);

// Numbers that the API server does not keep when they are 0 (k8s.io/api/core/v1: no pointers, omitempty).
const ZERO_BY_ABSENCE: ReadonlySet<string> = new Set(["hostPort", "initialDelaySeconds"]);

/** What is empty is what the API server leaves out. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === "" || (isJsonObject(value) && Object.keys(value).length === 0);
}

function isDefault(key: string, value: unknown): boolean {
  return (value === false && FALSE_BY_ABSENCE.has(key)) || (value === 0 && ZERO_BY_ABSENCE.has(key));
}

const amounts = z.record(z.string(), z.union([z.string(), z.number()]));

/** Quantities by their values: the API server writes them in a form of its own (0.5 as 500m). */
function sameAmounts(stored: unknown, written: unknown): boolean {
  const [own, wanted] = [amounts.safeParse(stored), amounts.safeParse(written)];
  if (!own.success || !wanted.success) return covers(stored, written);
  const [before, after] = [parseAmounts(own.data), parseAmounts(wanted.data)];
  return Object.entries(after).every(([name, amount]) => isSameAmount(before[name], amount));
}

// 0.7 and 700 thousandths differ in the last bit.
function isSameAmount(before: number | undefined, after: number): boolean {
  return before !== undefined && Math.abs(before - after) <= Math.abs(after) * Number.EPSILON * 4;
}

/** Whether all that is written stands in the stored value: the API server adds defaults, and leaves the rest as it is. */
function covers(stored: unknown, written: unknown): boolean {
  if (Array.isArray(written)) {
    return (
      Array.isArray(stored) && stored.length === written.length && written.every((item, i) => covers(stored[i], item))
    );
  }
  if (isJsonObject(written)) {
    const own = isJsonObject(stored) ? stored : {};
    return Object.entries(written).every(([key, value]) => {
      if (own[key] === undefined) return isNothing(value) || isDefault(key, value);
      if (key === "sizeLimit") return sameAmounts({ [key]: own[key] }, { [key]: value });
      return key === "requests" || key === "limits" ? sameAmounts(own[key], value) : covers(own[key], value);
    });
  }
  return String(stored) === String(written);
}
