import { DELEGATE_ANNOTATION, WHOLE_KEY } from "../../../src/api/keys.ts";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { QUEUE_NAME_LABEL } from "../../../src/api/kueue.ts";
import { isTrue } from "../../../src/api/kueue-workload.ts";
import { jobs } from "../../../src/kube/resources.ts";
import { KWOK_ANNOTATIONS } from "../../support/clusters/stages.ts";
import { workloadsV1beta2 } from "../../support/engines/kueue-scheduler.ts";
import { createIn } from "../../support/harness/workloads.ts";
import { pick } from "../plan.ts";
import type { Scene } from "../scene.ts";
import type { QueueDeed } from "./plan.ts";
import { holdQueue, type PRIORITIES, QUEUES, queuedWorkloads, shareQueue, startStopped } from "./setup.ts";

const PRIORITY_LABEL = "kueue.x-k8s.io/priority-class";
// Names of Jobs and pods in queues begin so.
const QUEUED = "queued-";

interface Queued {
  readonly name: string;
  readonly dice: number;
  readonly priority: keyof typeof PRIORITIES;
  readonly isWhole: boolean;
}

/** Does what an author or the operator of the queues would do. */
export async function actOnQueues(
  scene: Scene,
  { deed, number, dice }: { readonly deed: QueueDeed; readonly number: number; readonly dice: number },
): Promise<void> {
  const { clients, namespace } = scene;
  const { host } = clients;
  const make = async (object: KubeObject): Promise<void> => void (await createIn(host, namespace, [object]));
  const name = `${QUEUED}${number}`;
  switch (deed) {
    case "queue a Job":
      return make(queuedJob({ name, dice, priority: "low", isWhole: false }));
    case "queue an urgent Job":
      return make(queuedJob({ name, dice, priority: "urgent", isWhole: false }));
    case "queue a whole Job":
      return make(queuedJob({ name, dice, priority: "low", isWhole: true }));
    case "queue an urgent whole Job":
      return make(queuedJob({ name, dice, priority: "urgent", isWhole: true }));
    case "queue a pod":
      return make(queuedPod(name, dice));
    case "delete a queued Job": {
      const { items } = await host.list(jobs, { namespace, labelSelector: QUEUE_NAME_LABEL });
      if (items.length === 0) return;
      await host.delete(jobs, { namespace, name: pick(items, dice).metadata.name });
      return;
    }
    case "stop a queued workload": {
      const found = (await queuedWorkloads(scene)).filter((one) => !isTrue(one, "Finished"));
      if (found.length === 0) return;
      const ref = { namespace, name: pick(found, dice).metadata.name };
      await host.patch(workloadsV1beta2, ref, { type: "merge", body: { spec: { active: false } } });
      return;
    }
    case "start what was stopped":
      return startStopped(scene);
    case "hold a queue":
      return holdQueue(scene, pick(QUEUES, dice), pick(["None", "Hold", "HoldAndDrain"], (dice * 7) % 1));
    case "change a queue's share":
      return shareQueue(scene, pick(QUEUES, dice), `${5 + Math.floor(((dice * 7) % 1) * 30)}%`);
  }
}

/** A Job of pods that succeed after some seconds. */
function queuedJob({ name, dice, priority, isWhole }: Queued): KubeObject {
  const { cpu, endsAfter, queue } = rolled(dice);
  const completions = 1 + Math.floor(((dice * 13) % 1) * 4);
  const template = {
    metadata: { annotations: { ...endsAfter, ...(isWhole ? {} : { [DELEGATE_ANNOTATION]: "true" }) } },
    spec: { containers: [container(cpu)], restartPolicy: "Never" },
  };
  const metadata = {
    name,
    labels: { [QUEUE_NAME_LABEL]: queue, [PRIORITY_LABEL]: priority },
    annotations: isWhole ? { [WHOLE_KEY]: "true" } : {},
  };
  const spec = { suspend: true, completions, parallelism: completions, backoffLimit: 100, template };
  const object = { apiVersion: "batch/v1", kind: "Job", metadata, spec };
  return object;
}

function queuedPod(name: string, dice: number): KubeObject {
  const { cpu, endsAfter, queue } = rolled(dice);
  const metadata = {
    name,
    labels: { [QUEUE_NAME_LABEL]: queue },
    annotations: { ...endsAfter, [DELEGATE_ANNOTATION]: "true" },
  };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata,
    spec: { containers: [container(cpu)], restartPolicy: "Never" },
  };
  return pod;
}

function rolled(dice: number): {
  readonly cpu: string;
  readonly endsAfter: Readonly<Record<string, string>>;
  readonly queue: string;
} {
  return {
    cpu: String(1 + Math.floor(((dice * 5) % 1) * 6)),
    endsAfter: {
      [KWOK_ANNOTATIONS.outcome]: "succeeded",
      [KWOK_ANNOTATIONS.endsAfter]: `${2 + Math.floor(((dice * 11) % 1) * 10)}s`,
    },
    queue: pick(QUEUES, (dice * 3) % 1),
  };
}

function container(cpu: string): object {
  return { name: "main", image: "main:1", resources: { requests: { cpu } } };
}
