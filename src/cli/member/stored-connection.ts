import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Stored, secretText } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import type { Connection } from "../session.ts";
import { credentialsSecretName } from "./names.ts";

/** How a command reaches the host and, with what that has stored for them, its members. */
export interface HostContext {
  readonly host: ClusterClient;
  readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

/** The member with the credentials that the host has for it. */
export async function storedConnection(
  { host, connectText, signal, report }: HostContext,
  name: string,
  cluster: Stored<Cluster> | undefined,
): Promise<Connection | undefined> {
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
