import { z } from "zod";
import { defined } from "../../api/defined.ts";
import { isJsonObject, setAt } from "../../api/json.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import { labelSelectorSchema } from "../../api/label-expressions.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import { annotate, type Counts } from "./annotate.ts";
import { apiVersionOfKind } from "./kinds.ts";
import { type ChosenClusters, placementAnnotations } from "./placement.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const GROUPS = /(^|\.)(kubefed\.io|federation\.k8s\.io)$/;
const OPERATIONS = ["add", "replace", "remove"] as const;

const placementSchema = z.looseObject({
  clusters: z.array(z.looseObject({ name: z.string() })).optional(),
  // The first versions.
  clusterNames: z.array(z.string()).optional(),
  clusterSelector: labelSelectorSchema.optional(),
});
const federatedSchema = z.looseObject({
  spec: z.looseObject({
    template: z.record(z.string(), z.unknown()).default({}),
    placement: placementSchema.default({}),
    overrides: z
      .array(
        z.looseObject({
          clusterName: z.string(),
          clusterOverrides: z
            .array(
              z.looseObject({
                op: z.enum(OPERATIONS).default("replace"),
                path: z.string(),
                value: z.unknown().optional(),
              }),
            )
            .default([]),
        }),
      )
      .default([]),
    retainReplicas: z.boolean().default(false),
  }),
});
const share = z.object({
  weight: z.number().optional(),
  minReplicas: z.number().optional(),
  maxReplicas: z.number().optional(),
});
const preferenceSchema = z.looseObject({
  spec: z.looseObject({
    targetKind: z.string().optional(),
    totalReplicas: z.number().optional(),
    totalParallelism: z.number().optional(),
    totalCompletions: z.number().optional(),
    rebalance: z.boolean().default(false),
    intersectWithClusterSelector: z.boolean().default(false),
    clusters: z.record(z.string(), share).default({}),
  }),
});
const typeConfigSchema = z.looseObject({
  spec: z.looseObject({
    targetType: z.looseObject({ group: z.string().default(""), version: z.string(), kind: z.string() }),
    federatedType: z.looseObject({ kind: z.string() }),
  }),
});

type Federated = z.infer<typeof federatedSchema>["spec"];

/** Reports whether an object belongs to KubeFed, or to Federation v2 as it was called first. */
export function isKubeFed({ apiVersion }: WrittenObject): boolean {
  return GROUPS.test(apiVersion.split("/")[0] ?? "");
}

export function convertKubeFed(objects: readonly WrittenObject[], report: ConversionReport): WrittenObject[] {
  const ours = objects.filter(isKubeFed);
  const federated = ours.filter(
    ({ kind }) => kind.startsWith("Federated") && kind !== "FederatedTypeConfig" && kind !== "FederatedServiceStatus",
  );
  const preferences = ours.filter(({ kind }) => kind.endsWith("SchedulingPreference"));
  const types = new Map(ours.filter(({ kind }) => kind === "FederatedTypeConfig").map(targetOf));
  const namespaces = new Map(
    federated
      .filter(({ kind }) => kind === "FederatedNamespace")
      .map((object) => [object.metadata.namespace ?? object.metadata.name, object]),
  );
  const used = new Set<WrittenObject>();
  const converted = federated.flatMap((object) => {
    const preference = preferences.find((one) => isFor(one, object));
    if (preference !== undefined) used.add(preference);
    const namespace = object.kind === "FederatedNamespace" ? undefined : namespaces.get(object.metadata.namespace);
    return convertFederated(object, { preference, namespace, types }, report);
  });
  for (const preference of preferences.filter((one) => !used.has(one))) {
    report.about(nameOf(preference))(
      "spec",
      "the federated object that it divides is not in the input",
      "give both in -f",
    );
  }
  for (const object of ours)
    if (!federated.includes(object) && !preferences.includes(object)) tellAbout(object, report);
  return converted;
}

interface Beside {
  readonly preference: WrittenObject | undefined;
  readonly namespace: WrittenObject | undefined;
  readonly types: ReadonlyMap<string, { readonly apiVersion: string; readonly kind: string }>;
}

function convertFederated(
  federated: WrittenObject,
  { preference, namespace, types }: Beside,
  report: ConversionReport,
): WrittenObject[] {
  const source = nameOf(federated);
  const gap = report.about(source);
  const { spec } = readFields(federatedSchema, federated);
  if (federated.kind === "FederatedNamespace") return [namespaceOf(federated, spec, report)];
  const kind = federated.kind.replace(/^Federated/, "");
  const { apiVersion: written } = spec.template;
  const type = types.get(federated.kind) ?? {
    kind,
    apiVersion: typeof written === "string" ? written : apiVersionOfKind(kind),
  };
  const { apiVersion } = type;
  if (apiVersion === undefined) {
    gap("spec.template", `the API group of ${kind} is not known`, "give its FederatedTypeConfig in -f, too");
    return [];
  }
  const counts = countsOf(preference);
  // A ReplicaSchedulingPreference chooses clusters by itself, unless it intersects.
  const isChosenByPreference = preference !== undefined && counts.how === "divided" && !intersects(preference);
  const choice = isChosenByPreference ? {} : choiceOf(spec, gap);
  if (choice === undefined) return [];
  const limited = limitTo(choice, namespace, gap, report);
  if (limited === undefined) return [];
  if (spec.retainReplicas) {
    gap(
      "spec.retainReplicas",
      "each member's autoscaler set its own number of replicas",
      "let one HorizontalPodAutoscaler of the host scale the workload",
    );
  }
  const { metadata: templateMetadata, status: _, apiVersion: __, kind: ___, ...rest } = spec.template;
  const { labels, annotations } = isJsonObject(templateMetadata) ? templateMetadata : {};
  const object: WrittenObject = {
    apiVersion,
    kind: type.kind,
    metadata: {
      ...defined({ name: federated.metadata.name, namespace: federated.metadata.namespace }),
      ...(isStringMap(labels) ? { labels } : {}),
      ...(isStringMap(annotations) ? { annotations } : {}),
    },
    ...rest,
  };
  const overrides = spec.overrides.map(({ clusterName, clusterOverrides }, index) => ({
    source,
    clusters: [clusterName],
    operations: clusterOverrides.map((operation, number) => ({
      ...operation,
      field: `spec.overrides[${index}].clusterOverrides[${number}]`,
    })),
  }));
  const isOrphaned = federated.metadata.annotations?.["kubefed.io/orphan"] === "true";
  const orphan = isOrphaned ? "metadata.annotations[kubefed.io/orphan]" : undefined;
  const result = annotate({ object, source, choices: [limited], counts, overrides, orphan }, report);
  return result === undefined ? [] : [result];
}

