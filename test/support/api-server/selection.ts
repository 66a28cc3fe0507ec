import { valueAt } from "../../../src/api/json.ts";
import { parseLabelSelector, selectorMatches } from "../../../src/api/label-selector.ts";
import type { Selection } from "../../../src/kube/list.ts";
import type { StoredObject } from "./object-store.ts";
import { badRequest } from "./refusal.ts";

// Fields beside name and namespace that the API server selects by (pkg/registry/*/*/strategy.go: SelectableFields).
const SELECTABLE: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"],
  events: [
    ...["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map(
      (field) => `involvedObject.${field}`,
    ),
    ...["reason", "reportingComponent", "source", "type"],
  ],
  nodes: ["spec.unschedulable"],
  namespaces: ["status.phase"],
  secrets: ["type"],
  jobs: ["status.successful"],
};

/** Returns the predicate of a list or watch. Throws a refusal for a selector that the API server does not know. */
export function selectionOf(
  plural: string,
  { namespace, labelSelector = "", fieldSelector = "" }: Selection,
): (object: StoredObject) => boolean {
  const parsed = parseLabelSelector(labelSelector);
  if (!parsed.ok) throw badRequest(`unable to parse requirement: ${parsed.message}`);
  const fields = fieldTerms(plural, fieldSelector);
  return (object) => {
    const { metadata } = object;
    if (namespace !== undefined && metadata.namespace !== namespace) return false;
    if (!selectorMatches(parsed.selector, metadata.labels ?? {})) return false;
    return fields.every(({ path, value, isEqual }) => (textAt(object, path) === value) === isEqual);
  };
}

interface FieldTerm {
  readonly path: readonly string[];
  readonly value: string;
  readonly isEqual: boolean;
}

function fieldTerms(plural: string, text: string): readonly FieldTerm[] {
  return text
    .split(",")
    .filter((term) => term !== "")
    .map((term) => {
      const [, field = "", operator, value = ""] = /^([^=!]+)(==|=|!=)(.*)$/.exec(term) ?? [];
      const isKnown = /^metadata\.name(space)?$/.test(field) || SELECTABLE[plural]?.includes(field) === true;
      if (operator === undefined) throw badRequest(`invalid field selector: ${term}`);
      if (!isKnown) throw badRequest(`field label not supported: ${field}`);
      return {
        path: field === "source" ? ["source", "component"] : field.split("."),
        value,
        isEqual: operator !== "!=",
      };
    });
}

function textAt(object: StoredObject, path: readonly string[]): string {
  const value = valueAt(object, path);
  return value === undefined || value === null ? "" : String(value);
}
