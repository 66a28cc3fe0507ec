import { z } from "zod";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { namespaces, type Resource } from "../../kube/resources.ts";
import { clusterRoles, hostTypesName, RBAC_VERSION } from "../member/access.ts";
import { Discovery } from "../shared/discovery.ts";
import type { Manifest } from "../shared/manifests.ts";
import { objectText } from "../shared/output.ts";
import { refuseTerminatingNamespace } from "../shared/reading.ts";
import { refOf } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";
import { type AgentSettings, agentObjects } from "./agent-objects.ts";
import { FIELD_MANAGER } from "./credentials.ts";
import {
  accessAccountObjects,
  accessObjects,
  type GrantedTypes,
  type HostAccount,
  type ImpersonationRules,
  systemNamespace,
  typeObjects,
} from "./member-objects.ts";
import type { MemberContext } from "./validate.ts";

/** A host's rights in a member. */
interface Granted extends GrantedTypes {
  /** Undefined: users of the host do not reach the member. */
  readonly impersonation: ImpersonationRules | undefined;
  readonly agent: AgentSettings | undefined;
}

/** Returns a host's role in a member, and the objects that it owns. */
export function objectsInMember(
  base: Manifest,
  account: HostAccount,
  { impersonation, agent, ...types }: Granted,
): { readonly role: Manifest; readonly owned: readonly Manifest[] } {
  const { role, user, binding } = accessObjects(base, account);
  const ofUsers = impersonation === undefined ? [] : accessAccountObjects(account, impersonation);
  const ofAgent = agent === undefined ? [] : agentObjects(account, agent);
  return { role, owned: [user, binding, ...typeObjects(types, account), ...ofUsers, ...ofAgent] };
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
