import { z } from "zod";
import { labelSelectorSchema, selectorOf } from "../../api/label-expressions.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import { type ChosenClusters, chosenClusters } from "./clusters.ts";
import { nameOf } from "./report.ts";

/** Returns how precisely a policy selects an object: 3 by name, 2 by labels, 1 by kind, 0 not at all. */
type Precision = (object: WrittenObject) => number;

export const resourceSelector: z.ZodType<Precision> = z
  .object({
    apiVersion: z.string(),
    kind: z.string(),
    namespace: z.string().default(""),
    name: z.string().default(""),
    labelSelector: labelSelectorSchema.optional(),
  })
  .transform(
    ({ apiVersion, kind, namespace, name, labelSelector }): Precision =>
      (object) => {
        const { metadata } = object;
        if (object.apiVersion !== apiVersion || object.kind !== kind) return 0;
        if (namespace !== "" && metadata.namespace !== namespace) return 0;
        if (name !== "") return metadata.name === name ? 3 : 0;
        if (labelSelector === undefined) return 1;
        return selectorMatches(selectorOf(labelSelector), metadata.labels ?? {}) ? 2 : 0;
      },
  );

export interface KarmadaAffinity extends ChosenClusters {
  /** Fields of Karmada's Clusters, which are among `labels` by the same names. */
  readonly fields: readonly string[];
}

const fieldRequirement = z.object({
  key: z.string(),
  operator: z.enum(["In", "NotIn"]),
  values: z.array(z.string()).default([]),
});
export const affinity: z.ZodType<KarmadaAffinity> = z
  .object({
    clusterNames: z.array(z.string()).default([]),
    exclude: z.array(z.string()).default([]),
    labelSelector: labelSelectorSchema.default({}),
    fieldSelector: z
      .object({ matchExpressions: z.array(fieldRequirement).default([]) })
      .default({ matchExpressions: [] }),
  })
  .transform(({ clusterNames, exclude, labelSelector, fieldSelector }) => ({
    ...chosenClusters(clusterNames.length === 0 ? undefined : clusterNames, exclude, [labelSelector, fieldSelector]),
    fields: fieldSelector.matchExpressions.map(({ key }) => key),
  }));

export interface Policy<Spec> {
  readonly object: WrittenObject;
  readonly source: string;
  readonly isClusterWide: boolean;
  readonly spec: Spec;
  readonly precision: Precision;
}

export function isKarmada({ apiVersion }: WrittenObject): boolean {
  return /(^|\.)karmada\.io$/.test(apiVersion.split("/")[0] ?? "");
}

/** Reads the policies of a kind, and of that for the whole cluster, in the order of their names. Without selectors they are for all objects. */
export function policiesOf<Spec extends { readonly resourceSelectors?: readonly Precision[] | undefined }>(
  kind: string,
  schema: z.ZodType<{ readonly spec: Spec }>,
  objects: readonly WrittenObject[],
): Policy<Spec>[] {
  return objects
    .filter((object) => object.kind === kind || object.kind === `Cluster${kind}`)
    .sort((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1))
    .map((object) => {
      const { spec } = readFields(schema, object);
      const isClusterWide = object.kind !== kind;
      const precision = (selected: WrittenObject): number => {
        if (!isClusterWide && selected.metadata.namespace !== object.metadata.namespace) return 0;
        return Math.max(0, ...(spec.resourceSelectors?.map((precisionOf) => precisionOf(selected)) ?? [1]));
      };
      return { object, source: nameOf(object), isClusterWide, spec, precision };
    });
}
