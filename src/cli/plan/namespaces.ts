import { isDeepStrictEqual } from "node:util";
import type { Namespace, Stored } from "../../api/kubernetes.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { Answer } from "./admission.ts";

/** The host's namespaces once the manifest is applied. */
export interface PlannedNamespaces {
  readonly namespaces: readonly Stored<Namespace>[];
  /** Why the API server refuses a namespace of the manifest, by name: it stays as it is. */
  readonly refused: ReadonlyMap<string, string>;
  /** Names that the manifest creates or changes: a dry-run of their pods would go by what they are now. */
  readonly changed: ReadonlySet<string>;
  readonly notChecked: readonly string[];
}

/** Reports whether the object is a Namespace. */
export function isNamespace({ apiVersion, kind }: WrittenObject): boolean {
  return apiVersion === "v1" && kind === "Namespace";
}

/** Applies the namespaces of a manifest, wherever in it they stand. `ask` asks the API server about one that is new or changes. */
export async function planNamespaces(
  stored: readonly Stored<Namespace>[],
  objects: readonly WrittenObject[],
  ask: (namespace: Stored<Namespace>, isNew: boolean) => Promise<Answer<Stored<Namespace>>>,
): Promise<PlannedNamespaces> {
  const all = new Map(stored.map((namespace) => [namespace.metadata.name, namespace]));
  const refused = new Map<string, string>();
  const changed = new Set<string>();
  const notChecked: string[] = [];
  for (const object of objects) {
    const { name, labels, annotations } = object.metadata;
    if (!isNamespace(object) || name === undefined) continue;
    const before = all.get(name);
    const known = before ?? { metadata: { name, uid: `planned/${name}`, resourceVersion: "" } };
    const after = merged(known, labels, annotations);
    if (before !== undefined && isDeepStrictEqual(before.metadata, after.metadata)) continue;
    const answer = await ask(after, before === undefined);
    if (answer.is === "refused") {
      refused.set(name, answer.message);
      continue;
    }
    if (answer.is === "notChecked") notChecked.push(`namespace ${name}: ${answer.why}`);
    all.set(name, answer.is === "admitted" ? answer.object : after);
    changed.add(name);
  }
  return { namespaces: [...all.values()], refused, changed, notChecked };
}

function merged(
  { metadata, ...rest }: Stored<Namespace>,
  labels: WrittenObject["metadata"]["labels"],
  annotations: WrittenObject["metadata"]["annotations"],
): Stored<Namespace> {
  return {
    ...rest,
    metadata: {
      ...metadata,
      ...(labels === undefined ? {} : { labels: { ...metadata.labels, ...labels } }),
      ...(annotations === undefined ? {} : { annotations: { ...metadata.annotations, ...annotations } }),
    },
  };
}
