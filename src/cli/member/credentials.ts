import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import { type Secret, type Stored, secretText } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { remove } from "../shared/removal.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { credentialsSecretName } from "./access.ts";

/** Returns the member whose credentials `join` stored in the Secret, by both of its marks. Undefined for an operator's own. */
export function joinedMemberOf({ metadata }: Stored<Secret>): string | undefined {
  const { name, labels = {}, annotations = {} } = metadata;
  const member = TOKEN_EXPIRES_ANNOTATION in annotations ? labels[VIRTUAL_NODE_LABEL] : undefined;
  return member !== undefined && name === credentialsSecretName(member) ? member : undefined;
}

/** Returns why a Secret is not the one that `join` made for the member. Undefined when it is. */
export function whyForeign(secret: Stored<Secret>, member: string): string | undefined {
  if (joinedMemberOf(secret) === member) return undefined;
  const { name, labels = {}, annotations = {} } = secret.metadata;
  if (name !== credentialsSecretName(member)) return `its name is not ${credentialsSecretName(member)}`;
  const lacks = [
    ...(labels[VIRTUAL_NODE_LABEL] === member ? [] : [`no label ${VIRTUAL_NODE_LABEL}=${member}`]),
    ...(TOKEN_EXPIRES_ANNOTATION in annotations ? [] : [`no annotation ${TOKEN_EXPIRES_ANNOTATION}`]),
  ];
  return `it has ${lacks.join(" and ")}`;
}

/** Returns the Secrets that may hold a member's credentials: the one of `join`, and the one that the Cluster names. */
export async function findCredentials(
  host: ClusterClient,
  name: string,
  cluster: Stored<Cluster> | undefined,
  signal: AbortSignal,
): Promise<readonly Stored<Secret>[]> {
  const joined = credentialsSecretName(name);
  const names = new Set([joined, cluster?.spec.credentialsSecret.name ?? joined]);
  const found = [...names].map((each) => host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: each }, { signal }));
  return (await Promise.all(found)).filter((each) => each !== undefined);
}

/** Removes the credentials that `join` created, by uid. Resolves to the others, which stay: `Secret member-west: it has no label …`. */
export async function removeCredentials(
  host: ClusterClient,
  name: string,
  found: readonly Stored<Secret>[],
  { signal, report }: Pick<HostContext, "signal" | "report">,
): Promise<readonly string[]> {
  const kept: string[] = [];
  for (const secret of found) {
    const { uid, name: secretName } = secret.metadata;
    const what = `${host.cluster}: Secret ${secretName}`;
    const why = whyForeign(secret, name);
    if (why !== undefined) {
      kept.push(`Secret ${secretName}: ${why}`);
      report(
        `${what} stays: ${why}, so it is not as \`legation join ${name}\` makes it; delete it when nothing needs it`,
      );
    } else if (await remove(host, secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { uid, signal })) {
      report(`${what} removed`);
    }
  }
  return kept;
}

/** Connects to a member with the host's stored credentials. Undefined without usable ones, as of a member behind an agent. */
export async function storedConnection(
  { host, connectText, signal, report }: HostContext,
  name: string,
  cluster: Stored<Cluster> | undefined,
): Promise<Connection | undefined> {
  if (cluster?.spec.agent !== undefined) return undefined;
  const { name: secretName, key = CLUSTER_DEFAULTS.credentialsKey } = cluster?.spec.credentialsSecret ?? {
    name: credentialsSecretName(name),
  };
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { signal });
  const kubeconfig = secretText(secret, key);
  if (kubeconfig === undefined) return undefined;
  try {
    return await connectText(kubeconfig, name);
  } catch (error) {
    if (!isKubeError(error, "BadCredentials")) throw error;
    report(`${name}: the stored credentials cannot be used: ${error.detail}`);
    return undefined;
  }
}
