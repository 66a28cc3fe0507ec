import { z } from "zod";
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
import type { JoinContext } from "./validate.ts";

// Tells whether the member has devices for claims at all.
const DEVICES = { apiGroups: ["resource.k8s.io"], resources: ["deviceclasses", "resourceslices"], verbs: ["list"] };
/** Rights beside those on copies, by which a host knows whether the member is one for pods that name such objects. */
const PLACEMENT_RULES: Readonly<Record<string, readonly object[]>> = {
  "resourceclaims.resource.k8s.io": [DEVICES],
  "resourceclaimtemplates.resource.k8s.io": [DEVICES],
};

interface GrantedTypes {
  readonly types: readonly Resource<KubeObject>[];
  /** The host may also create and change the types' CustomResourceDefinitions. */
  readonly definitions: boolean;
}

/** Returns the role that gathers a host's rights on types, its binding, and roles for each type. All have the base role's metadata. */
export function typeObjects(
  { types, definitions }: GrantedTypes,
  { hostId, metadata }: { readonly hostId: string; readonly metadata: Readonly<Record<string, unknown>> },
): readonly Manifest[] {
  const name = hostTypesName(hostId);
  const selects = ["true", hostId].map((value) => ({ matchLabels: { [AGGREGATE_TO_HOST_LABEL]: value } }));
  const labels = z.record(z.string(), z.string()).parse(metadata.labels);
  return [
    // The member's controller manager writes the rules.
    {
      apiVersion: RBAC_VERSION,
      kind: "ClusterRole",
      metadata: { ...metadata, name },
      aggregationRule: { clusterRoleSelectors: selects },
    },
    roleBinding("ClusterRole", { ...metadata, name }, hostAccountName(hostId)),
    ...types.flatMap((type) => {
      const ofType = kindName(type);
      const gatheredRole = (suffix: string, rules: readonly object[]): Manifest => {
        const gathers = { ...labels, [AGGREGATE_TO_HOST_LABEL]: hostId };
        const roleName = `${hostAccountName(hostId)}-${ofType}${suffix}`;
        return role("ClusterRole", { ...metadata, name: roleName, labels: gathers }, rules);
      };
      const objects = gatheredRole("", [
        { apiGroups: [type.group], resources: [type.plural], verbs: [...COPY_VERBS] },
        ...(PLACEMENT_RULES[ofType] ?? []),
      ]);
      // A role of its own stays when the type is granted again without it.
      return definitions ? [objects, gatheredRole("-definition", definitionRules(ofType))] : [objects];
    }),
  ];
}

/** RBAC knows no name when an object is created. An existing definition of another name cannot be changed by `create`. */
function definitionRules(name: string): object[] {
  const { group, plural } = customResourceDefinitions;
  return [{ apiGroups: [group], resources: [plural], verbs: ["create"] }, definitionRule(name, DEFINITION_COPY_VERBS)];
}

const gathered = z.looseObject({
  rules: z.array(z.looseObject({ apiGroups: z.array(z.string()), resources: z.array(z.string()) })).nullish(),
});
const GATHERED_WITHIN_MS = 20_000;

/** Waits until the rights on types are in force, so that the host's controller does not meet a refusal. */
async function waitForTypes(
  types: readonly Resource<KubeObject>[],
  hostId: string,
  { member: { client }, signal, report }: JoinContext,
): Promise<void> {
  const name = hostTypesName(hostId);
  const areGathered = async (): Promise<boolean> => {
    const rules = gathered.parse(await client.get(clusterRoles, { name }, { signal })).rules ?? [];
    const isGathered = ({ group, plural }: Resource<KubeObject>): boolean =>
      rules.some(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(plural));
    return types.every(isGathered);
  };
  if (types.length === 0 || (await until(areGathered, { timeoutMs: GATHERED_WITHIN_MS, signal }))) return;
  report(
    `${client.cluster}: ClusterRole ${name} has not gathered all types yet; the member's controller manager does, and they hold then`,
  );
}

const ruleList = z.array(z.looseObject({}));

interface HostAccount {
  readonly hostId: string;
  readonly hostName: string;
  readonly cluster: string;
}

export const systemNamespace: Manifest = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: SYSTEM_NAMESPACE, labels: { [MANAGED_BY_LABEL]: MANAGED_BY } },
};

/** Returns the objects of a host's access. The role has the base manifest's rules. */
export function accessObjects(
  base: Manifest,
  { hostId, hostName, cluster }: HostAccount,
): { role: Manifest; binding: Manifest; user: Manifest } {
  const name = hostAccountName(hostId);
  const metadata = {
    name,
    labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [HOST_LABEL]: hostId, [MEMBER_CLUSTER_LABEL]: cluster },
    annotations: { [HOST_NAME_ANNOTATION]: hostName },
  };
  return {
    role: role("ClusterRole", metadata, [...ruleList.parse(base.rules), ...ownRules(name)]),
    binding: roleBinding("ClusterRole", metadata),
    user: { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: SYSTEM_NAMESPACE } },
  };
}

/** Lets a host renew its token and delete its ClusterRole, which owns its access: no administrator is needed to leave. */
function ownRules(name: string): object[] {
  return [
    { apiGroups: [clusterRoles.group], resources: ["clusterroles"], resourceNames: [name], verbs: ["delete"] },
    { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [name], verbs: ["create"] },
  ];
}

/** The rights of a host in a member. Its role owns the `further` objects, too. */
interface Granted extends GrantedTypes {
  readonly further: (role: Manifest) => readonly Manifest[];
}

/** Returns a host's role in a member, and the objects that it owns. */
export function objectsInMember(
  base: Manifest,
  account: HostAccount,
  { further, ...granted }: Granted,
): { readonly role: Manifest; readonly owned: readonly Manifest[] } {
  const { role, user, binding } = accessObjects(base, account);
  const types = typeObjects(granted, { hostId: account.hostId, metadata: role.metadata });
  return { role, owned: [user, binding, ...types, ...further(role)] };
}

/** Applies the host's service account and rights in the member, and further objects. Safe to repeat. */
export async function grantAccess(account: HostAccount, granted: Granted, context: JoinContext): Promise<void> {
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
  const namespace = await client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
  // An operator's own namespace stays as it is.
  if (namespace === undefined) await apply(systemNamespace);
  const { role, owned } = objectsInMember(context.role, account, granted);
  const { name, uid } = (await apply(role)).metadata;
  const owner = { apiVersion: RBAC_VERSION, kind: "ClusterRole", name, uid };
  for (const manifest of owned) {
    await apply({ ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } });
  }
  await waitForTypes(granted.types, account.hostId, context);
}

/** Loads the ClusterRole of the member-side manifests: the rights that a host needs in a member. `mcs`: also those on imports. */
export async function loadMemberRole(mcs: boolean): Promise<Manifest> {
  const role = (await shippedManifests("member")).find(({ kind }) => kind === clusterRoles.kind);
  if (role === undefined) throw new Error("manifests/member holds no ClusterRole");
  const further = mcs ? await shippedManifests("member/mcs.yaml") : [];
  return { ...role, rules: [role, ...further].flatMap(({ rules }) => ruleList.parse(rules)) };
}
