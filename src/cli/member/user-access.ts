import { ACCESS_KUBECONFIG_KEY, ACCESS_NAMESPACE, accessAccountName, accessSecretName } from "../../api/access.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { secretText } from "../../api/kubernetes.ts";
import { secrets, serviceAccounts } from "../../kube/resources.ts";
import { objectText } from "../shared/output.ts";
import { remove } from "../shared/removal.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "./access.ts";

export async function storedAccess(
  cluster: string,
  { host, signal }: Pick<HostContext, "host" | "signal">,
): Promise<string | undefined> {
  const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(cluster) };
  return secretText(await host.find(secrets, ref, { signal }), ACCESS_KUBECONFIG_KEY);
}

/** Removes what is stored for `legation access`, so that users reach the member no more. */
export async function removeAccessCredentials(
  cluster: string,
  { host, signal, report }: Pick<HostContext, "host" | "signal" | "report">,
): Promise<void> {
  const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(cluster) };
  if (await remove(host, secrets, ref, { signal })) {
    report(`${host.cluster}: Secret ${ref.namespace}/${ref.name} removed`);
  }
}

export async function removeAccessAccount(
  hostId: string,
  { member, signal, report }: HostContext & { readonly member: Connection },
): Promise<void> {
  const name = accessAccountName(hostId);
  const inNamespace = { namespace: SYSTEM_NAMESPACE, name };
  const parts = [
    { resource: clusterRoleBindings, ref: { name } },
    { resource: clusterRoles, ref: { name } },
    { resource: roleBindings, ref: inNamespace },
    { resource: roles, ref: inNamespace },
    { resource: serviceAccounts, ref: inNamespace },
  ];
  const { client } = member;
  for (const { resource, ref } of parts) {
    if (await remove(client, resource, ref, { signal })) {
      report(`${client.cluster}: ${objectText(resource.kind, ref)} removed`);
    }
  }
}
