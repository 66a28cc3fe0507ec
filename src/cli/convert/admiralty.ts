import { z } from "zod";
import { isJsonObject, setAt, valueAt } from "../../api/json.ts";
import {
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  DELEGATION_LABEL,
  PREFERENCES_ANNOTATION,
} from "../../api/keys.ts";
import { structuredTextReader } from "../../api/structured-text.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { withoutRefused } from "./annotate.ts";
import { templatePath } from "./kinds.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const ADMIRALTY = "multicluster.admiralty.io/";
const FEDERATION = "federation.kubernetes.io/";
const NAMESPACE_LABEL = "multicluster-scheduler";

const readConstraints = structuredTextReader(
  z.looseObject({
    nodeSelector: z.record(z.string(), z.string()).optional(),
    affinity: z.looseObject({ nodeAffinity: z.unknown().optional() }).optional(),
  }),
);

type Written = Readonly<Record<string, string>>;

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
  const written: Record<string, string> = {};
  let found = false;
  for (const [key, value] of Object.entries(annotations)) {
    const text = typeof value === "string" ? value : String(value);
    if (!key.startsWith(ADMIRALTY) && !(key.startsWith(FEDERATION) && key.endsWith("-preferences"))) {
      written[key] = text;
      continue;
    }
    found = true;
    const field = `${[...path, "annotations"].join(".")}[${key}]`;
    Object.assign(written, translate(key, text, report.about(nameOf(object), field)));
  }
  return found ? setAt(object, [...path, "annotations"], written) : object;
}

function translate(key: string, text: string, gap: Gap): Written {
  switch (key) {
    case `${ADMIRALTY}elect`:
      return { [DELEGATE_ANNOTATION]: "true" };
    case `${ADMIRALTY}clustername`:
      return checked({ [CLUSTERS_ANNOTATION]: text }, gap);
    case `${ADMIRALTY}proxy-pod-scheduling-constraints`:
      return checked(constraints(text, gap), gap);
    case `${FEDERATION}replica-set-preferences`:
    case `${FEDERATION}deployment-preferences`:
      return checked({ [PREFERENCES_ANNOTATION]: text }, gap);
    // Legation never reserves, and delegates keep their labels.
    case `${ADMIRALTY}no-reservation`:
    case `${ADMIRALTY}no-prefix-label-regexp`:
      return {};
    case `${ADMIRALTY}use-constraints-from-spec-for-proxy-pod-scheduling`:
      gap(
        "",
        "constraints of the pod's spec are for the nodes of its member",
        `write those for clusters as ${CLUSTER_SELECTOR_ANNOTATION} or ${CLUSTER_AFFINITY_ANNOTATION}`,
      );
      return {};
    default:
      gap("", "nothing here acts on it", "it is left out of the output");
      return {};
  }
}

function constraints(text: string, gap: Gap): Written {
  const parsed = readConstraints(text);
  if (!parsed.ok) {
    gap("", parsed.problems.join("; "), `write ${CLUSTER_SELECTOR_ANNOTATION} by hand`);
    return {};
  }
  const { nodeSelector = {}, affinity = {}, ...others } = parsed.value;
  const { nodeAffinity, ...otherAffinities } = affinity;
  for (const [name] of [...Object.entries(others), ...Object.entries(otherAffinities)]) {
    gap(
      `.${name}`,
      "clusters are chosen by their labels alone",
      "write it in the pod's spec, for the nodes of its member",
    );
  }
  const labels = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  return {
    ...(labels.length === 0 ? {} : { [CLUSTER_SELECTOR_ANNOTATION]: labels.join(",") }),
    ...(nodeAffinity === undefined ? {} : { [CLUSTER_AFFINITY_ANNOTATION]: JSON.stringify(nodeAffinity) }),
  };
}

function checked(written: Written, gap: Gap): Written {
  return withoutRefused(written, written, (_key, problem, instead) => gap("", problem, instead));
}

function withLabel(object: WrittenObject): WrittenObject {
  const { [NAMESPACE_LABEL]: mark, ...labels } = object.metadata.labels ?? {};
  if (object.kind !== "Namespace" || mark !== "enabled") return object;
  return setAt(object, ["metadata", "labels"], { ...labels, [DELEGATION_LABEL]: "annotated" });
}
