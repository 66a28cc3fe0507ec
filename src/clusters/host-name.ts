import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";

export const HOST_CONFIG_NAME = "legation";
export const HOST_NAME_KEY = "cluster-name";
export const HOST_NETWORK_KEY = "network";
export const DEFAULT_HOST_NAME = "host";

/** The host's settings that `legation install` recorded. */
export interface RecordedHost {
  readonly name: string | undefined;
  /** The network of its pods. Undefined: members reach none of them. */
  readonly network: string | undefined;
}

/** Returns what was recorded; nothing before `legation install`. */
export async function recordedHost(host: ClusterClient, signal: AbortSignal): Promise<RecordedHost> {
  const found = await host.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: HOST_CONFIG_NAME }, { signal });
  const { [HOST_NAME_KEY]: name, [HOST_NETWORK_KEY]: network = "" } = found?.data ?? {};
  return { name, network: network === "" ? undefined : network };
}

/** Returns undefined before `legation install` has recorded it. */
export async function recordedHostName(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  return (await recordedHost(host, signal)).name;
}
