import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";

/** Name of the ConfigMap in Legation's namespace that holds the host's name. */
export const HOST_CONFIG_NAME = "legation";
/** Key of the name in that ConfigMap. */
export const HOST_NAME_KEY = "cluster-name";
/** Name of a host without a name of its own. */
export const DEFAULT_HOST_NAME = "host";

/** Returns the host's name as `legation install` recorded it; undefined before. */
export async function recordedHostName(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await host.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: HOST_CONFIG_NAME }, { signal });
  return found?.data?.[HOST_NAME_KEY];
}
