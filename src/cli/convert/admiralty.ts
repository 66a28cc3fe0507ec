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
import { selectorText } from "./clusters.ts";
import { annotatedPath, templatePath } from "./kinds.ts";
import { type ConversionReport, type Gap, LEFT_OUT, nameOf } from "./report.ts";

const ADMIRALTY = "multicluster.admiralty.io/";

/** Converts Admiralty's and Federation v1's annotations and labels of an ordinary object. */
export function convertAnnotations(object: WrittenObject, report: ConversionReport): WrittenObject | undefined {
  const { apiVersion, kind, metadata } = object;
  if (apiVersion.startsWith(ADMIRALTY)) {
    if (kind !== "Target" && kind !== "ClusterTarget") report.noKind(object);
    else report.join(object, { [`${ADMIRALTY}cluster-target-name`]: `${metadata.name}` });
    return undefined;
  }
  const gap = report.about(nameOf(object));
  let converted = object;
  for (const holder of [[], annotatedPath(object), templatePath(object)]) {
    const path = [...holder, "metadata", "annotations"];
    const annotations = valueAt(converted, path);
    if (!isJsonObject(annotations)) continue;
    const written = Object.entries(annotations).map(([key, value]) =>
      isForeignKey(key) ? translated(key, String(value), `${path.join(".")}[${key}]`, gap) : { [key]: value },
    );
    converted = setAt(converted, path, Object.assign({}, ...written));
  }
  const { "multicluster-scheduler": mark, ...labels } = metadata.labels ?? {};
  if (kind !== "Namespace" || mark !== "enabled") return converted;
  return setAt(converted, ["metadata", "labels"], { ...labels, [DELEGATION_LABEL]: "annotated" });
}

function translated(key: string, text: string, field: string, gap: Gap): Readonly<Record<string, string>> {
  const read = readForeignAnnotation(key, text);
  if (typeof read === "string") {
    gap(field, read, LEFT_OUT);
    return {};
  }
  const { delegate, clusters, selector, affinity, preferences } = read;
  return defined({
    [DELEGATE_ANNOTATION]: delegate ? "true" : undefined,
    [CLUSTERS_ANNOTATION]: clusters?.join(","),
    [CLUSTER_SELECTOR_ANNOTATION]: selector && selectorText(selector.filter((each) => "values" in each)),
    [CLUSTER_AFFINITY_ANNOTATION]: affinity && JSON.stringify(affinity),
    [PREFERENCES_ANNOTATION]: preferences && text,
  });
}
