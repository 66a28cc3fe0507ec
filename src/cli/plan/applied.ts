import { z } from "zod";
import { authorAnnotations } from "../../api/annotations.ts";
import { isJsonObject } from "../../api/json.ts";
import { lastApplied } from "../../api/last-applied.ts";
import { parseAmounts } from "../../api/quantity.ts";
import type { WrittenObject } from "../shared/documents.ts";

const appliedAnnotations = z.object({ metadata: z.object({ annotations: z.record(z.string(), z.unknown()) }) });

/** Returns the workload once its manifest is applied: fields that neither it nor an earlier manifest has stay as the host has them. */
export function asApplied(written: WrittenObject, stored: WrittenObject | undefined): WrittenObject {
  const { status: _, ...object } = written;
  if (stored === undefined) return object;
  const { spec: before } = stored;
  const whole = stored.status === undefined ? object : { ...object, status: stored.status };
  if (!isJsonObject(before) || !isJsonObject(written.spec)) return whole;
  const earlierSpec = lastApplied(stored.metadata.annotations)?.spec;
  const earlier = isJsonObject(earlierSpec) ? earlierSpec : {};
  // Autoscalers, queues and operators write replicas and the like.
  const kept = Object.entries(before).filter(([field]) => earlier[field] === undefined);
  return { ...whole, spec: { ...Object.fromEntries(kept), ...written.spec } };
}

/**
 * Returns the manifest with annotations of Legation that came by `kubectl annotate`: `kubectl apply` removes only those of an earlier
 * manifest. A workload that `kubectl apply` never wrote does not tell them apart.
 */
export function withStandingAnnotations(written: WrittenObject, stored: WrittenObject | undefined): WrittenObject {
  const earlier = lastApplied(stored?.metadata.annotations);
  if (earlier === undefined) return written;
  const applied = appliedAnnotations.safeParse(earlier).data?.metadata.annotations ?? {};
  const standing = Object.entries(authorAnnotations(stored?.metadata.annotations)).filter(([key]) => !(key in applied));
  if (standing.length === 0) return written;
  const annotations = { ...Object.fromEntries(standing), ...written.metadata.annotations };
  return { ...written, metadata: { ...written.metadata, annotations } };
}

/**
 * Reports whether the written template is the stored one. A field that is taken out is noticed for Legation's annotations only:
 * any other may be a default.
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

// The API server does not keep these when they are false (k8s.io/api/core/v1: no pointers, omitempty).
const FALSE_BY_ABSENCE: ReadonlySet<string> = new Set([
  "hostIPC",
  "hostNetwork",
  "hostPID",
  "readOnly",
  "stdin",
  "stdinOnce",
  "tty",
]);

// Nor these when they are 0.
const ZERO_BY_ABSENCE: ReadonlySet<string> = new Set(["hostPort", "initialDelaySeconds"]);

/** Reports whether the API server leaves the value out. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === "" || (isJsonObject(value) && Object.keys(value).length === 0);
}

function isDefault(key: string, value: unknown): boolean {
  return (value === false && FALSE_BY_ABSENCE.has(key)) || (value === 0 && ZERO_BY_ABSENCE.has(key));
}

const amounts = z.record(z.string(), z.union([z.string(), z.number()]));

/** Compares quantities by value: the API server writes 0.5 as 500m. */
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

/** Reports whether the stored value has all that is written: the API server adds defaults only. */
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
