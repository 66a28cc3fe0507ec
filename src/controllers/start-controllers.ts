import { DEFAULT_HOST_NAME, recordedHost } from "../clusters/host-name.ts";
import type { ClusterClient } from "../kube/client.ts";
import { namespaces } from "../kube/resources.ts";
import { Controllers, type HostOptions } from "./controllers.ts";
import { publishedServer } from "./home-api/address.ts";
import type { ControllersOptions } from "./options.ts";

export type RunningControllers = Pick<Controllers, "registry" | "stop">;

/** Starts all controllers. Only for the leader. */
export async function startControllers(options: ControllersOptions, signal: AbortSignal): Promise<RunningControllers> {
  const { host, log } = options;
  const { identity, network, mcs } = await readHost(host, signal);
  const homeApiServer = options.homeApiServer ?? (await publishedServer(host, signal));
  const controllers = new Controllers(options, { identity, network, mcs, homeApiServer });
  try {
    await controllers.start(signal);
  } catch (error) {
    // Started parts would run for ever, and a process that lost its lease would not end.
    await controllers.stop();
    throw error;
  }
  log.info({ host: identity.name, clusters: controllers.registry.clusters().length }, "controllers started");
  return { registry: controllers.registry, stop: () => controllers.stop() };
}

/** The host's name and network are those that `legation install` recorded. */
async function readHost(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<Pick<HostOptions, "identity" | "network" | "mcs">> {
  const system = await host.get(namespaces, { name: "kube-system" }, { signal });
  const { name = DEFAULT_HOST_NAME, network, mcs } = await recordedHost(host, signal);
  return { identity: { id: system.metadata.uid, name }, network, mcs };
}
