import type { KubeObject, Pod, Stored } from "../../../src/api/kubernetes.ts";
import { QUEUE_NAME_LABEL } from "../../../src/api/kueue.ts";
import { isTrue, kueueCondition, type Workload } from "../../../src/api/kueue-workload.ts";
import { jobs, pods, type Resource } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { isBound, isDeleting, isGated, isTerminal } from "../../../src/pods/pod-state.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { isFinished } from "../../../src/whole/jobs/kind.ts";
import { workloadsV1beta2 } from "../../support/engines/kueue-scheduler.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import type { Scene } from "../scene.ts";
import { queuedWorkloads } from "./setup.ts";

// The watches of pods and of Workloads do not tell of one moment.
const SLACK_MS = 15_000;

/** Workloads and their pods, as the host showed them. */
export interface QueueHistories {
  /** Workloads that ever were, and admissions. */
  readonly counts: () => { readonly workloads: number; readonly admissions: number; readonly evictions: number };
  /** Rules that were broken so far. */
  readonly wrong: () => readonly string[];
  readonly stop: () => Promise<void>;
}

/** Watches the host: an admission never changes but by an eviction, and no pod runs before its workload was admitted. */
export async function watchQueues({ clients: { host }, namespace }: Scene): Promise<QueueHistories> {
  const wrong = new Set<string>();
  const seen = new Set<string>();
  const admissions = new Set<string>();
  const evictions = new Set<string>();
  /** When each owner of a Workload was first admitted, and when a pod of it first ran; by uid. */
  const admittedAt = new Map<string, number>();
  const ranAt = new Map<string, { readonly at: number; readonly pod: string }>();
  /** The workload that was admitted last for each owner. */
  const admitted = new Map<string, Stored<Workload>>();
  const follow = <T extends KubeObject>(
    resource: Resource<T>,
    onObject: (object: Stored<T>, isDeleted: boolean) => void,
  ): Reflector<T> => {
    const reflector = new Reflector<T>({
      ...{ client: host, resource, namespace, clock: realClock, log: createLogger({ level: "silent" }) },
      onEvent: ({ type, object }) => onObject(object, type === "deleted"),
    });
    reflector.start();
    return reflector;
  };
  const ofWorkloads = follow(workloadsV1beta2, (workload, isDeleted) => {
    const { uid, name, ownerReferences = [] } = workload.metadata;
    seen.add(uid);
    const since = sinceOf(workload);
    const evicted = kueueCondition(workload, "Evicted");
    if (evicted?.status === "True") evictions.add(`${uid} ${evicted.lastTransitionTime}`);
    const isAdmitted = isTrue(workload, "Admitted") && !isTrue(workload, "Finished") && !isDeleted;
    if (isAdmitted) admissions.add(`${uid} ${since}`);
    // A watch that was cut may show it first when it has finished.
    const wasAdmitted = isTrue(workload, "Admitted");
    for (const owner of ownerReferences) {
      if (wasAdmitted && !admittedAt.has(owner.uid)) admittedAt.set(owner.uid, realClock.now());
      const before = admitted.get(owner.uid);
      if (isAdmitted) {
        if (before !== undefined && before.metadata.uid !== uid) {
          wrong.add(`${owner.kind} ${owner.name} was admitted twice: by ${before.metadata.name} and ${name}`);
        }
        if (before?.metadata.uid === uid && sinceOf(before) === since && flavorsOf(before) !== flavorsOf(workload)) {
          wrong.add(`${name} was admitted again without an eviction: ${flavorsOf(before)}, ${flavorsOf(workload)}`);
        }
        admitted.set(owner.uid, workload);
      } else if (before?.metadata.uid === uid) {
        admitted.delete(owner.uid);
      }
    }
  });
  /** The first controller of each pod; by uid. A Job that is deleted may leave its pods behind, without one. */
  const controllers = new Map<string, string>();
  const ofPods = follow(pods, (pod) => {
    const { uid, name, labels = {}, ownerReferences = [] } = pod.metadata;
    const owner = controllers.get(uid) ?? ownerReferences.find(({ controller }) => controller === true)?.uid ?? uid;
    controllers.set(uid, owner);
    const isQueued = labels[QUEUE_NAME_LABEL] !== undefined || labels["kueue.x-k8s.io/podset"] !== undefined;
    if (isQueued && isBound(pod) && !ranAt.has(owner)) ranAt.set(owner, { at: realClock.now(), pod: name });
  });
  await Promise.all([ofWorkloads.whenSynced(), ofPods.whenSynced()]);
  return {
    counts: () => ({ workloads: seen.size, admissions: admissions.size, evictions: evictions.size }),
    wrong: () => [
      ...wrong,
      ...[...ranAt].flatMap(([owner, { at, pod }]) => {
        const since = admittedAt.get(owner);
        if (since !== undefined && since <= at + SLACK_MS) return [];
        return [
          `${pod} had a place ${since === undefined ? "without an admission" : `${since - at} ms before it was admitted`}`,
        ];
      }),
    ],
    stop: async () => {
      await Promise.all([ofWorkloads.stop(), ofPods.stop()]);
    },
  };
}

