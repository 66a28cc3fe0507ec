import { isJsonObject, valueAt } from "../api/json.ts";
import type { KubeObject, ObjectMeta } from "../api/kubernetes.ts";
import type { KeysOfMaps } from "../pods/compact-record.ts";

// The manager of writes that name none: copies for pods, which may become a whole object's.
const CLIENT_MANAGER = "legation";

type Managed = NonNullable<ObjectMeta["managedFields"]>[number];

/** Selects the field managers of a host, with the manager of writes that name none. */
export function isManagedBy(fieldManager: string): (entry: Managed) => boolean {
  return ({ manager, subresource }) => subresource === undefined && isOwnManager(manager, fieldManager);
}

/** Reports whether the host writes under this name. */
export function isOwnManager(manager: string | undefined, fieldManager: string): boolean {
  return manager === fieldManager || manager === CLIENT_MANAGER;
}

/** Returns the labels and annotations that Legation wrote, by the API server's own record. None of an object that is gone. */
export function ownedKeys(there: KubeObject | undefined, fieldManager: string): KeysOfMaps {
  const { managedFields = [] } = there?.metadata ?? {};
  const keysOf = (map: keyof KeysOfMaps): string[] =>
    managedFields.filter(isManagedBy(fieldManager)).flatMap(({ fieldsV1 }) => {
      const fields = valueAt(fieldsV1, ["f:metadata", `f:${map}`]);
      return isJsonObject(fields)
        ? Object.keys(fields).flatMap((key) => (key.startsWith("f:") ? [key.slice(2)] : []))
        : [];
    });
  return { labels: keysOf("labels"), annotations: keysOf("annotations") };
}
