import { afterAll, beforeAll } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/connect.ts";
import { loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import { hostCluster, memberCluster } from "./clusters.ts";

/** An administrator's clients of the shared clusters. */
export interface Clients {
  readonly host: ClusterClient;
  readonly west: ClusterClient;
  readonly east: ClusterClient;
}

/** Opens the clients for all tests of a file. */
export function useClients(): () => Clients {
  let clients: Clients | undefined;
  beforeAll(() => {
    const connect = (cluster: string, kubeconfig: string): ClusterClient =>
      createClusterClient({ cluster, credentials: loadKubeConfig({ kubeconfig, env: {} }), userAgent: "test" });
    clients = {
      host: connect("host", hostCluster().kubeconfig),
      west: connect("west", memberCluster("west").kubeconfig),
      east: connect("east", memberCluster("east").kubeconfig),
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
