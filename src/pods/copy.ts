import { COPY_LABEL, COPY_LABEL_VALUE, GROUP, HOST_LABEL, OWNER_ANNOTATION } from "../api/keys.ts";
import type { ConfigMap, KubeObject, Secret, Stored } from "../api/kubernetes.ts";
import { type HostIdentity, type Owner, ownerOf } from "./delegate.ts";
import type { DependencyKind } from "./dependencies.ts";
import { jsonEqual } from "./equal.ts";

/** A ConfigMap, Secret or ServiceAccount. */
export type Copied = KubeObject & Omit<ConfigMap, "data"> & Omit<Secret, "data"> & { data?: Record<string, string> };

// It holds the whole object once more, in plain text.
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const ACCOUNT_TOKEN = "kubernetes.io/service-account-token";
const CONTENT = ["type", "data", "binaryData", "immutable"] as const;

/** The object to have in a member for one of the host that a delegate needs. */
export function copyOf(kind: DependencyKind, source: Stored<Copied>, host: HostIdentity): Copied {
  const { name, namespace = "", uid, labels = {}, annotations = {} } = source.metadata;
  const owner: Owner = { cluster: host.name, namespace, name, uid };
  const copy: Copied = {
    apiVersion: "v1",
    kind,
    metadata: {
      name,
      namespace,
      labels: { ...ownKeys(labels), [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
      annotations: { ...ownKeys(annotations), [OWNER_ANNOTATION]: JSON.stringify(owner) },
    },
  };
  // A delegate names its tokens itself: of an account, it needs that there is one.
  if (kind === "ServiceAccount") return copy;
  for (const field of CONTENT) if (source[field] !== undefined) Object.assign(copy, { [field]: source[field] });
  // The member's controller manager would take it for a token of the member's own, and delete it.
  if (copy.type === ACCOUNT_TOKEN) copy.type = "Opaque";
  return copy;
}

/** True when the member's object says what `wanted` says. An account has nothing to say but that it is there. */
export function isInStep(copy: Stored<Copied>, wanted: Copied): boolean {
  if (wanted.kind === "ServiceAccount") return true;
  const { labels, annotations } = wanted.metadata ?? {};
  return (
    CONTENT.every((field) => jsonEqual(copy[field], wanted[field]) || isDefault(copy, wanted, field)) &&
    hasAll(copy.metadata.labels, labels) &&
    hasAll(copy.metadata.annotations, annotations)
  );
}

/** True when no update can make the one of the other: what is immutable, and a Secret's type. */
export function mustBeReplaced(copy: Stored<Copied>, wanted: Copied): boolean {
  return copy.immutable === true || (copy.type ?? "") !== (wanted.type ?? copy.type ?? "");
}

/** True when this host made it as a copy of an object of that very name. */
export function isCopyOf(object: KubeObject, hostId: string): boolean {
  const { labels = {}, name } = object.metadata ?? {};
  return labels[HOST_LABEL] === hostId && labels[COPY_LABEL] === COPY_LABEL_VALUE && ownerOf(object)?.name === name;
}

function ownKeys(map: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(map).filter(([key]) => key !== LAST_APPLIED && !key.startsWith(`${GROUP}/`));
  return Object.fromEntries(kept);
}

function hasAll(has: Record<string, string> = {}, wants: Record<string, string> = {}): boolean {
  return Object.entries(wants).every(([key, value]) => has[key] === value);
}

/** API servers fill the type of a Secret that has none. */
function isDefault(copy: Copied, wanted: Copied, field: (typeof CONTENT)[number]): boolean {
  return field === "type" && wanted.type === undefined && copy.type === "Opaque";
}
