import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import type { Cluster } from "../clusters/types.ts";
import { KUEUE_NAMESPACE } from "../engines/kueue.ts";
import { startKueue } from "../engines/kueue-manager.ts";
import { startOperator } from "../engines/operator.ts";
import { ensurePrograms } from "../engines/programs.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";

const FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset", "pod", "deployment", "statefulset"];
const NAME = "kueue-controller-manager";
const labels = { app: NAME };
// The suite's flavors select nodes by this label.
const NODES_LABEL = "instance-type=on-demand";

const settings = z.object({ controller: z.unknown(), fairSharing: z.unknown(), featureGates: z.looseObject({}) });

interface KueueOptions {
  /** Cluster on whose nodes the pods run. */
  readonly ofNodes: Cluster;
  /** A folder for files that go with the clusters. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

/** Starts JobSet's controller, and Kueue with the configuration that its suite expects. Resolves to what ends both. */
export async function startKueueOfSuite(
  cluster: Cluster,
  { ofNodes, directory, onProgress }: KueueOptions,
): Promise<() => Promise<void>> {
  const jobset = await ensurePrograms("jobset", onProgress);
  const operator = await startOperator({
    host: cluster,
    program: join(jobset, "jobset"),
    manifests: join(jobset, "config", "default"),
    directory: mkdtempSync(join(directory, "jobset-")),
  });
  const file = join(await ensurePrograms("kueue-suite", onProgress), "config", "controller_manager_config.yaml");
  const { controller, fairSharing, featureGates } = settings.parse(parse(readFileSync(file, "utf8")));
  const kueue = await startKueue(cluster, {
    frameworks: FRAMEWORKS,
    configuration: {
      controller,
      fairSharing,
      featureGates: { ...featureGates, VisibilityOnDemand: false },
      // The suite waits for the lease.
      leaderElection: { leaderElect: true, resourceNamespace: KUEUE_NAMESPACE },
    },
  });
  // The suite waits for Kueue's Deployment, too, with as many pods as it has replicas: Kueue is a process of this machine.
  const template = { metadata: { labels }, spec: { containers: [{ name: "manager", image: "localhost/busybox:1" }] } };
  await applyAll(cluster, [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { namespace: KUEUE_NAMESPACE, name: NAME },
      spec: { replicas: 0, selector: { matchLabels: labels }, template },
    },
  ]);
  await kubectl(ofNodes, ["label", "nodes", "--all", NODES_LABEL]);
  return () => kueue.stop().finally(() => operator.stop());
}
