import { type Annotations, parsePlacement } from "../src/api/annotations.ts";
import { type DelegationMode, isDelegationWanted } from "../src/api/delegation-mode.ts";
import { OUTDATED_ANNOTATION, WISHES_LABEL, WISHES_OF_ANNOTATION, WISHES_VALUE } from "../src/api/keys.ts";
import { outdatedWishes, type WorkloadRef, wishesAmong, wishesOfText } from "../src/api/workload-wishes.ts";
import type { ReviewedObject } from "./admission-review.ts";
import { without } from "./read-annotations.ts";

export interface WishInput {
  readonly object: ReviewedObject;
  /** Undefined: the workload is being created. */
  readonly oldObject: ReviewedObject | undefined;
  readonly workload: WorkloadRef;
  /** `any`: it is not known, in a second call after one that knew it and may have died. What that one marked stays. */
  readonly mode: DelegationMode | "any";
  /** The author's annotations of the workload, and until this update. */
  readonly outer: Annotations;
  readonly before: Annotations;
  /** The annotations of the pod template, and until this update. */
  readonly template: Annotations;
  readonly oldTemplate: Annotations;
  /** Reports whether the author wrote the key in the template. */
  readonly isAuthors: (key: string) => boolean;
}

export interface WishMarks {
  readonly template: Record<string, string>;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
  /** Annotations that count for the pods. */
  readonly counting: Annotations;
  readonly warnings: readonly string[];
}

/**
 * Leaves a workload's wishes on the workload, where the controller reads them. The template gets `wishes-of` when the workload
 * is created, or where its pods would not be delegated without. A change of wishes never changes it.
 */
export function withWishMarks(input: WishInput): WishMarks {
  const { object, oldObject, workload, mode, outer, before, oldTemplate, isAuthors } = input;
  const wishes = wishesAmong(outer);
  const template: Record<string, string> = { ...input.template };
  const recorded = outdatedWishes((oldObject ?? object).metadata.annotations);
  const outdated: string[] = [];
  for (const [key, value] of Object.entries(wishesAmong(oldObject === undefined ? template : oldTemplate))) {
    const isKept = template[key] === undefined || template[key] === value;
    // Earlier releases copied wishes into templates. Without its copy every pod would be replaced.
    const isCopy = recorded.has(key) || (oldObject !== undefined && value === before[key] && !isAuthors(key));
    if (!isKept || !isCopy) continue;
    template[key] = value;
    if (recorded.has(key) || value !== wishes[key]) outdated.push(key);
  }
  const own = without(template, [...outdated, WISHES_OF_ANNOTATION]);
  const counting = { ...outer, ...own };
  const { labels = {}, annotations = {} } = object.metadata;
  // The first call left its marks, unless it died.
  const isLabeled = mode === "any" && labels[WISHES_LABEL] !== undefined;
  const isMarked = template[WISHES_OF_ANNOTATION] !== undefined || annotations[OUTDATED_ANNOTATION] !== undefined;
  const wantsAt = (annotations: Annotations): boolean => wants(annotations, mode === "any" ? "annotated" : mode);
  const isDelegated = wantsAt(counting) || isLabeled || (mode === "any" && isMarked);
  const mark = oldTemplate[WISHES_OF_ANNOTATION];
  // Pods that return to the host are replaced anyway.
  const taken = isDelegated ? [] : [...outdated, ...(isAuthors(WISHES_OF_ANNOTATION) ? [] : [WISHES_OF_ANNOTATION])];
  const read = Object.keys(wishes).filter((key) => own[key] === undefined);
  if (isDelegated && mark !== undefined) template[WISHES_OF_ANNOTATION] = mark;
  else if (isDelegated && !isLabeled && (oldObject === undefined ? read.length > 0 : !wantsAt(template))) {
    template[WISHES_OF_ANNOTATION] = wishesOfText(workload);
  }
  const isAwaited = template[WISHES_OF_ANNOTATION] === wishesOfText(workload);
  const isRead = isDelegated && (isAwaited || read.length > 0 || outdated.length > 0);
  const record = isDelegated && outdated.length > 0 ? { [OUTDATED_ANNOTATION]: outdated.sort().join(",") } : {};
  return {
    template: without(template, taken),
    labels: isRead ? { ...labels, [WISHES_LABEL]: WISHES_VALUE } : without(labels, isLabeled ? [] : [WISHES_LABEL]),
    annotations: { ...without(annotations, [OUTDATED_ANNOTATION]), ...record },
    counting,
    warnings: Object.entries(wishes).flatMap(([key, value]) =>
      own[key] === undefined || own[key] === value
        ? []
        : [`${key}: the pod template says ${JSON.stringify(own[key])}, and that counts for its pods`],
    ),
  };
}

function wants(annotations: Annotations, mode: DelegationMode): boolean {
  const parsed = parsePlacement(annotations);
  return parsed.ok && isDelegationWanted(parsed.placement, mode);
}
