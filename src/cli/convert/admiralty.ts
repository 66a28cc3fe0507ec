import { defined } from "../../api/defined.ts";
import { isForeignKey, readForeignAnnotation } from "../../api/foreign-annotations.ts";
import { isJsonObject, setAt, valueAt } from "../../api/json.ts";
import {
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  DELEGATION_LABEL,
  PREFERENCES_ANNOTATION,
} from "../../api/keys.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { templatePath } from "./kinds.ts";
import { selectorText } from "./placement.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const ADMIRALTY = "multicluster.admiralty.io/";
const NAMESPACE_LABEL = "multicluster-scheduler";

/** Converts Admiralty's and Federation v1's annotations and labels of an ordinary object. */
export function convertAnnotations(object: WrittenObject, report: ConversionReport): WrittenObject | undefined {
  const { apiVersion, kind, metadata } = object;
  if (apiVersion.startsWith(ADMIRALTY)) {
    if (kind !== "Target" && kind !== "ClusterTarget") report.noKind(object);
    else report.join(object, { [`${ADMIRALTY}cluster-target-name`]: `${metadata.name}` });
    return undefined;
  }
  const template = templatePath(object);
  const paths = [
    ["metadata"],
    ["spec", "jobTemplate", "metadata"],
    ...(template.length === 0 ? [] : [[...template, "metadata"]]),
  ];
  return withLabel(paths.reduce((changed, path) => translateAt(changed, path, report), object));
}

function translateAt(object: WrittenObject, path: readonly string[], report: ConversionReport): WrittenObject {
  const annotations = valueAt(object, [...path, "annotations"]);
  if (!isJsonObject(annotations)) return object;
  const written = Object.entries(annotations).map(([key, value]) => {
    if (!isForeignKey(key)) return { [key]: value };
    const field = `${[...path, "annotations"].join(".")}[${key}]`;
    return translate(key, String(value), report.about(nameOf(object), field));
  });
  return setAt(object, [...path, "annotations"], Object.assign({}, ...written));
}

function translate(key: string, text: string, gap: Gap): Readonly<Record<string, string>> {
  const read = readForeignAnnotation(key, text);
  if (typeof read === "string") {
    gap("", read, "it is left out of the output");
    return {};
  }
  const { delegate, clusters, selector, affinity, preferences } = read;
  return defined({
    [DELEGATE_ANNOTATION]: delegate ? "true" : undefined,
    [CLUSTERS_ANNOTATION]: clusters?.join(","),
    [CLUSTER_SELECTOR_ANNOTATION]:
      selector && selectorText({ matchExpressions: selector.filter((each) => "values" in each) }),
    [CLUSTER_AFFINITY_ANNOTATION]: affinity && JSON.stringify(affinity),
    [PREFERENCES_ANNOTATION]: preferences && text,
  });
}

function withLabel(object: WrittenObject): WrittenObject {
  const { [NAMESPACE_LABEL]: mark, ...labels } = object.metadata.labels ?? {};
  if (object.kind !== "Namespace" || mark !== "enabled") return object;
  return setAt(object, ["metadata", "labels"], { ...labels, [DELEGATION_LABEL]: "annotated" });
}
