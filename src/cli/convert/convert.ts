import { defined } from "../../api/defined.ts";
import { withoutKeys } from "../../api/json.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import { LAST_APPLIED_ANNOTATION } from "../../api/last-applied.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { convertAnnotations } from "./admiralty.ts";
import { convertKarmada } from "./karmada.ts";
import { convertKubeFed, isKubeFed } from "./kubefed.ts";
import { ConversionReport } from "./report.ts";

export interface Conversion {
  readonly objects: readonly WrittenObject[];
  readonly report: ConversionReport;
}

export function convert(input: readonly WrittenObject[]): Conversion {
  const report = new ConversionReport();
  const federated = convertKubeFed(input.filter(isKubeFed), report);
  const ordinary = convertKarmada(
    input.filter((object) => !isKubeFed(object)),
    report,
  );
  const converted = [...federated, ...ordinary]
    .flatMap((object) => convertAnnotations(object, report) ?? [])
    .map(asWritten);
  tellOptIn(converted, report);
  const isNamespace = ({ kind }: WrittenObject): boolean => kind === "Namespace";
  return { objects: [...converted.filter(isNamespace), ...converted.filter((object) => !isNamespace(object))], report };
}

/** Returns an object as its author wrote it, also when `kubectl get` printed it. */
function asWritten({ apiVersion, kind, metadata, status: _, ...rest }: WrittenObject): WrittenObject {
  const { name, generateName, namespace } = metadata;
  const labels = writtenKeys(metadata.labels);
  const annotations = writtenKeys(metadata.annotations);
  return { apiVersion, kind, metadata: defined({ name, generateName, namespace, labels, annotations }), ...rest };
}

// Marks of the other projects' controllers.
const MARK = /^(kubefed\.io\/managed|[a-z.]*karmada\.io\/.*)$/;

function writtenKeys(map: Readonly<Record<string, string>> | undefined): Record<string, string> | undefined {
  const kept = withoutKeys(map, (key) => MARK.test(key) || key === LAST_APPLIED_ANNOTATION);
  return Object.keys(kept).length === 0 ? undefined : kept;
}

// Kinds without a namespace. An object of any other kind that names none is in the context's.
const CLUSTER_SCOPED = /^(Namespace|Cluster.*|CustomResourceDefinition|PriorityClass|RuntimeClass|StorageClass)$/;

/** Tells of namespaces in which Legation would not read the annotations. */
function tellOptIn(objects: readonly WrittenObject[], report: ConversionReport): void {
  const isLabelled = ({ kind, metadata }: WrittenObject): boolean =>
    kind === "Namespace" && metadata.labels?.[DELEGATION_LABEL] !== undefined;
  const labelled = new Set(objects.filter(isLabelled).map(({ metadata }) => metadata.name));
  for (const object of objects) {
    const { namespace = "NAME" } = object.metadata;
    if (CLUSTER_SCOPED.test(object.kind) || labelled.has(namespace)) continue;
    if (!JSON.stringify(object).includes('"legation.dev/')) continue;
    const where = object.metadata.namespace === undefined ? "Namespace of the context" : `Namespace ${namespace}`;
    report.steps.add(`${where}: kubectl label namespace ${namespace} ${DELEGATION_LABEL}=annotated`);
  }
}
