import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { startSecondScheduler } from "../clusters/second-scheduler.ts";
import type { Cluster } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { installDefinitions } from "../harness/definitions.ts";
import { applyAll } from "../harness/kubectl.ts";
import { ensurePrograms } from "./programs.ts";
import { startProgram } from "./run.ts";

const ROLE = "scheduler-plugins";
const role = z.looseObject({ rules: z.array(z.looseObject({})) });

/** Installs the definitions of PodGroups and ElasticQuotas. */
export async function installPodGroups(cluster: Cluster): Promise<void> {
  await installDefinitions(cluster, join(await ensurePrograms("coscheduling", () => {}), "crds"));
}

/** Starts a scheduler with the coscheduling plugin, and the controller of its PodGroups. Returns its `spec.schedulerName`. */
export async function startCoscheduling(cluster: Cluster): Promise<string> {
  const folder = await ensurePrograms("coscheduling", () => {});
  // The project's role has the singular of a resource, so that its controller would wait for ever.
  const text = readFileSync(join(folder, "rbac", "role.yaml"), "utf8").replaceAll("elasticquota", "elasticquotas");
  const { rules } = role.parse(parse(text));
  await applyAll(cluster, [
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: ROLE }, rules },
  ]);
  const {
    schedulerName,
    kubeconfig,
    process: scheduler,
  } = await startSecondScheduler(cluster, {
    command: join(folder, "scheduler"),
    roles: [ROLE],
    // As in manifests/coscheduling of the project.
    profile: {
      plugins: {
        multiPoint: { enabled: [{ name: "Coscheduling" }] },
        queueSort: { enabled: [{ name: "Coscheduling" }], disabled: [{ name: "*" }] },
      },
      pluginConfig: [{ name: "Coscheduling", args: { permitWaitingTimeSeconds: 10 } }],
    },
  });
  afterFile(() => scheduler.stop("SIGKILL"));
  const controller = startProgram(join(folder, "controller"), ["--metricsAddr=0", "--probeAddr=0"], {
    env: { ...process.env, KUBECONFIG: kubeconfig },
    cwd: cluster.directory,
    logFile: join(cluster.directory, "scheduler-plugins-controller.log"),
  });
  afterFile(async () => {
    controller.kill("SIGKILL");
    await controller.ended;
  });
  return schedulerName;
}