/** Returns the chosen clusters. Undefined: the object was in none. */
function choiceOf({ placement }: Federated, gap: Gap): ChosenClusters | undefined {
  const { clusters, clusterNames, clusterSelector: labels } = placement;
  const names = clusters?.map(({ name }) => name) ?? clusterNames;
  // KubeFed does not look at the selector beside a list, an empty one included.
  if (names !== undefined && names.length > 0) return { names };
  if (names === undefined && labels !== undefined) return { labels };
  gap("spec.placement", "chooses no cluster, so the object was in none", "it is left out of the output");
  return undefined;
}

/** KubeFed has an object only in clusters that have its namespace. */
function limitTo(
  choice: ChosenClusters,
  namespace: WrittenObject | undefined,
  gap: Gap,
  report: ConversionReport,
): ChosenClusters | undefined {
  if (namespace === undefined) return choice;
  const { spec } = readFields(federatedSchema, namespace);
  const allowed = choiceOf(spec, report.about(nameOf(namespace)));
  if (allowed === undefined) return undefined;
  if (allowed.names === undefined) {
    const { matchLabels = {}, matchExpressions = [] } = allowed.labels ?? {};
    if (Object.keys(matchLabels).length + matchExpressions.length === 0) return choice;
    if (choice.labels === undefined) return { ...choice, labels: allowed.labels };
    const both = {
      matchLabels: { ...matchLabels, ...choice.labels.matchLabels },
      matchExpressions: [...matchExpressions, ...(choice.labels.matchExpressions ?? [])],
    };
    return { ...choice, labels: both };
  }
  const { names: allowedNames } = allowed;
  const names = choice.names?.filter((name) => allowedNames.includes(name)) ?? allowedNames;
  if (names.length > 0) return { ...choice, names };
  gap(
    "spec.placement",
    "chooses no cluster that has its namespace, so the object was in none",
    "it is left out of the output",
  );
  return undefined;
}

function namespaceOf({ metadata }: WrittenObject, spec: Federated, report: ConversionReport): WrittenObject {
  const name = metadata.namespace ?? metadata.name ?? "";
  const choice = choiceOf(spec, report.about(`FederatedNamespace ${name}`)) ?? {};
  const annotations = placementAnnotations([choice]);
  const namespace: WrittenObject = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { [DELEGATION_LABEL]: "annotated" } },
  };
  return Object.keys(annotations).length === 0 ? namespace : setAt(namespace, ["metadata", "annotations"], annotations);
}

function isFor(preference: WrittenObject, federated: WrittenObject): boolean {
  const { name, namespace } = federated.metadata;
  if (preference.metadata.name !== name || preference.metadata.namespace !== namespace) return false;
  const { targetKind = "FederatedJob" } = readFields(preferenceSchema, preference).spec;
  return federated.kind === targetKind;
}

function countsOf(preference: WrittenObject | undefined): Counts {
  if (preference === undefined) return { how: "each" };
  const { spec } = readFields(preferenceSchema, preference);
  const { totalReplicas: replicas, totalParallelism: parallelism, totalCompletions: completions } = spec;
  const clusters = Object.keys(spec.clusters).length === 0 ? { "*": { weight: 1 } } : spec.clusters;
  return {
    how: "divided",
    totals: defined({ replicas, parallelism, completions }),
    preferences: { ...(spec.rebalance ? { rebalance: true } : {}), clusters },
  };
}

function intersects(preference: WrittenObject): boolean {
  return readFields(preferenceSchema, preference).spec.intersectWithClusterSelector;
}

function targetOf(config: WrittenObject): readonly [string, { readonly apiVersion: string; readonly kind: string }] {
  const { targetType, federatedType } = readFields(typeConfigSchema, config).spec;
  const { group, version, kind } = targetType;
  return [federatedType.kind, { kind, apiVersion: group === "" ? version : `${group}/${version}` }];
}

function tellAbout(object: WrittenObject, report: ConversionReport): void {
  const { kind, metadata } = object;
  if (kind === "KubeFedCluster" || kind === "FederatedCluster") report.join(object, metadata.labels);
  else if (kind === "FederatedTypeConfig") {
    const { kind: target } = targetOf(object)[1];
    if (apiVersionOfKind(target) === undefined) report.step(`${nameOf(object)}: create a DelegatedType for ${target}`);
  } else report.noKind(object);
}

function isStringMap(value: unknown): value is Record<string, string> {
  return isJsonObject(value) && Object.values(value).every((one) => typeof one === "string");
}
