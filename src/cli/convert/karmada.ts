import { z } from "zod";
import { setAt, valueAt } from "../../api/json.ts";
import { GROUP_BY_ANNOTATION } from "../../api/keys.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { annotate, type Counts } from "./annotate.ts";
import { KarmadaOverrides } from "./karmada-overrides.ts";
import {
  affinity,
  choiceOf,
  isKarmada,
  nameOrder,
  type Policy,
  policiesOf,
  precisionOf,
  resourceSelector,
} from "./karmada-policies.ts";
import { treatmentOf } from "./kinds.ts";
import type { ObjectOverride } from "./patches.ts";
import type { ChosenClusters } from "./placement.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const propagationSchema = z.looseObject({
  spec: z.looseObject({
    resourceSelectors: z.array(resourceSelector),
    priority: z.number().default(0),
    propagateDeps: z.boolean().default(false),
    placement: z
      .looseObject({
        clusterAffinity: affinity.optional(),
        clusterAffinities: z.array(affinity).default([]),
        spreadConstraints: z
          .array(
            z.looseObject({
              spreadByField: z.string().optional(),
              spreadByLabel: z.string().optional(),
              maxGroups: z.number().optional(),
            }),
          )
          .default([]),
        replicaScheduling: z
          .looseObject({
            replicaSchedulingType: z.enum(["Duplicated", "Divided"]).default("Divided"),
            replicaDivisionPreference: z.enum(["Aggregated", "Weighted"]).default("Weighted"),
            weightPreference: z
              .looseObject({
                staticWeightList: z.array(z.looseObject({ targetCluster: affinity, weight: z.number() })).default([]),
                dynamicWeight: z.string().optional(),
              })
              .optional(),
          })
          .optional(),
      })
      .default({ clusterAffinities: [], spreadConstraints: [] }),
    conflictResolution: z.string().default("Abort"),
    preserveResourcesOnDeletion: z.boolean().default(false),
  }),
});
type PropagationSpec = z.output<typeof propagationSchema>["spec"];
type KarmadaPlacement = PropagationSpec["placement"];

const CONVERTED = ["PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy"];

/** Fields of a policy without an equal, and what to do instead. */
const WITHOUT_EQUAL: readonly (readonly [field: string, problem: string, instead: string])[] = [
  ["schedulerName", "Legation has one scheduler", "leave it out"],
  [
    "failover",
    "a pod is replaced when its member is lost, as on a lost node, and not when it is unhealthy",
    "write tolerationSeconds for node.kubernetes.io/unreachable, or legation.dev/failover: never",
  ],
  ["suspension", "nothing suspends the way to members", "create the object with scheduling gates, or suspended"],
  [
    "schedulePriority",
    "members' schedulers decide by the pods' priority",
    "write priorityClassName in the pod template",
  ],
  ["activationPreference", "a changed annotation counts at once, for pods that have no member yet", "leave it out"],
  [
    "placement.clusterTolerations",
    "taints of Clusters are tolerated by pods",
    "write the tolerations in the pod template",
  ],
  [
    "placement.workloadAffinity",
    "workloads do not look at each other's members",
    "write legation.dev/group-by: label:KEY on workloads whose pods belong together",
  ],
];

export function convertKarmada(objects: readonly WrittenObject[], report: ConversionReport): WrittenObject[] {
  const ours = objects.filter(isKarmada);
  const policies = policiesOf("PropagationPolicy", propagationSchema, ours);
  const overrides = new KarmadaOverrides(ours);
  const used = new Set<WrittenObject>();
  const converted = objects.flatMap((object) => {
    if (isKarmada(object)) return [];
    const policy = policyFor(object, policies);
    if (policy === undefined) {
      if (policies.length > 0) report.step(`${nameOf(object)}: no policy selects it, so it stays on the host as it is`);
      return [object];
    }
    used.add(policy.object);
    const result = convertSelected(object, policy, report, overrides.of(object, used, report));
    return result === undefined ? [] : [result];
  });
  for (const object of ours) {
    if (object.kind === "Cluster") report.join(object, object.metadata.labels);
    else if (!CONVERTED.includes(object.kind)) report.noKind(object);
    else if (!used.has(object)) {
      const gap = report.about(nameOf(object));
      gap("spec.resourceSelectors", "select no object of the input", "give the objects in -f, too");
    }
  }
  return converted;
}

