import {
  PLACE_WITHIN_ANNOTATION,
  QUOTA_ANNOTATION,
  QUOTA_SHARE_ANNOTATION,
  ROOM_CONTROLLER,
} from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { isTrue, type Workload } from "../../../src/api/kueue-workload.ts";
import { type KueueManager, startKueue } from "../../support/engines/kueue-manager.ts";
import { clusterQueue, flavor, localQueue, queuesV1beta2 } from "../../support/engines/kueue-objects.ts";
import { workloadsV1beta2 } from "../../support/engines/kueue-scheduler.ts";
import { applyAll } from "../../support/harness/kubectl.ts";
import type { Scene } from "../scene.ts";

/** Two queues, which lend to each other. */
export const QUEUES = ["first", "second"] as const;
const CHECK = "room";
const KUEUE = "kueue.x-k8s.io/v1beta2";
/** Each queue's share of the members' cores: a few Jobs of a run fill it. */
const SHARE = "20%";
/** WorkloadPriorityClasses. */
export const PRIORITIES = { low: 10, urgent: 1000 };

/** Starts Kueue on the host, with queues for the members whose quotas follow them, and which ask Legation for room. */
export async function startQueues({ host, namespace }: Pick<Scene, "host" | "namespace">): Promise<KueueManager> {
  const kueue = await startKueue(host, { frameworks: ["batch/job", "pod"] });
  const spec = {
    cohortName: "all",
    preemption: { withinClusterQueue: "LowerPriority", reclaimWithinCohort: "Any" },
    admissionChecksStrategy: { admissionChecks: [{ name: CHECK }] },
  };
  const annotations = { [QUOTA_ANNOTATION]: "follow", [QUOTA_SHARE_ANNOTATION]: SHARE };
  await applyAll(host, [
    ...["west", "east"].map((name) => flavor(name, { "legation.dev/cluster": name })),
    ...Object.entries(PRIORITIES).map(([name, value]) => {
      return { apiVersion: KUEUE, kind: "WorkloadPriorityClass", metadata: { name }, value };
    }),
    {
      apiVersion: KUEUE,
      kind: "AdmissionCheck",
      metadata: { name: CHECK, annotations: { [PLACE_WITHIN_ANNOTATION]: "20s" } },
      spec: { controllerName: ROOM_CONTROLLER },
    },
    ...QUEUES.map((name) => clusterQueue(name, { west: { cpu: "0" }, east: { cpu: "0" } }, { annotations, spec })),
    ...QUEUES.map((name) => localQueue(namespace, name)),
  ]);
  return kueue;
}

/** Starts all workloads that were stopped, or that a check rejected. */
export async function startStopped({ clients: { host }, namespace }: Scene): Promise<void> {
  for (const { metadata, spec, status } of (await host.list(workloadsV1beta2, { namespace })).items) {
    if (spec?.active !== false || isTrue({ status: status ?? {} }, "Finished")) continue;
    const body = { spec: { active: true } };
    await host.patch(workloadsV1beta2, { namespace, name: metadata.name }, { type: "merge", body });
  }
}

/** Has a queue hold back its workloads: what runs as well, or not, or nothing. */
export async function holdQueue({ clients: { host } }: Scene, name: string, stopPolicy: string): Promise<void> {
  await host.patch(queuesV1beta2, { name }, { type: "merge", body: { spec: { stopPolicy } } });
}

export async function shareQueue({ clients: { host } }: Scene, name: string, share: string = SHARE): Promise<void> {
  const body = { metadata: { annotations: { [QUOTA_SHARE_ANNOTATION]: share } } };
  await host.patch(queuesV1beta2, { name }, { type: "merge", body });
}

/** Has all queues admit again what was stopped. */
export async function mendQueues(scene: Scene): Promise<void> {
  for (const name of QUEUES) {
    await holdQueue(scene, name, "None");
    await shareQueue(scene, name);
  }
  await startStopped(scene);
}

export async function queuedWorkloads({ clients: { host }, namespace }: Scene): Promise<readonly Stored<Workload>[]> {
  return (await host.list(workloadsV1beta2, { namespace })).items;
}
