import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { realNodesPossible } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { type Legation, startLegation } from "../legation/start.ts";
import { cleanUpFile } from "./after-file.ts";
import { clientOf } from "./clients.ts";
import { hostCluster, memberCluster, plainCluster } from "./clusters.ts";
import { freshNamespace, type NamespaceOptions } from "./namespace.ts";

/** A namespace and a client of one cluster. */
export interface Place {
  readonly cluster: Cluster;
  readonly client: ClusterClient;
  readonly namespace: string;
}

/** Clusters whose containers really run: a plain one, and a member of a host that runs nothing itself. */
export interface RealNodes {
  readonly legation: Legation;
  /** A namespace of the plain cluster, and one of the host that delegates all its pods; deleted after the test. */
  places(
    options?: Pick<NamespaceOptions, "onFinished">,
  ): Promise<{ readonly plain: Place; readonly delegating: Place }>;
  /** The namespace in the member. */
  inMember(place: Place): Place;
}

/** Tests that need real nodes. These need root and cgroups; where there are none, the reason is what there is to test. */
export function whereRealNodesRun(tests: () => void): void {
  const obstacle = realNodesPossible();
  describe("on a real node", () => {
    if (obstacle === undefined) {
      tests();
      return;
    }
    test("says why no real node can run here", async () => {
      const start = startClusters({ names: ["real"], clusters: { real: { realNode: true } } });
      await expect(start).rejects.toThrow(`No real node can run here: ${obstacle}`);
      expect(process.env.LEGATION_REAL_NODES, obstacle).not.toBe("required");
    });
  });
}

/** Tests on a plain cluster with a real node, and on a host whose member has one. */
export function onRealNodes(tests: (realNodes: () => RealNodes) => void): void {
  whereRealNodesRun(() => tests(useRealNodes()));
}

/** Starts Legation on the shared clusters for all tests of a file. */
function useRealNodes(): () => RealNodes {
  let legation: Legation | undefined;
  let real: RealNodes | undefined;
  const clients: ClusterClient[] = [];
  beforeAll(async () => {
    const connect = (cluster: Cluster): ClusterClient => {
      const client = clientOf(cluster);
      clients.push(client);
      return client;
    };
    const [hostSide, memberSide, plainSide] = [hostCluster(), memberCluster("west"), plainCluster()];
    const [host, west, plain] = [connect(hostSide), connect(memberSide), connect(plainSide)];
    legation = await startLegation({ host: hostSide, members: { west: memberSide }, restart: true });
    real = {
      legation,
      places: async (options = {}) => {
        const labels = { "legation.dev/delegation": "all" };
        // Pods use the API server where they run, as on the plain cluster.
        const annotations = { "legation.dev/api": "member" };
        const [direct, delegated] = await Promise.all([
          freshNamespace(plainSide, { ...options, prefix: "plain" }),
          freshNamespace(hostSide, { annotations, ...options, prefix: "real", labels }),
        ]);
        return {
          plain: { cluster: plainSide, client: plain, namespace: direct },
          delegating: { cluster: hostSide, client: host, namespace: delegated },
        };
      },
      inMember: ({ namespace }) => ({ cluster: memberSide, client: west, namespace }),
    };
  });
  afterAll(async () => {
    await cleanUpFile();
    await legation?.stop();
    await Promise.all(clients.map((client) => client.close()));
  });
  return () => {
    if (real === undefined) throw new Error("Legation runs from the file's beforeAll on: ask in a test.");
    return real;
  };
}