/** Returns the policy that Karmada has an object follow. */
function policyFor(
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

function convertSelected(
  object: WrittenObject,
  policy: Policy<PropagationSpec>,
  report: ConversionReport,
  overrides: readonly ObjectOverride[],
): WrittenObject | undefined {
  const source = nameOf(policy.object);
  const gap = report.about(source);
  const { spec } = policy;
  const { placement } = spec;
  for (const [field, problem, instead] of WITHOUT_EQUAL) {
    const value = valueAt(spec, field.split("."));
    const isDefault =
      value === undefined || value === "default-scheduler" || (Array.isArray(value) && value.length === 0);
    if (!isDefault) gap(`spec.${field}`, problem, instead);
  }
  const { treatment } = treatmentOf(object);
  const isJob = treatment === "job" || treatment === "cronJob";
  if (spec.propagateDeps && isJob) {
    gap(
      "spec.propagateDeps",
      `what the pods of ${nameOf(object)} name is not copied for a whole Job`,
      "create it in the members, or annotate it with legation.dev/whole",
    );
  }
  const choices = choicesOf(placement);
  for (const key of fieldKeys(placement)) {
    report.step(
      `Clusters: write the label ${key} on each, since ${source} selects by this field: kubectl label clusters.legation.dev NAME ${key}=VALUE`,
    );
  }
  const counts = countsOf(placement, isJob, gap);
  const annotated = annotate(
    {
      object,
      source: `${source}, ${nameOf(object)}`,
      choices,
      counts,
      overrides,
      orphan: spec.preserveResourcesOnDeletion ? "spec.preserveResourcesOnDeletion" : undefined,
      adopt: spec.conflictResolution === "Overwrite" ? "spec.conflictResolution" : undefined,
    },
    report,
  );
  if (annotated !== undefined && treatment === "pods" && isKeptTogether(placement)) {
    return setAt(annotated, ["metadata", "annotations", GROUP_BY_ANNOTATION], "owner");
  }
  if (treatment === "pods" || isJob) tellSpread(placement, gap);
  return annotated;
}

function choicesOf({ clusterAffinity, clusterAffinities }: KarmadaPlacement): ChosenClusters[] {
  return clusterAffinity === undefined ? clusterAffinities.map(choiceOf) : [choiceOf(clusterAffinity)];
}

function fieldKeys({ clusterAffinity, clusterAffinities }: KarmadaPlacement): Set<string> {
  const affinities = clusterAffinity === undefined ? clusterAffinities : [clusterAffinity];
  return new Set(
    affinities.flatMap(({ fieldSelector }) => fieldSelector?.matchExpressions.map(({ key }) => key) ?? []),
  );
}

/** Without replicaScheduling Karmada gives the whole number to every cluster. */
function countsOf({ replicaScheduling }: KarmadaPlacement, isJob: boolean, gap: Gap): Counts {
  if (replicaScheduling === undefined || replicaScheduling.replicaSchedulingType === "Duplicated")
    return { how: "each" };
  const field = "spec.placement.replicaScheduling";
  const { replicaDivisionPreference, weightPreference } = replicaScheduling;
  if (replicaDivisionPreference === "Aggregated") {
    // A whole Job goes to one member anyway.
    if (isJob) return { how: "divided" };
    gap(
      `${field}.replicaDivisionPreference`,
      "nothing keeps replicas in as few clusters as possible",
      "write legation.dev/group-by: owner for one cluster only",
    );
    return { how: "divided" };
  }
  if (weightPreference?.dynamicWeight !== undefined) {
    if (!isJob) return { how: "divided" };
    const instead = "write scheduling-preferences for fixed shares; without them it goes to one member";
    gap(`${field}.weightPreference.dynamicWeight`, "a Job is not divided by the room of members", instead);
    return { how: "divided" };
  }
  const weights = weightPreference?.staticWeightList ?? [];
  const clusters: Record<string, { weight: number }> = {};
  for (const [index, { targetCluster, weight }] of weights.entries()) {
    const { names, excluded, labels } = choiceOf(targetCluster);
    if (names === undefined || labels !== undefined || excluded !== undefined) {
      gap(
        `${field}.weightPreference.staticWeightList[${index}]`,
        "a weight for clusters that are not named",
        "write each cluster's name in scheduling-preferences",
      );
      continue;
    }
    for (const name of names) clusters[name] = { weight };
  }
  return {
    how: "divided",
    preferences: { clusters: Object.keys(clusters).length === 0 ? { "*": { weight: 1 } } : clusters },
  };
}

/** Reports whether the policy allows one cluster at most: the pods of the workload then form a group. */
function isKeptTogether({ spreadConstraints }: KarmadaPlacement): boolean {
  return spreadConstraints.some(
    ({ spreadByField = "cluster", spreadByLabel, maxGroups }) =>
      spreadByLabel === undefined && spreadByField === "cluster" && maxGroups === 1,
  );
}

function tellSpread({ spreadConstraints }: KarmadaPlacement, gap: Gap): void {
  for (const [index, { spreadByLabel, spreadByField = "cluster" }] of spreadConstraints.entries()) {
    const key = spreadByLabel ?? (spreadByField === "cluster" ? "legation.dev/cluster" : spreadByField);
    gap(
      `spec.placement.spreadConstraints[${index}]`,
      "a number of groups of clusters cannot be demanded",
      `write legation.dev/cluster-spread: [{topologyKey: ${key}}] to spread pods evenly`,
    );
  }
}
