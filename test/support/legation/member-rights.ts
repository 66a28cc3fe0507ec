import { HOST_LABEL } from "../../../src/api/keys.ts";
import { clusterRoles } from "../../../src/cli/member/access.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";

interface Rule {
  readonly resources?: readonly string[];
}

/** Takes the host's right to a resource of a member away, as if it had joined with an earlier version; what is returned gives it back. */
export async function withoutMemberRight(member: ClusterClient, resource: string): Promise<() => Promise<void>> {
  const { items } = await member.list(clusterRoles, { labelSelector: HOST_LABEL });
  const [role]: { readonly metadata: { readonly name: string }; readonly rules?: readonly Rule[] }[] = items;
  if (role === undefined) throw new Error("the member has no role of this host");
  const { metadata, rules = [] } = role;
  const set = async (next: readonly Rule[]): Promise<void> => {
    await member.patch(clusterRoles, { name: metadata.name }, { type: "merge", body: { rules: next } });
  };
  await set(rules.filter(({ resources = [] }) => !resources.includes(resource)));
  return () => set(rules);
}
