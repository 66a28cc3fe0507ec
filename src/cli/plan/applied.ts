import { z } from "zod";
import type { WrittenObject } from "./documents.ts";
import { isMap } from "./same-template.ts";

// What others than its author write into a workload: autoscalers, queues, people who scale or pause it.
const LEFT_ALONE = [
  "replicas",
  "parallelism",
  "completions",
  "completionMode",
  "suspend",
  "paused",
  "ordinals",
  "updateStrategy",
] as const;

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const lastApplied = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue("is no JSON");
      return z.NEVER;
    }
  })
  .pipe(z.looseObject({ spec: z.looseObject({}) }));

/**
 * The workload as it is once its manifest is applied: fields that the manifest does not have stay as the host has them, unless
 * an earlier manifest had them. The status is the host's.
 */
export function asApplied(written: WrittenObject, stored: WrittenObject | undefined): WrittenObject {
  const { status: _, ...object } = written;
  if (stored === undefined) return object;
  const { spec: before } = stored;
  const whole = stored.status === undefined ? object : { ...object, status: stored.status };
  if (!isMap(before) || !isMap(written.spec)) return whole;
  const earlier = lastApplied.safeParse(stored.metadata.annotations?.[LAST_APPLIED]).data?.spec ?? {};
  const kept = LEFT_ALONE.flatMap((field) =>
    before[field] === undefined || earlier[field] !== undefined ? [] : [[field, before[field]] as const],
  );
  return { ...whole, spec: { ...Object.fromEntries(kept), ...written.spec } };
}
