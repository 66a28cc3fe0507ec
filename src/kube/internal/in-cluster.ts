import { existsSync, readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { type ClusterCredentials, FileValue } from "../credentials.ts";

/** The folder where the kubelet mounts a pod's service account. */
export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Returns the credentials of the pod that this process runs in. Undefined outside a cluster. */
export function inClusterCredentials(
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): ClusterCredentials | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  const tokenFile = join(folder, "token");
  if (host === undefined || port === undefined || !existsSync(tokenFile)) return undefined;
  const token = new FileValue(tokenFile, "token", folder);
  const ca = new FileValue(join(folder, "ca.crt"), "ca.crt", folder);
  const namespaceFile = join(folder, "namespace");
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    source: folder,
    ...(existsSync(namespaceFile) ? { namespace: readFileSync(namespaceFile, "utf8").trim() } : {}),
    insecureSkipTlsVerify: false,
    identity: () => ({ authorization: `Bearer ${token.read()}`, ca: ca.read() }),
    refresh: () => {
      token.refresh();
      ca.refresh();
    },
  };
}
