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
export function joinedMemberOf(secret: Stored<Secret>): string | undefined {
  const member = secret.metadata.labels?.[VIRTUAL_NODE_LABEL];
  return member !== undefined && whyForeign(secret, member) === undefined ? member : undefined;
}

/** Returns why a Secret is not the one that `join` made for the member. Undefined when it is. */
export function whyForeign(
  { metadata: { name, labels, annotations = {} } }: Stored<Secret>,
  member: string,
): string | undefined {
  const wanted = credentialsSecretName(member);
  if (name !== wanted) return `its name is not ${wanted}`;
  const lacks = [
    ...(labels?.[VIRTUAL_NODE_LABEL] === member ? [] : [`no label ${VIRTUAL_NODE_LABEL}=${member}`]),
    ...(TOKEN_EXPIRES_ANNOTATION in annotations ? [] : [`no annotation ${TOKEN_EXPIRES_ANNOTATION}`]),
  ];
  return lacks.length === 0 ? undefined : `it has ${lacks.join(" and ")}`;
}

/** The Secret with a member's credentials. */
export interface MemberSecret {
  readonly name: string;
  /** The reason why the Secret is an operator's own, and not that of `join`. */
  readonly foreign: string | undefined;
  readonly kubeconfig: string | undefined;
}

/** Reads the Secret that the Cluster names, or without one that of `join`. */
export async function findMemberSecret(
  host: ClusterClient,
  member: string,
  cluster: Stored<Cluster> | undefined,
  signal: AbortSignal,
): Promise<MemberSecret> {
  const wanted = credentialsSecretName(member);
  const { name, key = CLUSTER_DEFAULTS.credentialsKey } = cluster?.spec.credentialsSecret ?? { name: wanted };
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name }, { signal });
  const otherKey = key === CLUSTER_DEFAULTS.credentialsKey ? undefined : `the Cluster names its key ${key}`;
  const otherName = name === wanted ? undefined : `its name is not ${wanted}`;
  const foreign = otherName ?? otherKey ?? (secret && whyForeign(secret, member));
  return { name, foreign, kubeconfig: secretText(secret, key) };
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
  const { kubeconfig } = await findMemberSecret(host, name, cluster, signal);
  if (kubeconfig === undefined) return undefined;
  try {
    return await connectText(kubeconfig, name);
  } catch (error) {
    if (!isKubeError(error, "BadCredentials")) throw error;
    report(`${name}: the stored credentials cannot be used: ${error.detail}`);
    return undefined;
  }
}
