import { z } from "zod";
import { accessAccountName } from "../../api/access.ts";
import {
  AGGREGATE_TO_HOST_LABEL,
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  SYSTEM_NAMESPACE,
} from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { customResourceDefinitions, kindName, namespaces, type Resource } from "../../kube/resources.ts";
import {
  clusterRoles,
  hostAccountName,
  hostTypesName,
  MEMBER_CLUSTER_LABEL,
  RBAC_VERSION,
  role,
  roleBinding,
} from "../member/access.ts";
import { Discovery } from "../shared/discovery.ts";
import { type Manifest, shippedManifests } from "../shared/manifests.ts";
import { COPY_VERBS, DEFINITION_COPY_VERBS, definitionRule } from "../shared/named-types.ts";
import { objectText } from "../shared/output.ts";
import { refuseTerminatingNamespace } from "../shared/reading.ts";
import { refOf } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";
import { FIELD_MANAGER } from "./credentials.ts";
import type { MemberContext } from "./validate.ts";

/** A host in a member that joined as the named Cluster. */
export interface HostAccount {
  readonly hostId: string;
  readonly hostName: string;
  readonly cluster: string;
}

/** The types of which a host may have objects in a member. */
interface GrantedTypes {
  readonly types: readonly Resource<KubeObject>[];
  /** The host may also create and change the types' CustomResourceDefinitions. */
  readonly definitions: boolean;
}

const ruleList = z.array(z.looseObject({}));

/** Loads the ClusterRole of the member-side manifests: the rights that a host needs in a member. `mcs`: also those on imports. */
export async function loadMemberRole(mcs: boolean): Promise<Manifest> {
  const role = (await shippedManifests("member")).find(({ kind }) => kind === clusterRoles.kind);
  if (role === undefined) throw new Error("manifests/member holds no ClusterRole");
  const further = mcs ? await shippedManifests("member/mcs.yaml") : [];
  return { ...role, rules: [role, ...further].flatMap(({ rules }) => ruleList.parse(rules)) };
}

export const systemNamespace: Manifest = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: SYSTEM_NAMESPACE, labels: { [MANAGED_BY_LABEL]: MANAGED_BY } },
};

interface HostMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Returns the metadata that all objects of a host in a member have. */
export function metadataOf({ hostId, hostName, cluster }: HostAccount): HostMetadata {
  return {
    labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [HOST_LABEL]: hostId, [MEMBER_CLUSTER_LABEL]: cluster },
    annotations: { [HOST_NAME_ANNOTATION]: hostName },
  };
}

/** Returns the objects of a host's access. The role has the base manifest's rules, and owns all others. */
export function accessObjects(
  base: Manifest,
  account: HostAccount,
): { readonly role: Manifest; readonly binding: Manifest; readonly user: Manifest } {
  const name = hostAccountName(account.hostId);
  const metadata = { name, ...metadataOf(account) };
  // Lets a host delete its ClusterRole and renew its token: no administrator is needed to leave.
  const ownRules = [
    { apiGroups: [clusterRoles.group], resources: ["clusterroles"], resourceNames: [name], verbs: ["delete"] },
    tokenRule(name),
  ];
  return {
    role: role("ClusterRole", metadata, [...ruleList.parse(base.rules), ...ownRules]),
    binding: roleBinding("ClusterRole", metadata),
    user: { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: SYSTEM_NAMESPACE } },
  };
}

// Tells whether the member has devices for claims at all.
const DEVICES = { apiGroups: ["resource.k8s.io"], resources: ["deviceclasses", "resourceslices"], verbs: ["list"] };
/** Rights beside those on copies, by which a host knows whether the member is one for pods that name such objects. */
const PLACEMENT_RULES: Readonly<Record<string, readonly object[]>> = {
  "resourceclaims.resource.k8s.io": [DEVICES],
  "resourceclaimtemplates.resource.k8s.io": [DEVICES],
};

/** Returns the role that gathers a host's rights on types, its binding, and roles for each type. */
export function typeObjects({ types, definitions }: GrantedTypes, account: HostAccount): readonly Manifest[] {
  const { hostId } = account;
  const metadata = { name: hostTypesName(hostId), ...metadataOf(account) };
  const gathers = (value: string): Readonly<Record<string, string>> => ({ [AGGREGATE_TO_HOST_LABEL]: value });
  const clusterRoleSelectors = ["true", hostId].map((value) => ({ matchLabels: gathers(value) }));
  const gathered = (of: string, rules: readonly object[]): Manifest => {
    const labels = { ...metadata.labels, ...gathers(hostId) };
    return role("ClusterRole", { ...metadata, name: `${hostAccountName(hostId)}-${of}`, labels }, rules);
  };
  const ofTypes = types.map((type) => {
    const copies = { apiGroups: [type.group], resources: [type.plural], verbs: [...COPY_VERBS] };
    return gathered(kindName(type), [copies, ...(PLACEMENT_RULES[kindName(type)] ?? [])]);
  });
  // RBAC knows no name when an object is created. An existing definition of another name cannot be changed by `create`.
  const { group, plural } = customResourceDefinitions;
  const creation = { apiGroups: [group], resources: [plural], verbs: ["create"] };
  // Roles of their own stay when the types are granted again without them.
  const ofDefinitions = types
    .map(kindName)
    .map((name) => gathered(`${name}-definition`, [creation, definitionRule(name, DEFINITION_COPY_VERBS)]));
  return [
    // The member's controller manager writes the rules.
    { apiVersion: RBAC_VERSION, kind: "ClusterRole", metadata, aggregationRule: { clusterRoleSelectors } },
    roleBinding("ClusterRole", metadata, hostAccountName(hostId)),
    ...ofTypes,
    ...(definitions ? ofDefinitions : []),
  ];
}

