import { z } from "zod";
import { setAt, valueAt } from "../../api/json.ts";
import { GROUP_BY_ANNOTATION } from "../../api/keys.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { annotate } from "./annotate.ts";
import { type Division, EVENLY } from "./division.ts";
import { karmadaOverrides } from "./karmada-overrides.ts";
import { affinity, isKarmada, type Policy, policiesOf, resourceSelector } from "./karmada-policies.ts";
import { treatmentOf } from "./kinds.ts";
import type { ObjectOverride } from "./overrides.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const spreadConstraint = z.object({
  spreadByField: z.string().default("cluster"),
  spreadByLabel: z.string().optional(),
  maxGroups: z.number().optional(),
});
const replicaScheduling = z.object({
  replicaSchedulingType: z.enum(["Duplicated", "Divided"]).default("Divided"),
  replicaDivisionPreference: z.enum(["Aggregated", "Weighted"]).default("Weighted"),
  weightPreference: z
    .object({
      staticWeightList: z.array(z.object({ targetCluster: affinity, weight: z.number() })).default([]),
      dynamicWeight: z.string().optional(),
    })
    .default({ staticWeightList: [] }),
});
const propagationSchema = z.object({
  spec: z.looseObject({
    resourceSelectors: z.array(resourceSelector),
    priority: z.number().default(0),
    propagateDeps: z.boolean().default(false),
    placement: z
      .looseObject({
        clusterAffinity: affinity.optional(),
        clusterAffinities: z.array(affinity).default([]),
        spreadConstraints: z.array(spreadConstraint).default([]),
        replicaScheduling: replicaScheduling.optional(),
      })
      .default({ clusterAffinities: [], spreadConstraints: [] }),
    conflictResolution: z.string().default("Abort"),
    preserveResourcesOnDeletion: z.boolean().default(false),
  }),
});
type PropagationSpec = z.output<typeof propagationSchema>["spec"];

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

/** Converts the objects that Karmada's policies select. Others stay as they are. */
export function convertKarmada(objects: readonly WrittenObject[], report: ConversionReport): WrittenObject[] {
  const ours = objects.filter(isKarmada);
  const policies = policiesOf("PropagationPolicy", propagationSchema, ours);
  const overridesOf = karmadaOverrides(ours, report);
  const used = new Set<WrittenObject>();
  const converted = objects
    .filter((object) => !isKarmada(object))
    .flatMap((object) => {
      const policy = policyFor(object, policies);
      if (policy !== undefined) {
        used.add(policy.object);
        return convertSelected(object, policy, overridesOf(object, used), report) ?? [];
      }
      if (policies.length > 0) {
        report.steps.add(`${nameOf(object)}: no policy selects it, so it stays on the host as it is`);
      }
      return [object];
    });
  for (const object of ours) {
    if (object.kind === "Cluster") report.join(object, object.metadata.labels);
    else if (!/^(Cluster)?(Propagation|Override)Policy$/.test(object.kind)) report.noKind(object);
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
    .filter((policy) => policy.precision(object) > 0)
    .sort(
      (a, b) =>
        Number(a.isClusterWide) - Number(b.isClusterWide) ||
        b.spec.priority - a.spec.priority ||
        b.precision(object) - a.precision(object),
    );
  return best;
}

function convertSelected(
  object: WrittenObject,
  { source, spec }: Policy<PropagationSpec>,
  overrides: readonly ObjectOverride[],
  report: ConversionReport,
): WrittenObject | undefined {
  const gap = report.about(source);
  for (const [field, problem, instead] of WITHOUT_EQUAL) {
    const value = valueAt(spec, field.split("."));
    const isDefault =
      value === undefined || value === "default-scheduler" || (Array.isArray(value) && value.length === 0);
    if (!isDefault) gap(`spec.${field}`, problem, instead);
  }
  const { clusterAffinity, clusterAffinities, spreadConstraints } = spec.placement;
  const { treatment } = treatmentOf(object);
  if (spec.propagateDeps && treatment === "job") {
    gap(
      "spec.propagateDeps",
      `what the pods of ${nameOf(object)} name is not copied for a whole Job`,
      "create it in the members, or annotate it with legation.dev/whole",
    );
  }
  const choices = clusterAffinity === undefined ? clusterAffinities : [clusterAffinity];
  for (const key of choices.flatMap(({ fields }) => fields)) {
    report.steps.add(
      `Clusters: write the label ${key} on each, since ${source} selects by this field: kubectl label clusters.legation.dev NAME ${key}=VALUE`,
    );
  }
  const annotated = annotate(
    {
      object,
      source: `${source}, ${nameOf(object)}`,
      choices,
      division: divisionOf(spec, treatment === "job", gap),
      overrides,
      orphan: spec.preserveResourcesOnDeletion ? "spec.preserveResourcesOnDeletion" : undefined,
      adopts: spec.conflictResolution === "Overwrite",
    },
    report,
  );
  if (annotated === undefined || (treatment !== "pods" && treatment !== "job")) return annotated;
  const isGroup = spreadConstraints.some(
    ({ spreadByField, spreadByLabel, maxGroups }) =>
      spreadByLabel === undefined && spreadByField === "cluster" && maxGroups === 1,
  );
  if (isGroup && treatment === "pods") {
    return setAt(annotated, ["metadata", "annotations", GROUP_BY_ANNOTATION], "owner");
  }
  for (const [index, { spreadByField, spreadByLabel = spreadByField }] of spreadConstraints.entries()) {
    const key = spreadByLabel === "cluster" ? "legation.dev/cluster" : spreadByLabel;
    gap(
      `spec.placement.spreadConstraints[${index}]`,
      "a number of groups of clusters cannot be demanded",
      `write legation.dev/cluster-spread: [{topologyKey: ${key}}] to spread pods evenly`,
    );
  }
  return annotated;
}

/** Returns the division. Undefined: Karmada gives the whole number to every cluster. */
function divisionOf({ placement }: PropagationSpec, isJob: boolean, gap: Gap): Division | undefined {
  const field = "spec.placement.replicaScheduling";
  const scheduling = placement.replicaScheduling;
  if (scheduling === undefined || scheduling.replicaSchedulingType === "Duplicated") return undefined;
  const { staticWeightList, dynamicWeight } = scheduling.weightPreference;
  if (scheduling.replicaDivisionPreference === "Aggregated") {
    // A whole Job goes to one member anyway.
    if (!isJob) {
      gap(
        `${field}.replicaDivisionPreference`,
        "nothing keeps replicas in as few clusters as possible",
        "write legation.dev/group-by: owner for one cluster only",
      );
    }
    return { totals: {} };
  }
  if (dynamicWeight !== undefined) {
    if (isJob) {
      gap(
        `${field}.weightPreference.dynamicWeight`,
        "a Job is not divided by the room of members",
        "write scheduling-preferences for fixed shares; without them it goes to one member",
      );
    }
    return { totals: {} };
  }
  const weights = staticWeightList.flatMap(({ targetCluster: { names, labels }, weight }, index) => {
    if (names !== undefined && labels.length === 0) return names.map((name) => [name, { weight }]);
    gap(
      `${field}.weightPreference.staticWeightList[${index}]`,
      "a weight for clusters that are not named",
      "write each cluster's name in scheduling-preferences",
    );
    return [];
  });
  const clusters = weights.length === 0 ? EVENLY : Object.fromEntries(weights);
  return { totals: {}, preferences: { clusters } };
}
