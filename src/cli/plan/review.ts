import { isJsonObject } from "../../api/json.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import { isBound } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { admitWorkload } from "../../simulation/admission.ts";
import { whyWithoutMember } from "../explain/waiting.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { podsOf, wholeJobOf } from "../simulation/workloads.ts";
import type { PlanInput, Reviewed } from "./input.ts";
import type { WrittenWorkload } from "./manifest.ts";
import { modeOf } from "./namespaces.ts";
import { emptyPlan, type WorkloadPlan } from "./outcome.ts";
import { reviewPods } from "./pods.ts";
import { reviewJob } from "./whole.ts";

/** Reviews a workload by Legation's webhook, and its pods by the API server. */
export async function review(workload: WrittenWorkload, input: PlanInput): Promise<Reviewed> {
  const { kind, namespace, object } = workload;
  const { stored, pods: currentPods = [] } = input.found.existing.get(workload) ?? {};
  const planWith = (more: Partial<WorkloadPlan>): WorkloadPlan => ({ ...emptyPlan(workload), ...more });
  const mode = modeOf(namespace, input.namespaces, "its pods run on the host");
  if (typeof mode !== "string") return { plan: planWith(mode) };
  // Legation's webhook reviews a Pod when the pod itself is asked about.
  const admitted = kind === "Pod" ? { object, warnings: [] } : admitWorkload(object, mode);
  if (admitted.denied !== undefined) return { plan: planWith({ outcome: "refused", message: admitted.denied }) };
  const { warnings } = admitted;
  if (kind === "DaemonSet") {
    const message = "a DaemonSet runs on every node of the host itself";
    return { plan: planWith({ outcome: "notDelegated", message, warnings }) };
  }
  if (kind === "Pod" && stored !== undefined) return { plan: planWith(barePod(currentPods)) };
  const whole = wholeJobOf(admitted.object, workload);
  if (whole !== undefined) return reviewJob(whole, workload, planWith({ warnings }), input);
  const pods = podsOf(asApplied(admitted.object, stored), kind);
  const plan = planWith({ warnings, notes: [...pods.notes, ...currentPodsNotes(currentPods)] });
  return pods.replicas === 0 ? { plan } : reviewPods(workload, pods, { mode, plan, currentPods }, input);
}

/** Returns the workload with the host's number of replicas, if the manifest has none, and with the progress of its Job. */
function asApplied(written: WrittenObject, stored: WrittenObject | undefined): WrittenObject {
  const { status: _, ...object } = written;
  if (stored === undefined) return object;
  const replicas = isJsonObject(stored.spec) ? stored.spec.replicas : undefined;
  const spec = isJsonObject(object.spec) && replicas !== undefined ? { replicas, ...object.spec } : object.spec;
  return { ...object, spec, ...(stored.status === undefined ? {} : { status: stored.status }) };
}

/** Says where the pods of a workload are now, and why some wait. */
function currentPodsNotes(currentPods: readonly Stored<Pod>[]): string[] {
  if (currentPods.length === 0) return [];
  const places = [...Map.groupBy(currentPods, currentPlace)].map(([place, pods]) => `${pods.length} ${place}`);
  const waiting = currentPods.flatMap((pod) => whyWithoutMember(pod) ?? []);
  const reasons = Map.groupBy(waiting, ({ reason, message }) => `${reason}: ${message}`);
  return [
    `has ${counted(currentPods.length)} now (${places.sort().join(", ")}); the plan places all its pods anew`,
    ...[...reasons].map(
      ([why, those]) => `${those.length} of them ${those.length === 1 ? "waits" : "wait"} now: ${why}`,
    ),
  ];
}

/** Returns the plan of a pod that is on the host: it stays where it is, or waits for what it waits for now. */
function barePod([pod]: readonly Stored<Pod>[]): Partial<WorkloadPlan> {
  if (pod === undefined) return { notes: ["has ended or is being deleted: nothing comes in its place"] };
  const notes = [`is there already (${currentPlace(pod)}): a pod keeps its place`];
  const why = whyWithoutMember(pod);
  if (why === undefined) return { notes };
  return { outcome: "waits", notes, pods: [{ name: pod.metadata.name, ...why }] };
}

function currentPlace(pod: Stored<Pod>): string {
  if (!isBound(pod)) return "without a node";
  const member = memberOf(pod);
  return member === undefined ? "on this cluster" : `in ${member}`;
}
