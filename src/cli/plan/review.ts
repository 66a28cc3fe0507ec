import type { DelegationMode } from "../../api/delegation-mode.ts";
import { isJsonObject } from "../../api/json.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import { isWishingKind, type WorkloadRef } from "../../api/workload-wishes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { admitPod, admitWorkload, isDelegated } from "../../simulation/admission.ts";
import type { ClaimTemplate } from "../../simulation/claims.ts";
import { whyWithoutMember } from "../explain/waiting.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { claimsOf, podOf } from "../simulation/controller-pods.ts";
import { podsOf, type WorkloadPods, wholeJobOf } from "../simulation/workloads.ts";
import { type DryRunAnswer, dryRun } from "./dry-run.ts";
import type { ManifestState, WrittenWorkload } from "./manifest.ts";
import { modeOf, type PlannedNamespaces } from "./namespaces.ts";
import { emptyPlan, type WorkloadPlan } from "./outcome.ts";
import { type ReviewedWhole, reviewJob } from "./whole.ts";

export interface Reviewed extends ReviewedWhole {
  readonly pods: readonly Stored<Pod>[];
  readonly claims: readonly ClaimTemplate[];
  readonly currentPods: readonly Stored<Pod>[];
  /** Why the API server creates none of the pods. Undefined: it creates them. */
  readonly failedCreate?: string | undefined;
  readonly wishing?: { readonly workload: WorkloadRef; readonly annotations: Readonly<Record<string, string>> };
}

export interface ReviewInput {
  readonly namespaces: PlannedNamespaces;
  readonly found: ManifestState;
  /** Asks the API server about a pod by dry-run. */
  readonly ask: (pod: Pod) => Promise<DryRunAnswer<Stored<Pod>>>;
}

/** Reviews a workload by Legation's webhook, and its pods by the API server. */
export async function review(workload: WrittenWorkload, input: ReviewInput): Promise<Reviewed> {
  const { kind, namespace, object } = workload;
  const existing = input.found.existing.get(workload);
  const currentPods = existing?.pods ?? [];
  const withoutPods = (more: Partial<WorkloadPlan>): Reviewed => {
    return { plan: { ...emptyPlan(workload), ...more }, pods: [], claims: [], currentPods };
  };
  const mode = modeOf(namespace, input.namespaces);
  if (typeof mode !== "string") return withoutPods(mode);
  // Legation's webhook reviews a Pod when the pod itself is asked about.
  const admitted = kind === "Pod" ? { object, warnings: [] } : admitWorkload(object, mode);
  if (admitted.denied !== undefined) return withoutPods({ outcome: "refused", message: admitted.denied });
  const { warnings } = admitted;
  if (kind === "DaemonSet") {
    return withoutPods({
      outcome: "notDelegated",
      message: "a DaemonSet runs on every node of the host itself",
      warnings,
    });
  }
  if (kind === "Pod" && existing !== undefined) return withoutPods(barePod(currentPods));
  const whole = wholeJobOf(admitted.object, workload);
  if (whole !== undefined) {
    const reviewed = withoutPods({ warnings });
    return { ...reviewed, ...reviewJob(whole, reviewed.plan, existing?.stored) };
  }
  const pods = podsOf(asApplied(admitted.object, existing?.stored), kind);
  const { annotations = {} } = admitted.object.metadata;
  const reviewed = {
    ...withoutPods({ warnings, notes: [...pods.notes, ...currentPodsNotes(currentPods)] }),
    ...(isWishingKind(kind) ? { wishing: { workload: { kind, name: workload.name }, annotations } } : {}),
  };
  return pods.replicas === 0 ? reviewed : reviewPods(workload, pods, mode, reviewed, input);
}

/** Reviews the first pod of a workload; the others differ by name only. */
async function reviewPods(
  workload: WrittenWorkload,
  pods: WorkloadPods,
  mode: DelegationMode,
  reviewed: Reviewed,
  input: ReviewInput,
): Promise<Reviewed> {
  const { firstOrdinal, replicas } = pods;
  const first = podOf(workload, pods, firstOrdinal);
  const own = admitPod(first, mode);
  const { warnings, notes } = reviewed.plan;
  const plan = { ...reviewed.plan, warnings: [...new Set([...warnings, ...(own.warnings ?? [])])] };
  if (own.denied !== undefined) return { ...reviewed, plan: { ...plan, outcome: "refused", message: own.denied } };
  const { admitted, refused, notChecked } = await dryRun(workload, first, reviewed.currentPods.length > 0, {
    ask: input.ask,
    changed: input.namespaces.changed,
    created: input.found.created,
  });
  if (workload.kind === "Pod" && refused !== undefined) {
    return { ...reviewed, plan: { ...plan, outcome: "refused", message: refused } };
  }
  const { metadata, spec = { containers: [] } } = own.object;
  const ordinals = Array.from({ length: replicas }, (_, index) => firstOrdinal + index);
  const all = ordinals.map((ordinal) => podOf(workload, { ...pods, metadata, spec, ...admitted }, ordinal));
  if (!all.some(isDelegated)) {
    const message = "its pods do not ask for delegation: they run on the host";
    return { ...reviewed, plan: { ...plan, outcome: "notDelegated", message }, notChecked };
  }
  return {
    ...reviewed,
    plan: { ...plan, notes: all.some(isOverflow) ? [...notes, HOST_FIRST] : notes },
    pods: all,
    claims: ordinals.flatMap((ordinal) => claimsOf(workload, pods, ordinal)),
    failedCreate: refused,
    notChecked,
  };
}

const HOST_FIRST = "the host's own scheduler is asked first: this is for pods that it has no room for";

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
