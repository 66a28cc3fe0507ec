import { afterAll, beforeAll } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import type { Cluster } from "../clusters/types.ts";
import { hostCluster, memberCluster } from "./clusters.ts";

/** An administrator's clients of the shared clusters. */
export interface Clients {
  readonly host: ClusterClient;
  readonly west: ClusterClient;
  readonly east: ClusterClient;
}

// As patient as kubectl: a busy machine's API server may take long, and tests judge what comes of it.
const PATIENT_MS = 120_000;

/** Returns an administrator's client of one cluster, for the caller to close. */
export function clientOf({ name, kubeconfig }: Cluster): ClusterClient {
  return createClusterClient({
    cluster: name,
    credentials: loadKubeConfig({ kubeconfig, env: {} }),
    userAgent: "test",
    limits: { timeoutMs: PATIENT_MS, queueTimeoutMs: PATIENT_MS },
  });
}

/** Opens the clients for all tests of a file. */
export function useClients(): () => Clients {
  let clients: Clients | undefined;
  beforeAll(() => {
    clients = {
      host: clientOf(hostCluster()),
      west: clientOf(memberCluster("west")),
      east: clientOf(memberCluster("east")),
    };
  });
  afterAll(async () => {
    await Promise.all(Object.values(clients ?? {}).map((client: ClusterClient) => client.close()));
  });
  return () => {
    if (clients === undefined) throw new Error("The clients are there from the file's beforeAll on: ask in a test.");
    return clients;
  };
}
