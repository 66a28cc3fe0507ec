import { z } from "zod";
import { HOST_LABEL, HOST_NAME_ANNOTATION, MANAGED_BY, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import {
  deployments,
  namespaces,
  networkPolicies,
  type Resource,
  secrets,
  serviceAccounts,
  services,
} from "../../kube/resources.ts";
import {
  clusterRoleBindings,
  clusterRoles,
  hostAccountName,
  MEMBER_CLUSTER_LABEL,
  roleBindings,
  roles,
} from "../member/access.ts";
import { RBAC_VERSION, role, roleBinding } from "../member/rbac.ts";
import { type Manifest, shippedManifests } from "../shared/manifests.ts";
import { objectText } from "../shared/output.ts";
import { refuseTerminatingNamespace } from "../shared/reading.ts";
import { refOf } from "../shared/removal.ts";
import { FIELD_MANAGER } from "./credentials.ts";
import { type GrantedTypes, typeObjects, waitForTypes } from "./grant-types.ts";
import type { JoinContext } from "./validate.ts";

const ruleList = z.array(z.looseObject({}));

export interface HostAccount {
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

const RESOURCES: ReadonlyMap<string, Resource<KubeObject>> = new Map(
  [
    namespaces,
    clusterRoles,
    clusterRoleBindings,
    roles,
    roleBindings,
    serviceAccounts,
    secrets,
    services,
    networkPolicies,
    deployments,
  ].map((resource): [string, Resource<KubeObject>] => [resource.kind, resource]),
);

/** Applies the host's service account and rights in the member, and further objects. Safe to repeat. */
export async function grantAccess(
  account: HostAccount,
  { further, ...granted }: GrantedTypes & { readonly further: (role: Manifest) => readonly Manifest[] },
  context: JoinContext,
): Promise<void> {
  const { signal, report } = context;
  const { client } = context.member;
  const apply = async (manifest: Manifest): Promise<Stored<KubeObject>> => {
    const resource = RESOURCES.get(manifest.kind);
    if (resource === undefined) throw new Error(`no resource of kind ${manifest.kind}`);
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
  const objects = accessObjects(context.role, account);
  const { name, uid } = (await apply(objects.role)).metadata;
  const owner = { apiVersion: RBAC_VERSION, kind: "ClusterRole", name, uid };
  const { hostId } = account;
  const owned = [
    objects.user,
    objects.binding,
    ...typeObjects(granted, { hostId, metadata: objects.role.metadata }),
    ...further(objects.role),
  ];
  for (const manifest of owned) {
    await apply({ ...manifest, metadata: { ...manifest.metadata, ownerReferences: [owner] } });
  }
  await waitForTypes(granted.types, hostId, context);
}

/** Loads the ClusterRole of the member-side manifests: the rights that a host needs in a member. `mcs`: also those on imports. */
export async function loadMemberRole(mcs: boolean): Promise<Manifest> {
  const role = (await shippedManifests("member")).find(({ kind }) => kind === clusterRoles.kind);
  if (role === undefined) throw new Error("manifests/member holds no ClusterRole");
  const further = mcs ? await shippedManifests("member/mcs.yaml") : [];
  return { ...role, rules: [role, ...further].flatMap(({ rules }) => ruleList.parse(rules)) };
}
