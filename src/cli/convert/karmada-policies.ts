import type { z } from "zod";
import { type LabelSelector, selectorOf } from "../../api/label-expressions.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import {
  type KarmadaAffinity,
  type OverrideSpec,
  overrideSchema,
  type PropagationSpec,
  propagationSchema,
} from "./karmada-types.ts";
import type { ClusterChoice } from "./placement.ts";

/** A policy of Karmada with its read fields. */
export interface Policy<Spec> {
  readonly object: WrittenObject;
  readonly isClusterWide: boolean;
  readonly spec: Spec;
}

/** Reports whether an object belongs to Karmada. */
export function isKarmada({ apiVersion }: WrittenObject): boolean {
  return /(^|\.)karmada\.io$/.test(apiVersion.split("/")[0] ?? "");
}

/** Reads the propagation policies. */
export function propagationPolicies(objects: readonly WrittenObject[]): Policy<PropagationSpec>[] {
  return policiesOf("PropagationPolicy", propagationSchema, objects);
}

/** Reads the override policies in the order in which Karmada applies them: cluster-wide ones first, then by name. */
export function overridePolicies(objects: readonly WrittenObject[]): Policy<OverrideSpec>[] {
  return policiesOf("OverridePolicy", overrideSchema, objects).sort(
    (a, b) => Number(b.isClusterWide) - Number(a.isClusterWide) || nameOrder(a.object, b.object),
  );
}

/** Reads the policies of a kind, and of that for the whole cluster. */
function policiesOf<Spec>(
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

/** Returns the policy that Karmada has an object follow. */
export function policyFor(
  object: WrittenObject,
  policies: readonly Policy<PropagationSpec>[],
): Policy<PropagationSpec> | undefined {
  const [best] = policies
    .flatMap((policy) => {
      const precision = Math.max(
        0,
        ...policy.spec.resourceSelectors.map((selector) => precisionOf(selector, object, policy)),
      );
      return precision === 0 ? [] : [{ policy, precision }];
    })
    .sort(
      (a, b) =>
        Number(a.policy.isClusterWide) - Number(b.policy.isClusterWide) ||
        b.policy.spec.priority - a.policy.spec.priority ||
        b.precision - a.precision ||
        nameOrder(a.policy.object, b.policy.object),
    );
  return best?.policy;
}

/** Reports whether an override policy applies to an object. */
export function applies(
  { spec: { resourceSelectors }, ...policy }: Policy<OverrideSpec>,
  object: WrittenObject,
): boolean {
  if (!isInScope(policy, object)) return false;
  return resourceSelectors?.some((selector) => precisionOf(selector, object, policy) > 0) ?? true;
}

/** Returns how precisely a selector matches: 3 by name, 2 by labels, 1 by kind, 0 not at all. */
function precisionOf(
  { apiVersion, kind, namespace, name, labelSelector }: PropagationSpec["resourceSelectors"][number],
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

function isInScope(
  { isClusterWide, object: policy }: Omit<Policy<unknown>, "spec">,
  { metadata }: WrittenObject,
): boolean {
  return isClusterWide || policy.metadata.namespace === metadata.namespace;
}

function nameOrder(a: WrittenObject, b: WrittenObject): number {
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}

/** Returns the choice that an affinity is. A field of a Karmada Cluster counts as a label of that name. */
export function choiceOf({ clusterNames, exclude, labelSelector, fieldSelector }: KarmadaAffinity): ClusterChoice {
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
