import type { Namespace, Stored } from "../../api/kubernetes.ts";
import { admitNamespace } from "./admission.ts";
import type { WrittenObject } from "./documents.ts";

/** The host's namespaces as they will be when those of the manifest are applied. */
export interface WrittenNamespaces {
  readonly namespaces: readonly Stored<Namespace>[];
  /** Why admission refuses some of the manifest, by their names: those stay as they are. */
  readonly refused: ReadonlyMap<string, string>;
}

/** True for a Namespace of the manifest. */
export function isNamespace({ apiVersion, kind }: WrittenObject): boolean {
  return apiVersion === "v1" && kind === "Namespace";
}

/** Applies the namespaces of a manifest, wherever in it they stand. */
export function withWrittenNamespaces(
  stored: readonly Stored<Namespace>[],
  objects: readonly WrittenObject[],
): WrittenNamespaces {
  const all = new Map(stored.map((namespace) => [namespace.metadata.name, namespace]));
  const refused = new Map<string, string>();
  for (const object of objects) {
    const { name, labels, annotations } = object.metadata;
    if (!isNamespace(object) || name === undefined) continue;
    const before = all.get(name);
    const known = before?.metadata ?? { name, uid: `planned/${name}`, resourceVersion: "0" };
    const after = {
      metadata: {
        ...known,
        labels: { ...known.labels, ...labels },
        annotations: { ...known.annotations, ...annotations },
      },
    };
    const { denied } = admitNamespace(after, before);
    if (denied === undefined) all.set(name, after);
    else refused.set(name, denied);
  }
  return { namespaces: [...all.values()], refused };
}
