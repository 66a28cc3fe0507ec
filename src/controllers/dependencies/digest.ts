import { createHash } from "node:crypto";
import type { Stored } from "../../api/kubernetes.ts";
import { contentOf, type DependencyObject } from "../../copies/dependencies.ts";
import {
  configMaps,
  priorityClasses,
  type Resource,
  runtimeClasses,
  secrets,
  serviceAccounts,
} from "../../kube/resources.ts";
import type { DependencyKind } from "../../pods/dependencies.ts";
import type { Digested } from "./model.ts";

/** The resource of each kind. */
export const RESOURCES: Readonly<Record<DependencyKind, Resource<Digested>>> = {
  ConfigMap: asDigested(configMaps),
  Secret: asDigested(secrets),
  ServiceAccount: asDigested(serviceAccounts),
  PriorityClass: asDigested(priorityClasses),
  RuntimeClass: asDigested(runtimeClasses),
};

/** The object with a digest of what a copy of it contains: two that are compared need not both be kept whole. */
export function digested(kind: DependencyKind, object: Stored<DependencyObject>): Stored<Digested> {
  const content = JSON.stringify(contentOf(kind, object), sortedKeys);
  return { ...object, digest: createHash("sha256").update(content).digest("base64") };
}

/** The object without its content, of which the digest tells enough. */
export function withoutContent({ data: _, binaryData: __, ...rest }: Stored<Digested>): Stored<Digested> {
  return rest;
}

/** The digest is added as objects come, before anyone sees them. */
function asDigested({ objectType: _, ...resource }: Resource<DependencyObject>): Resource<Digested> {
  return resource;
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
