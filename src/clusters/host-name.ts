import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";

export const HOST_CONFIG_NAME = "legation";
export const HOST_NAME_KEY = "cluster-name";
export const DEFAULT_HOST_NAME = "host";

/** Returns undefined before `legation install` has recorded it. */
export async function recordedHostName(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await host.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: HOST_CONFIG_NAME }, { signal });
  return found?.data?.[HOST_NAME_KEY];
}
