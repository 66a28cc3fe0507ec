import { z } from "zod";
import { type LabelSelector, labelSelectorSchema, selectorOf } from "../../api/label-expressions.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import type { ChosenClusters } from "./placement.ts";

interface ResourceSelector {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
}

export interface KarmadaAffinity {
  readonly clusterNames?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  readonly fieldSelector?:
    | {
        readonly matchExpressions: readonly {
          readonly key: string;
          readonly operator: "In" | "NotIn";
          readonly values: readonly string[];
        }[];
      }
    | undefined;
}

export const resourceSelector: z.ZodType<ResourceSelector> = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  labelSelector: labelSelectorSchema.optional(),
});
const fieldRequirement = z.looseObject({
  key: z.string(),
  operator: z.enum(["In", "NotIn"]),
  values: z.array(z.string()).default([]),
});
export const affinity: z.ZodType<KarmadaAffinity> = z.looseObject({
  clusterNames: z.array(z.string()).optional(),
  exclude: z.array(z.string()).optional(),
  labelSelector: labelSelectorSchema.optional(),
  fieldSelector: z.looseObject({ matchExpressions: z.array(fieldRequirement).default([]) }).optional(),
});

export interface Policy<Spec> {
  readonly object: WrittenObject;
  readonly isClusterWide: boolean;
  readonly spec: Spec;
}

export function isKarmada({ apiVersion }: WrittenObject): boolean {
  return /(^|\.)karmada\.io$/.test(apiVersion.split("/")[0] ?? "");
}

/** Reads the policies of a kind, and of that for the whole cluster. */
export function policiesOf<Spec>(
  kind: string,
  schema: z.ZodType<{ readonly spec: Spec }>,
  objects: readonly WrittenObject[],
): Policy<Spec>[] {
  return objects
    .filter((object) => object.kind === kind || object.kind === `Cluster${kind}`)
    .map((object) => {
      return { object, isClusterWide: object.kind !== kind, spec: readFields(schema, object).spec };
    });
}

/** Returns how precisely a selector matches: 3 by name, 2 by labels, 1 by kind, 0 not at all. */
export function precisionOf(
  { apiVersion, kind, namespace, name, labelSelector }: ResourceSelector,
  object: WrittenObject,
  policy: Omit<Policy<unknown>, "spec">,
): 0 | 1 | 2 | 3 {
  const { metadata } = object;
  if (!isInScope(policy, object) || object.apiVersion !== apiVersion || object.kind !== kind) return 0;
  if (namespace !== undefined && namespace !== "" && metadata.namespace !== namespace) return 0;
  if (name !== undefined && name !== "") return metadata.name === name ? 3 : 0;
  if (labelSelector === undefined) return 1;
  return selectorMatches(selectorOf(labelSelector), metadata.labels ?? {}) ? 2 : 0;
}

/** Reports whether a policy looks at the object's namespace. */
export function isInScope(
  { isClusterWide, object: policy }: Omit<Policy<unknown>, "spec">,
  { metadata }: WrittenObject,
): boolean {
  return isClusterWide || policy.metadata.namespace === metadata.namespace;
}

export function nameOrder(a: WrittenObject, b: WrittenObject): number {
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}

/** Returns the choice that an affinity is. A field of a Karmada Cluster counts as a label of that name. */
export function choiceOf({ clusterNames, exclude, labelSelector, fieldSelector }: KarmadaAffinity): ChosenClusters {
  const fields = fieldSelector?.matchExpressions ?? [];
  const labels: LabelSelector | undefined =
    fields.length === 0
      ? labelSelector
      : {
          ...labelSelector,
          matchExpressions: [
            ...(labelSelector?.matchExpressions ?? []),
            ...fields.map(({ key, operator: is, values }) => ({ key, operator: is, values })),
          ],
        };
  return {
    ...(clusterNames === undefined || clusterNames.length === 0 ? {} : { names: clusterNames }),
    ...(exclude === undefined || exclude.length === 0 ? {} : { excluded: exclude }),
    ...(labels === undefined ? {} : { labels }),
  };
}
