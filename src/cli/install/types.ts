import { defined } from "../../api/defined.ts";
import { type DelegatedTypeSpec, delegatedTypeSchema } from "../../api/delegated-type.ts";
import { AGGREGATE_TO_CONTROLLER_LABEL, MANAGED_BY, MANAGED_BY_LABEL, TYPE_ROLE_LABEL } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import { role } from "../member/access.ts";
import type { Manifest } from "../shared/manifests.ts";
import { DEFINITION_SOURCE_VERBS, definitionRule, SOURCE_VERBS } from "../shared/named-types.ts";

// Authors who write such objects in a member get rights there.
const RIGHTS_GROUPS = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "certificates.k8s.io",
  "rbac.authorization.k8s.io",
]);

const AGGREGATED_TO_EDITORS = {
  "rbac.authorization.k8s.io/aggregate-to-edit": "true",
  "rbac.authorization.k8s.io/aggregate-to-admin": "true",
};

/** Rights beside `patch` on the status subresource: Kubernetes asks for more since 1.36, and Volcano's definition has none. */
const STATUS_RULES: Readonly<Record<string, readonly object[]>> = {
  "resourceclaims.resource.k8s.io": [
    { apiGroups: ["resource.k8s.io"], resources: ["resourceclaims/binding"], verbs: ["patch"] },
    { apiGroups: ["resource.k8s.io"], resources: ["resourceclaims/driver"], verbs: ["arbitrary-node:patch"] },
  ],
  "podgroups.scheduling.volcano.sh": [
    { apiGroups: ["scheduling.volcano.sh"], resources: ["podgroups"], verbs: ["patch"] },
  ],
};

/** Fields of a DelegatedType beside those that name the API. */
export type TypeFields = Omit<DelegatedTypeSpec, "group" | "version" | "kind" | "plural" | "scope">;

/** Returns a type's fields beside its API. An installed DelegatedType gets no new ones: objects there would lose copies. */
export function typeFields(
  type: Resource<KubeObject>,
  {
    manifests,
    installed,
    definition,
  }: {
    readonly manifests: readonly Manifest[];
    readonly installed: DelegatedTypeSpec | undefined;
    readonly definition?: "Follow" | undefined;
  },
): TypeFields {
  const known = knownFields(type, manifests);
  const kept = Object.entries(installed ?? {}).filter(([field]) => Object.hasOwn(known, field));
  const fields = installed === undefined ? known : Object.fromEntries(kept);
  const { follows } = installed ?? {};
  return { ...fields, ...defined({ follows, definition: definition ?? installed?.definition }) };
}

/** Says which fields of `manifests/delegated-types` an installed DelegatedType lacks, and how to add them. */
export function lackingFields(
  type: Resource<KubeObject>,
  { manifests, installed }: { readonly manifests: readonly Manifest[]; readonly installed: DelegatedTypeSpec },
): string | undefined {
  // A type without rules for queues or its status works as before, and may get them at any time.
  const { queue: _, status: __, ...known } = knownFields(type, manifests);
  const missing = Object.entries(known).filter(([field]) => !Object.hasOwn(installed, field));
  if (missing.length === 0) return undefined;
  const name = kindName(type);
  const textOf = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));
  const fields = missing.map(([field, value]) => `${field}: ${textOf(value)}`).join(", ");
  return (
    `delegatedtype/${name} lacks ${fields}, which objects of this type need to run once; it stays as it is, since a change ` +
    `would delete copies: delete its annotated objects, add the fields by \`kubectl edit delegatedtype ${name}\`, and ` +
    "create the objects anew"
  );
}

function knownFields({ group, version, plural }: Resource<KubeObject>, manifests: readonly Manifest[]): TypeFields {
  const name = kindName({ group, plural });
  const manifest = manifests.find(({ kind, metadata }) => kind === "DelegatedType" && metadata.name === name);
  if (manifest === undefined) return {};
  const { spec } = delegatedTypeSchema.parse(manifest);
  const { group: _, version: known, kind: __, plural: ___, scope: ____, managedBy, queue, ...fields } = spec;
  // The definition of another version may have other fields, and not admit a foreign manager.
  return version === known ? { ...fields, ...defined({ managedBy, queue }) } : fields;
}

/** Returns what the controller may do with a type's objects on the host: of those that follow pods it writes the status at most. */
function sourceRules({ group, plural }: Resource<KubeObject>, { follows }: TypeFields): readonly object[] {
  const verbs = SOURCE_VERBS.filter((verb) => follows === undefined || verb !== "patch");
  const status = { apiGroups: [group], resources: [`${plural}/status`], verbs: ["patch"] };
  const isReported = follows === undefined || follows.confines === true;
  return [{ apiGroups: [group], resources: [plural], verbs }, ...(isReported ? [status] : [])];
}

/**
 * Returns a type's DelegatedType, what the controller may do with its objects, and who may give them to members: all who may edit
 * a namespace, or for types that give rights, are restricted or have no namespace those whom the operator binds.
 */
export function delegatedTypeObjects(type: Resource<KubeObject>, fields: TypeFields = {}): readonly Manifest[] {
  const { group, version, kind, plural, namespaced } = type;
  const name = kindName(type);
  const labels = { [MANAGED_BY_LABEL]: MANAGED_BY, [TYPE_ROLE_LABEL]: "true" };
  const roleFor = (whom: string, ofWhom: Readonly<Record<string, string>>, rules: readonly object[]): Manifest =>
    role("ClusterRole", { name: `legation-${whom}-${name}`, labels: { ...labels, ...ofWhom } }, rules);
  const isForEditors = namespaced && !RIGHTS_GROUPS.has(group) && fields.follows === undefined;
  const scope = namespaced ? undefined : "Cluster";
  const spec = { ...defined({ group: group || undefined, version, kind, plural, scope }), ...fields };
  const controllers = roleFor("controller", { [AGGREGATE_TO_CONTROLLER_LABEL]: "true" }, [
    ...sourceRules(type, fields),
    ...(STATUS_RULES[name] ?? []),
    ...(fields.definition === "Follow" ? [definitionRule(name, DEFINITION_SOURCE_VERBS)] : []),
  ]);
  const delegation = [{ apiGroups: [group], resources: [plural], verbs: ["delegate"] }];
  const authors = roleFor("authors", isForEditors ? AGGREGATED_TO_EDITORS : {}, delegation);
  const metadata = { name, labels: { [MANAGED_BY_LABEL]: MANAGED_BY } };
  return [
    // The API server refuses types that members cannot have: before their roles are made.
    { apiVersion: "legation.dev/v1alpha1", kind: "DelegatedType", metadata, spec },
    controllers,
    // Pods that name an object take it along.
    ...(fields.follows === undefined || fields.follows.restricted === true ? [authors] : []),
  ];
}
