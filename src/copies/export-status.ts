import { isShown } from "../api/conditions.ts";
import { valueAt } from "../api/json.ts";
import {
  type ExportCondition,
  type ObjectMeta,
  type ServiceExport,
  type Stored,
  timestamp,
} from "../api/kubernetes.ts";

/** The status of a member's ServiceExport. */
export interface ExportReport {
  readonly member: string;
  readonly conditions: readonly ExportCondition[];
}

export type HostCondition = Required<ExportCondition> & { readonly lastTransitionTime: string };

// Statuses from worst to best, for the types of KEP-1645. A member cannot add types.
const BY_URGENCY: Readonly<Record<string, readonly string[]>> = {
  Valid: ["False", "Unknown", "True"],
  Ready: ["False", "Unknown", "True"],
  Conflict: ["True", "Unknown", "False"],
};
// metav1.Condition's pattern.
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,250}[A-Za-z0-9_])?$/;
const FALLBACK_REASON = "Reported";
// The API takes 32,768 bytes; a member may write any length.
const MESSAGE_LENGTH = 500;
const MEMBERS_NAMED = 10;

/** Returns the most telling status per condition type, with the names of the members that report it, ordered by type. */
export function hostConditions(
  exported: Stored<ServiceExport>,
  reports: readonly ExportReport[],
): readonly HostCondition[] {
  const byName = [...reports].sort((a, b) => (a.member < b.member ? -1 : 1));
  return Object.keys(BY_URGENCY)
    .sort()
    .flatMap((type) => merged(type, byName, exported) ?? []);
}

function merged(
  type: string,
  reports: readonly ExportReport[],
  { metadata, status }: Stored<ServiceExport>,
): HostCondition | undefined {
  const all = reports.flatMap(({ member, conditions }) => {
    const condition = conditions.find((one) => one.type === type);
    return condition === undefined ? [] : [{ member, condition }];
  });
  const worst = BY_URGENCY[type]?.find((urgent) => all.some(({ condition }) => condition.status === urgent));
  if (worst === undefined) return undefined;
  const telling = all.filter(({ condition }) => condition.status === worst);
  const reason = telling.map(({ condition }) => condition.reason ?? "").find((one) => REASON.test(one));
  const named = telling.slice(0, MEMBERS_NAMED).map(({ member, condition }) => {
    const text = [condition.message, condition.reason].find((one) => one !== undefined && one !== "");
    return `${member}: ${(text ?? type).slice(0, MESSAGE_LENGTH)}`;
  });
  const more = telling.length - named.length;
  const shown = status?.conditions?.find((one) => one.type === type);
  const times = telling.map(({ condition }) => wholeSeconds(condition.lastTransitionTime)).filter(isTime);
  const since = [...times].sort()[0] ?? wholeSeconds(metadata.creationTimestamp) ?? "1970-01-01T00:00:00Z";
  return {
    type,
    status: worst,
    reason: reason ?? FALLBACK_REASON,
    message: [...named, ...(more === 0 ? [] : [`and ${more} more`])].join("; "),
    // Equal reports of several members are joined.
    lastTransitionTime: shown?.status === worst && isTime(shown.lastTransitionTime) ? shown.lastTransitionTime : since,
  };
}

/** A condition to change on the host. Undefined `condition` removes a member's. */
export interface Difference {
  readonly type: string;
  readonly condition?: HostCondition;
}

/** Returns the conditions to change on the host. Those of other managers stay when no member reports any. */
export function differences(
  { metadata, status }: Stored<ServiceExport>,
  wanted: readonly HostCondition[],
): Difference[] {
  return Object.keys(BY_URGENCY).flatMap((type): Difference[] => {
    const shown = (status?.conditions ?? []).find((one) => one.type === type);
    const condition = wanted.find((one) => one.type === type);
    if (condition !== undefined) return isShown(condition, status?.conditions) ? [] : [{ type, condition }];
    return shown !== undefined && isOwn(metadata, type) ? [{ type }] : [];
  });
}

/** Returns the field manager of one type's condition. Each type has its own: a conflict holds back no other condition. */
export function conditionManager(type: string): string {
  return `legation-${type.toLowerCase()}`;
}

/** Reports whether Legation wrote the host's condition of the type. */
function isOwn({ managedFields = [] }: ObjectMeta, type: string): boolean {
  // The path of a list's item in FieldsV1 (structured-merge-diff/fieldpath/serialize-pe.go).
  const path = ["f:status", "f:conditions", `k:${JSON.stringify({ type })}`];
  return managedFields.some(
    ({ manager, fieldsV1 }) => manager === conditionManager(type) && valueAt(fieldsV1, path) !== undefined,
  );
}

function isTime(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && !Number.isNaN(Date.parse(text));
}

function wholeSeconds(text: string | null | undefined): string | undefined {
  return isTime(text) ? timestamp(Date.parse(text)) : undefined;
}
