import { z } from "zod";
import { amounts, textsOf } from "../../api/quantity.ts";
import { dependencyKey, NAMESPACED_KINDS } from "../../pods/dependencies.ts";
import { Failure } from "../failure.ts";
import { problemsOf, type WrittenObject } from "./documents.ts";
import type { HostRules } from "./host-admission.ts";
import type { LimitRangeRule, LimitRule, PriorityClassRule, QuotaRule, RuntimeClassRule } from "./rules.ts";

const metadata = z.looseObject({ name: z.string(), namespace: z.string().exactOptional() });
const scopeTerm = z.looseObject({
  scopeName: z.string(),
  operator: z.string(),
  values: z.array(z.string()).exactOptional(),
});
const quota: z.ZodType<QuotaRule> = z.looseObject({
  metadata,
  spec: z
    .looseObject({
      hard: amounts.exactOptional(),
      scopes: z.array(z.string()).exactOptional(),
      scopeSelector: z.looseObject({ matchExpressions: z.array(scopeTerm).exactOptional() }).exactOptional(),
    })
    .exactOptional(),
  status: z.looseObject({ used: amounts.exactOptional() }).exactOptional(),
});
const limit = z
  .looseObject({
    type: z.string(),
    min: amounts.exactOptional(),
    max: amounts.exactOptional(),
    default: amounts.exactOptional(),
    defaultRequest: amounts.exactOptional(),
    maxLimitRequestRatio: amounts.exactOptional(),
  })
  .transform(defaulted);
const limitRange: z.ZodType<LimitRangeRule> = z.looseObject({
  metadata,
  spec: z.looseObject({ limits: z.array(limit).exactOptional() }).exactOptional(),
});
const priorityClass: z.ZodType<PriorityClassRule> = z.looseObject({
  metadata,
  globalDefault: z.boolean().exactOptional(),
});
const toleration = z.looseObject({
  key: z.string().exactOptional(),
  operator: z.string().exactOptional(),
  value: z.string().exactOptional(),
  effect: z.string().exactOptional(),
});
const runtimeClass: z.ZodType<RuntimeClassRule> = z.looseObject({
  metadata,
  overhead: z.looseObject({ podFixed: amounts.transform(textsOf).exactOptional() }).exactOptional(),
  scheduling: z
    .looseObject({
      nodeSelector: z.record(z.string(), z.string()).exactOptional(),
      tolerations: z.array(toleration).exactOptional(),
    })
    .exactOptional(),
});

/** As the API server stores it (SetDefaults_LimitRangeItem in pkg/apis/core/v1): those of the host have passed that. */
function defaulted(item: LimitRule): LimitRule {
  if (item.type !== "Container") return item;
  const limits = { ...item.max, ...item.default };
  return { ...item, default: limits, defaultRequest: { ...item.min, ...limits, ...item.defaultRequest } };
}

/** What pods are let in by when the manifest has been applied: what it writes is there, wherever in it that stands. */
export function withWrittenRules(
  rules: HostRules | undefined,
  objects: readonly WrittenObject[],
  current: string,
): HostRules | undefined {
  if (rules === undefined) return undefined;
  const missing = new Set(rules.missing);
  for (const object of objects) {
    const kind = NAMESPACED_KINDS.find((known) => known === object.kind && object.apiVersion === "v1");
    const { name = "", namespace = current } = object.metadata;
    if (kind !== undefined) missing.delete(dependencyKey({ kind, namespace, name }));
  }
  const { priorityClasses, runtimeClasses } = rules;
  const scheduling = "scheduling.k8s.io/v1";
  return {
    ...rules,
    missing,
    quotas: replaced(rules.quotas, written(objects, "v1", "ResourceQuota", quota, current)),
    limitRanges: replaced(rules.limitRanges, written(objects, "v1", "LimitRange", limitRange, current)),
    priorityClasses:
      priorityClasses && replaced(priorityClasses, written(objects, scheduling, "PriorityClass", priorityClass)),
    runtimeClasses:
      runtimeClasses && replaced(runtimeClasses, written(objects, "node.k8s.io/v1", "RuntimeClass", runtimeClass)),
  };
}

interface Named {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly status?: unknown;
}

function written<T extends Named>(
  objects: readonly WrittenObject[],
  apiVersion: string,
  kind: string,
  schema: z.ZodType<T>,
  current?: string,
): T[] {
  return objects.flatMap((object) => {
    if (object.apiVersion !== apiVersion || object.kind !== kind || object.metadata.name === undefined) return [];
    const namespace = object.metadata.namespace ?? current;
    const parsed = schema.safeParse({
      ...object,
      metadata: { ...object.metadata, ...(namespace === undefined ? {} : { namespace }) },
    });
    if (parsed.success) return [parsed.data];
    throw new Failure("failure", { object: `${kind} ${object.metadata.name}`, problem: problemsOf(parsed.error) });
  });
}

/** What the host has counted so far stays counted. */
function replaced<T extends Named>(stored: readonly T[], news: readonly T[]): readonly T[] {
  const key = ({ metadata: { namespace = "", name } }: Named): string => `${namespace}/${name}`;
  const all = new Map(stored.map((one) => [key(one), one]));
  for (const one of news) {
    const before = all.get(key(one));
    all.set(key(one), before?.status === undefined ? one : { ...one, status: before.status });
  }
  return [...all.values()];
}
