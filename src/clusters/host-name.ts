import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";

export const HOST_CONFIG_NAME = "legation";
export const HOST_NAME_KEY = "cluster-name";
export const HOST_NETWORK_KEY = "network";
export const HOST_MCS_KEY = "mcs";
export const DEFAULT_HOST_NAME = "host";

/** The host's settings that `legation install` recorded. */
export interface RecordedHost {
  readonly name: string | undefined;
  /** The network of its pods. Undefined: members reach none of them. */
  readonly network: string | undefined;
  /** Legation implements the Multi-Cluster Services API in joined networks. */
  readonly mcs: boolean;
}

/** Returns what was recorded; nothing before `legation install`. */
export async function recordedHost(host: ClusterClient, signal: AbortSignal): Promise<RecordedHost> {
  const found = await host.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: HOST_CONFIG_NAME }, { signal });
  const { [HOST_NAME_KEY]: name, [HOST_NETWORK_KEY]: network = "", [HOST_MCS_KEY]: mcs } = found?.data ?? {};
  return { name, network: network === "" ? undefined : network, mcs: mcs === "true" };
}

/** Returns undefined before `legation install` has recorded it. */
export async function recordedHostName(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  return (await recordedHost(host, signal)).name;
}
