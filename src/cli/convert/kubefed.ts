import { z } from "zod";
import { defined } from "../../api/defined.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import { type LabelSelector, labelSelectorSchema } from "../../api/label-expressions.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import { annotate } from "./annotate.ts";
import { type ChosenClusters, chosenClusters, placementAnnotations } from "./clusters.ts";
import { type Division, EVENLY } from "./division.ts";
import { apiVersionOfKind } from "./kinds.ts";
import { type ConversionReport, LEFT_OUT, nameOf } from "./report.ts";

const stringMap = z.record(z.string(), z.string()).exactOptional();
const operation = z.object({
  op: z.enum(["add", "replace", "remove"]).default("replace"),
  path: z.string(),
  value: z.unknown().optional(),
});
const federatedSchema = z.object({
  spec: z.object({
    template: z
      .looseObject({
        apiVersion: z.string().exactOptional(),
        metadata: z.object({ labels: stringMap, annotations: stringMap }).exactOptional(),
      })
      .default({}),
    placement: z
      .object({
        clusters: z.array(z.object({ name: z.string() })).optional(),
        clusterSelector: labelSelectorSchema.optional(),
      })
      .default({}),
    overrides: z
      .array(z.object({ clusterName: z.string(), clusterOverrides: z.array(operation).default([]) }))
      .default([]),
    retainReplicas: z.boolean().default(false),
  }),
});
const count = z.number().optional();
const preferenceSchema = z.object({
  spec: z.object({
    // A JobSchedulingPreference has none.
    targetKind: z.string().default("FederatedJob"),
    totalReplicas: count,
    totalParallelism: count,
    totalCompletions: count,
    rebalance: z.boolean().default(false),
    intersectWithClusterSelector: z.boolean().default(false),
    clusters: z.record(z.string(), z.object({ weight: count, minReplicas: count, maxReplicas: count })).default({}),
  }),
});
const typeConfigSchema = z.object({
  spec: z.object({
    targetType: z.object({ group: z.string().default(""), version: z.string(), kind: z.string() }),
    federatedType: z.object({ kind: z.string() }),
  }),
});

type Federated = z.output<typeof federatedSchema>["spec"];
type Preference = z.output<typeof preferenceSchema>["spec"];

interface OrdinaryType {
  readonly apiVersion: string;
  readonly kind: string;
}

export function isKubeFed({ apiVersion }: WrittenObject): boolean {
  return /(^|\.)kubefed\.io$/.test(apiVersion.split("/")[0] ?? "");
}

/** KubeFed's objects of an input. */
interface KubeFedObjects {
  /** Types of ordinary objects, by kind of the federated ones. */
  readonly types: ReadonlyMap<string, OrdinaryType>;
  readonly federated: ReadonlyMap<string, WrittenObject>;
  /** SchedulingPreferences, by the names of the federated objects that they divide. */
  readonly preferences: ReadonlyMap<string, { readonly source: string; readonly spec: Preference }>;
}

export function convertKubeFed(objects: readonly WrittenObject[], report: ConversionReport): WrittenObject[] {
  const types = new Map<string, OrdinaryType>();
  const federated = new Map<string, WrittenObject>();
  const preferences = new Map<string, { readonly source: string; readonly spec: Preference }>();
  for (const object of objects) {
    const { kind, metadata } = object;
    if (kind === "FederatedTypeConfig") types.set(...targetOf(object));
    else if (/^Federated(?!ServiceStatus)/.test(kind)) federated.set(nameOf(object), object);
    else if (kind.endsWith("SchedulingPreference")) {
      const { spec } = readFields(preferenceSchema, object);
      preferences.set(nameOf({ ...object, kind: spec.targetKind }), { source: nameOf(object), spec });
    } else if (kind === "KubeFedCluster") report.join(object, metadata.labels);
    else report.noKind(object);
  }
  for (const [target, { source }] of preferences) {
    if (federated.has(target)) continue;
    report.about(source)("spec", "the federated object that it divides is not in the input", "give both in -f");
  }
  const all = { types, federated, preferences };
  return [...federated.values()].flatMap((object) => convertFederated(object, all, report) ?? []);
}