function sinceOf(workload: Stored<Workload>): string {
  return kueueCondition(workload, "Admitted")?.lastTransitionTime ?? "";
}

function flavorsOf({ status }: Workload): string {
  return JSON.stringify(status?.admission?.podSetAssignments?.map(({ name, flavors }) => [name, flavors]));
}

/** Returns what has not ended though all of it ends, and what runs in members without its admission. `left`: a member had left. */
export async function restlessQueues(scene: Scene, left: boolean): Promise<string[]> {
  const { clients, namespace } = scene;
  const [all, found, ofHost, ...held] = await Promise.all([
    queuedWorkloads(scene),
    clients.host.list(jobs, { namespace, labelSelector: QUEUE_NAME_LABEL }),
    podsOf(clients.host, namespace),
    podsOf(clients.west, namespace),
    podsOf(clients.east, namespace),
  ]);
  const open = all.filter((workload) => !isTrue(workload, "Finished"));
  const owners = ownersOf(open);
  const admitted = ownersOf(open.filter((workload) => isTrue(workload, "Admitted")));
  const lost = found.items
    .filter((job) => !isFinished(job) && !owners.has(job.metadata.uid))
    .map(({ metadata }) => `Job ${metadata.name} has no Workload: Kueue has lost it`);
  const live = held.flat().filter((pod) => !isTerminal(pod) && !isDeleting(pod));
  const gated = new Set(ofHost.filter(isGated).map(({ metadata }) => metadata.uid));
  const unadmitted = live.flatMap((pod) => {
    const uid = ownerOf(pod)?.uid ?? "";
    const isHeld = gated.has(uid) || (owners.has(uid) && !admitted.has(uid));
    return isHeld ? [`${pod.metadata.name} runs in a member without its admission`] : [];
  });
  return [...open.flatMap((workload) => waits(workload, left)), ...lost, ...unadmitted];
}

/** Returns the uids of what the workloads stand for. */
function ownersOf(workloads: readonly Stored<Workload>[]): ReadonlySet<string> {
  return new Set(workloads.flatMap(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid) ?? []));
}

/** Says what a workload waits for. */
function waits(workload: Stored<Workload>, left: boolean): string[] {
  const { metadata, spec, status } = workload;
  const { name } = metadata;
  const checks = (status?.admissionChecks ?? []).map(({ state, message }) => `${state}: ${message}`);
  if (spec?.active === false && !left) return [`${name} was deactivated: ${checks}`];
  if (isTrue(workload, "Admitted")) return [`${name} is admitted, and has not ended`];
  const said = kueueCondition(workload, "QuotaReserved")?.message;
  return [`${name} waits: ${said ?? "nothing says why"}; ${checks.join(", ")}`];
}

/** Reports whether a pod waits in a queue. */
export function waitsInQueue(pod: Stored<Pod>): boolean {
  return isGated(pod) && pod.metadata.labels?.[QUEUE_NAME_LABEL] !== undefined;
}
