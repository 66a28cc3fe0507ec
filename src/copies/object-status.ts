import type { AnyObject } from "../api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual } from "../api/json.ts";
import type { Stored } from "../api/kubernetes.ts";

export interface MemberCopy {
  readonly member: string;
  readonly copy?: Stored<AnyObject>;
  /** The copy is as the host's object is now. */
  readonly inStep: boolean;
  /** The member was declared lost, no probe is answered or another cluster answers: its copy is as it was last seen. */
  readonly isLost: boolean;
}

/**
 * Returns the status of an object from those of its copies: of one member as it is there, of several what all agree on, with
 * sums and conditions. Undefined while no copy has a status. Generations are the host's.
 */
export function statusFromCopies(
  object: Stored<AnyObject>,
  holders: readonly MemberCopy[],
  sum: readonly string[] = [],
): JsonObject | undefined {
  const known = holders
    .toSorted((a, b) => (a.member < b.member ? -1 : 1))
    .map((holder) => ({ ...holder, status: statusOf(holder.copy) }));
  const statuses = known.flatMap(({ status }) => (status === undefined ? [] : [status]));
  const [only] = statuses;
  if (only === undefined) return undefined;
  const views = known.map((holder) => viewOf(object, holder));
  if (holders.length === 1) return views[0]?.status;
  const fields = [...new Set(statuses.flatMap((one) => Object.keys(one)))];
  return Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      if (field === "observedGeneration") {
        const seen = views.map(({ status }) => numberOf(status?.observedGeneration) ?? 0);
        return [[field, Math.min(...seen)]];
      }
      if (field === "conditions") return [[field, conditionsFrom(object, views)]];
      const values = views.map(({ status }) => status?.[field]);
      if (sum.includes(field))
        return [[field, values.reduce<number>((total, value) => total + (numberOf(value) ?? 0), 0)]];
      return values.every((value) => jsonEqual(value, values[0])) ? [[field, values[0]]] : [];
    }),
  );
}

interface View {
  readonly member: string;
  readonly status: JsonObject | undefined;
}

/** Returns a copy's status with the host's generations in place of the copy's. */
function viewOf(object: Stored<AnyObject>, { member, copy, inStep }: MemberCopy): View {
  const status = statusOf(copy);
  if (status === undefined) return { member, status };
  const { generation: here = 0 } = object.metadata;
  const there = copy?.metadata.generation;
  // A lower number says "not yet" to kubectl rollout, kstatus and Argo CD.
  const observed = (value: unknown): number => (inStep && value === there ? here : Math.max(here - 1, 0));
  const own =
    numberOf(status.observedGeneration) === undefined
      ? {}
      : { observedGeneration: observed(status.observedGeneration) };
  const conditions = conditionsOf(status)?.map((condition) =>
    numberOf(condition.observedGeneration) === undefined
      ? condition
      : { ...condition, observedGeneration: observed(condition.observedGeneration) },
  );
  return { member, status: { ...status, ...own, ...(conditions === undefined ? {} : { conditions }) } };
}

/** Returns a status without generations, for a type whose every write raises them, since it has no status subresource. */
export function withoutGenerations({ observedGeneration: _, ...status }: JsonObject): JsonObject {
  const conditions = conditionsOf(status)?.map(({ observedGeneration: __, ...condition }) => condition);
  return conditions === undefined ? status : { ...status, conditions };
}

/** Merges conditions by type: True where all members say so, False where one does, else Unknown. */
function conditionsFrom(object: Stored<AnyObject>, views: readonly View[]): JsonObject[] {
  const types = [
    ...new Set(views.flatMap(({ status }) => (conditionsOf(status) ?? []).map(({ type }) => String(type)))),
  ];
  const before = conditionsOf(statusOf(object)) ?? [];
  return types.map((type) => {
    const found = views.map(({ member, status }) => ({
      member,
      condition: conditionsOf(status)?.find((one) => one.type === type),
    }));
    const states = found.map(({ condition }) => condition?.status);
    const status = states.includes("False") ? "False" : states.every((state) => state === "True") ? "True" : "Unknown";
    const reasons = new Set(found.map(({ condition }) => condition?.reason));
    const [reason] = reasons;
    const message = found
      .map(
        ({ member, condition }) =>
          `${member}: ${condition === undefined ? "no such condition yet" : wordsOf(condition)}`,
      )
      .join("; ");
    const old = before.find((one) => one.type === type);
    const times = found.flatMap(({ condition }) =>
      typeof condition?.lastTransitionTime === "string" ? [condition.lastTransitionTime] : [],
    );
    const latest = times.toSorted().at(-1);
    const changedAt = old?.status === status ? old.lastTransitionTime : latest;
    const numbered = found.flatMap(({ condition }) => numberOf(condition?.observedGeneration) ?? []);
    const isMissing = found.some(({ condition }) => condition === undefined);
    const seen = isMissing && numbered.length > 0 ? [0] : numbered;
    return {
      type,
      status,
      reason: reasons.size === 1 && typeof reason === "string" ? reason : "SeveralMembers",
      message,
      ...(changedAt === undefined ? {} : { lastTransitionTime: changedAt }),
      ...(seen.length === 0 ? {} : { observedGeneration: Math.min(...seen) }),
    };
  });
}

function wordsOf({ status, reason, message }: JsonObject): string {
  return [status, reason, message].filter((part) => typeof part === "string" && part !== "").join(", ");
}

/** Returns the status of an object. Undefined if it has none. */
export function statusOf(object: AnyObject | undefined): JsonObject | undefined {
  const status = object?.status;
  return isJsonObject(status) ? status : undefined;
}

/** Returns the conditions of a status. Undefined if it has none. */
export function conditionsOf(status: JsonObject | undefined): JsonObject[] | undefined {
  const conditions = status?.conditions;
  return Array.isArray(conditions) ? conditions.filter(isJsonObject) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