function convertFederated(
  object: WrittenObject,
  { types, federated, preferences }: KubeFedObjects,
  report: ConversionReport,
): WrittenObject | undefined {
  const source = nameOf(object);
  const gap = report.about(source);
  const { kind, metadata } = object;
  const { namespace } = metadata;
  const { spec } = readFields(federatedSchema, object);
  const preference = preferences.get(source)?.spec;
  // KubeFed has an object only in clusters that have its namespace.
  const around =
    kind === "FederatedNamespace" ? undefined : federated.get(`FederatedNamespace ${namespace}/${namespace}`);
  const choice = choiceOf([
    // A ReplicaSchedulingPreference chooses clusters by itself, unless it intersects.
    ...(preference?.intersectWithClusterSelector === false ? [] : [spec]),
    ...(around === undefined ? [] : [readFields(federatedSchema, around).spec]),
  ]);
  if (choice === undefined) {
    const problem = around === undefined ? "it chooses no cluster" : "it and its namespace choose no cluster in common";
    gap("spec.placement", `${problem}, so the object was in none`, LEFT_OUT);
    return undefined;
  }
  if (kind === "FederatedNamespace") return namespaceOf(object, choice);
  const own = kind.replace(/^Federated/, "");
  const { apiVersion = apiVersionOfKind(own) } = spec.template;
  const type = types.get(kind) ?? (apiVersion === undefined ? undefined : { apiVersion, kind: own });
  if (type === undefined) {
    gap("spec.template", `the API group of ${own} is not known`, "give its FederatedTypeConfig in -f, too");
    return undefined;
  }
  if (spec.retainReplicas) {
    gap(
      "spec.retainReplicas",
      "each member's autoscaler set its own number of replicas",
      "let one HorizontalPodAutoscaler of the host scale the workload",
    );
  }
  const isOrphaned = metadata.annotations?.["kubefed.io/orphan"] === "true";
  return annotate(
    {
      object: {
        ...spec.template,
        ...type,
        metadata: { ...spec.template.metadata, ...defined({ name: metadata.name, namespace }) },
      },
      source,
      choices: [choice],
      division: preference && divisionOf(preference),
      overrides: spec.overrides.map(({ clusterName, clusterOverrides }, index) => ({
        source,
        clusters: [clusterName],
        operations: clusterOverrides.map((operation, number) => ({
          ...operation,
          field: `spec.overrides[${index}].clusterOverrides[${number}]`,
        })),
      })),
      orphan: isOrphaned ? "metadata.annotations[kubefed.io/orphan]" : undefined,
      adopts: false,
    },
    report,
  );
}

/** Returns the clusters that all placements choose. Undefined: there is none. */
function choiceOf(chosen: readonly Pick<Federated, "placement">[]): ChosenClusters | undefined {
  let names: string[] | undefined;
  const selectors: LabelSelector[] = [];
  for (const { placement } of chosen) {
    const { clusters, clusterSelector } = placement;
    const listed = clusters?.map(({ name }) => name);
    // KubeFed does not look at the selector beside a list, an empty one included.
    if (listed !== undefined) names = names?.filter((name) => listed.includes(name)) ?? listed;
    else if (clusterSelector !== undefined) selectors.push(clusterSelector);
    else return undefined;
  }
  return names?.length === 0 ? undefined : chosenClusters(names, [], selectors);
}

function namespaceOf({ metadata: { name } }: WrittenObject, choice: ChosenClusters): WrittenObject {
  const labels = { [DELEGATION_LABEL]: "annotated" };
  const annotations = placementAnnotations([choice]);
  return { apiVersion: "v1", kind: "Namespace", metadata: { ...defined({ name }), labels, annotations } };
}

function divisionOf(preference: Preference): Division {
  const { totalReplicas: replicas, totalParallelism: parallelism, totalCompletions: completions } = preference;
  const { rebalance } = preference;
  const clusters = Object.keys(preference.clusters).length === 0 ? EVENLY : preference.clusters;
  return {
    totals: defined({ replicas, parallelism, completions }),
    preferences: { ...(rebalance ? { rebalance } : {}), clusters },
  };
}

function targetOf(config: WrittenObject): [string, OrdinaryType] {
  const { targetType, federatedType } = readFields(typeConfigSchema, config).spec;
  const { group, version, kind } = targetType;
  return [federatedType.kind, { kind, apiVersion: group === "" ? version : `${group}/${version}` }];
}
