import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { NODE_IMAGES } from "../clusters/node/config.ts";
import { realNodesPossible } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { clientOf } from "../harness/clients.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { kubectl } from "../harness/kubectl.ts";
import { freshNamespace } from "../harness/namespace.ts";
import { podsOf } from "../harness/pods-of.ts";
import { eventuallyPasses } from "../harness/wait.ts";
import { type Legation, startLegation } from "../legation/start.ts";
import { type Engine, type EngineFolder, ensureEngine } from "./python.ts";

/** The one image of real nodes. */
export const IMAGE: string = NODE_IMAGES[0];

/** A host that runs nothing itself, and a member whose containers really run and find the host as their own API server. */
export interface EngineClusters {
  readonly legation: Legation;
  readonly host: Cluster;
  readonly west: Cluster;
  readonly client: ClusterClient;
  readonly member: ClusterClient;
  /** The machine's address as containers of the member see it. */
  readonly address: string;
  /** A folder for an engine's files. */
  readonly directory: string;
  /** A namespace of the host with what an engine's namespace needs, which is one label; deleted after the test, whose hook this takes. */
  namespace(onFinished: (cleanUp: () => Promise<void>) => void): Promise<string>;
}

/** Tests of engines; where no container can run, the reason is what there is to test. */
export function onEngineClusters(tests: (clusters: () => EngineClusters) => void): void {
  const obstacle = realNodesPossible();
  // Engines alone take most of a minute, and minutes where much else runs.
  describe("on a real node", { timeout: 600_000 }, () => {
    if (obstacle === undefined) {
      tests(useEngineClusters());
      return;
    }
    test("says why no engine can be tried here", async () => {
      const start = startClusters({ names: ["real"], clusters: { real: { realNode: true } } });
      await expect(start).rejects.toThrow(`No real node can run here: ${obstacle}`);
      expect(process.env.LEGATION_REAL_NODES, obstacle).not.toBe("required");
    });
  });
}

/** Installs an engine before the tests of a file. */
export function useEngine(engine: Engine): () => EngineFolder {
  let folder: EngineFolder | undefined;
  beforeAll(async () => {
    folder = await ensureEngine(engine, (line) => process.stderr.write(`engines: ${line}\n`));
  }, 600_000);
  return () => {
    if (folder === undefined) throw new Error(`${engine} is installed from the file's beforeAll on: ask in a test.`);
    return folder;
  };
}

/** Waits until nothing of a finished task is left, on the host or in the member. */
export async function noPodIsLeft({ client, member }: EngineClusters, namespace: string): Promise<void> {
  await eventuallyPasses(async () => {
    expect(await podsOf(client, namespace)).toEqual([]);
    expect(await podsOf(member, namespace)).toEqual([]);
  });
}

async function serviceAddress(cluster: Cluster): Promise<string> {
  return (await kubectl(cluster, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"])).trim();
}

/** Starts Legation on the shared clusters for all tests of a file. */
function useEngineClusters(): () => EngineClusters {
  let running: EngineClusters | undefined;
  const directory = mkdtempSync(join(tmpdir(), "legation-engine-"));
  beforeAll(async () => {
    const [host, west] = [hostCluster(), memberCluster("west")];
    const controllerFlags = [`--home-api-server=https://${await serviceAddress(host)}`];
    const legation = await startLegation({
      host,
      members: { west },
      controllerFlags,
      homeApiThroughAgents: true,
      restart: true,
    });
    running = {
      legation,
      host,
      west,
      client: clientOf(host),
      member: clientOf(west),
      // The node's link leads to the machine, where the API server answers.
      address: await serviceAddress(west),
      directory,
      namespace: (onFinished) =>
        freshNamespace(host, { prefix: "engine", labels: { "legation.dev/delegation": "all" }, onFinished }),
    };
  });
  afterAll(async () => {
    await running?.legation.stop();
    await Promise.all([running?.client.close(), running?.member.close()]);
    rmSync(directory, { recursive: true, force: true });
  });
  return () => {
    if (running === undefined) throw new Error("Legation runs from the file's beforeAll on: ask in a test.");
    return running;
  };
}
