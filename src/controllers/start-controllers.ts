import { DEFAULT_HOST_NAME, recordedHostName } from "../clusters/host-name.ts";
import type { ClusterClient } from "../kube/client.ts";
import { namespaces } from "../kube/resources.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { Controllers } from "./controllers.ts";
import { publishedServer } from "./home-api/address.ts";
import type { ControllersOptions } from "./options.ts";

export type RunningControllers = Pick<Controllers, "registry" | "stop">;

/** Starts all controllers. Only for the leader. */
export async function startControllers(options: ControllersOptions, signal: AbortSignal): Promise<RunningControllers> {
  const { host, log } = options;
  const identity = await readIdentity(host, signal);
  const homeApiServer = options.homeApiServer ?? (await publishedServer(host, signal));
  const controllers = new Controllers(options, { identity, homeApiServer });
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

/** The host's name is the one that `legation install` recorded. */
async function readIdentity(host: ClusterClient, signal: AbortSignal): Promise<HostIdentity> {
  const system = await host.get(namespaces, { name: "kube-system" }, { signal });
  return { id: system.metadata.uid, name: (await recordedHostName(host, signal)) ?? DEFAULT_HOST_NAME };
}