const AUTHENTICATION_GROUP = "authentication.k8s.io";
const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const HTTP_VERBS = ["get", "head", "post", "put", "patch", "delete", "options"];

/** The way in which a member's API server checks impersonation: `constrained` (KEP-5284) refuses system:masters, service accounts and nodes. */
export type ImpersonationRules = "constrained" | "any";

const IMPERSONATION_RULES: Readonly<Record<ImpersonationRules, readonly object[]>> = {
  // RBAC has no pattern for `userextras/KEY`, so all resources of the group are named.
  constrained: [
    { apiGroups: [AUTHENTICATION_GROUP], resources: ["*"], verbs: ["impersonate:user-info"] },
    { apiGroups: ["*"], resources: ["*"], verbs: VERBS.map((verb) => `impersonate-on:user-info:${verb}`) },
    { nonResourceURLs: ["*"], verbs: HTTP_VERBS.map((verb) => `impersonate-on:user-info:${verb}`) },
  ],
  any: [
    { apiGroups: [""], resources: ["users", "groups"], verbs: ["impersonate"] },
    { apiGroups: [AUTHENTICATION_GROUP], resources: ["*"], verbs: ["impersonate"] },
  ],
};

// KEP-5284 is on by default from here.
const CONSTRAINED_SINCE_MINOR = 36;

/** Returns how an API server of this version checks impersonation by default. */
export function impersonationOf(version = ""): ImpersonationRules {
  const [, major = "0", minor = "0"] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 || Number(minor) >= CONSTRAINED_SINCE_MINOR ? "constrained" : "any";
}

/** Returns the right to request tokens of one service account. */
function tokenRule(name: string): object {
  return { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [name], verbs: ["create"] };
}

/** Returns the account in a member by which `legation access` acts for users: it may impersonate, and renew its token. */
export function accessAccountObjects(account: HostAccount, impersonation: ImpersonationRules): readonly Manifest[] {
  const name = accessAccountName(account.hostId);
  const metadata = { name, ...metadataOf(account) };
  const inNamespace = { ...metadata, namespace: SYSTEM_NAMESPACE };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: inNamespace },
    role("ClusterRole", metadata, IMPERSONATION_RULES[impersonation]),
    roleBinding("ClusterRole", metadata),
    role("Role", inNamespace, [tokenRule(name)]),
    roleBinding("Role", inNamespace),
  ];
}

/** The rights and objects that a host gets in a member, beside its access. */
interface Granted extends GrantedTypes {
  readonly further: readonly Manifest[];
}

/** Returns a host's role in a member, and the objects that it owns. */
export function objectsInMember(
  base: Manifest,
  account: HostAccount,
  { further, ...types }: Granted,
): { readonly role: Manifest; readonly owned: readonly Manifest[] } {
  const { role, user, binding } = accessObjects(base, account);
  return { role, owned: [user, binding, ...typeObjects(types, account), ...further] };
}

/** Applies the objects of a host's access in the member. Safe to repeat. */
export async function grantAccess(account: HostAccount, granted: Granted, context: MemberContext): Promise<void> {
  const { signal, report } = context;
  const { client } = context.member;
  const discovery = new Discovery(client, signal);
  const apply = async (manifest: Manifest): Promise<Stored<KubeObject>> => {
    const resource = await discovery.get(manifest.apiVersion, manifest.kind);
    const ref = refOf(manifest.metadata);
    const patch = { type: "apply", body: manifest, force: true } as const;
    const applied = await client.patch(resource, ref, patch, { fieldManager: FIELD_MANAGER, signal });
    report(`${client.cluster}: ${objectText(manifest.kind, ref)} applied`);
    return applied;
  };
  await refuseTerminatingNamespace(client, signal);
  const namespace = await client.find(namespaces, systemNamespace.metadata, { signal });
  // An operator's own namespace stays as it is.
  if (namespace === undefined) await apply(systemNamespace);
  const { role, owned } = objectsInMember(context.role, account, granted);
  const { name, uid } = (await apply(role)).metadata;
  const ownerReferences = [{ apiVersion: RBAC_VERSION, kind: "ClusterRole", name, uid }];
  for (const manifest of owned) await apply({ ...manifest, metadata: { ...manifest.metadata, ownerReferences } });
  await waitForTypes(granted.types, hostTypesName(account.hostId), context);
}

const gathered = z.looseObject({
  rules: z.array(z.looseObject({ apiGroups: z.array(z.string()), resources: z.array(z.string()) })).nullish(),
});
const GATHERED_WITHIN_MS = 20_000;

/** Waits until the rights on types are in force, so that the host's controller does not meet a refusal. */
async function waitForTypes(
  types: readonly Resource<KubeObject>[],
  name: string,
  { member: { client }, signal, report }: MemberContext,
): Promise<void> {
  const areGathered = async (): Promise<boolean> => {
    const rules = gathered.parse(await client.get(clusterRoles, { name }, { signal })).rules ?? [];
    return types.every(({ group, plural }) =>
      rules.some(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(plural)),
    );
  };
  if (types.length === 0 || (await until(areGathered, { timeoutMs: GATHERED_WITHIN_MS, signal }))) return;
  report(
    `${client.cluster}: ClusterRole ${name} has not gathered all types yet; the member's controller manager does, and they hold then`,
  );
}
