import { z } from "zod";
import { authorAnnotations } from "../../api/annotations.ts";
import { isJsonObject } from "../../api/json.ts";
import { lastApplied } from "../../api/last-applied.ts";
import type { WrittenObject } from "./documents.ts";

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

const appliedAnnotations = z.object({ metadata: z.object({ annotations: z.record(z.string(), z.unknown()) }) });

/**
 * The workload as it is once its manifest is applied: fields that the manifest does not have stay as the host has them, unless
 * an earlier manifest had them. The status is the host's.
 */
export function asApplied(written: WrittenObject, stored: WrittenObject | undefined): WrittenObject {
  const { status: _, ...object } = written;
  if (stored === undefined) return object;
  const { spec: before } = stored;
  const whole = stored.status === undefined ? object : { ...object, status: stored.status };
  if (!isJsonObject(before) || !isJsonObject(written.spec)) return whole;
  const earlierSpec = lastApplied(stored.metadata.annotations)?.spec;
  const earlier = isJsonObject(earlierSpec) ? earlierSpec : {};
  const kept = LEFT_ALONE.flatMap((field) =>
    before[field] === undefined || earlier[field] !== undefined ? [] : [[field, before[field]] as const],
  );
  return { ...whole, spec: { ...Object.fromEntries(kept), ...written.spec } };
}

/**
 * The manifest with what somebody wrote for Legation on the stored workload beside `kubectl apply` (as `kubectl annotate` does): applying
 * takes away only what an earlier manifest had. Of a workload that `kubectl apply` never wrote, nothing says whose an annotation is.
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
