import type { ControllersOptions } from "../../../src/controllers/options.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { credentialsFromKubeconfigText } from "../../../src/kube/kubeconfig.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type Fleet, kubeconfigOf } from "./fleet.ts";

/** The dependencies of controllers that run in this process on a fleet. */
export function controllersOf({ host }: Fleet): ControllersOptions {
  return {
    host: connect("host", kubeconfigOf("host", host.url)),
    connect: (name, kubeconfig) => ({
      client: connect(name, kubeconfig),
      server: "https://member",
      renew: () => false,
    }),
    clock: realClock,
    log: createLogger({ level: "silent" }),
  };
}

function connect(cluster: string, kubeconfig: string): ClusterClient {
  const credentials = credentialsFromKubeconfigText(kubeconfig, { allowExec: false, env: {}, source: cluster });
  return createClusterClient({ cluster, credentials });
}
