import { DELEGATE_FINALIZER, virtualNodeName } from "../../../src/api/keys.ts";
import type { Pod, PodCondition, PodStatus, Stored } from "../../../src/api/kubernetes.ts";
import type { Action } from "../../../src/controllers/delegation/decision/decision.ts";
import type { StatusPatch } from "../../../src/pods/feedback.ts";
import { isBound, isDeleting, isTerminal } from "../../../src/pods/pod-state.ts";
import { same, withMetadata } from "./pods.ts";
import { NOW } from "./recollection.ts";

/** The pod that an API server has under the model's one name. */
export type Slot = Stored<Pod> | undefined;

const DELETED_AT = new Date(NOW).toISOString();
const DEFAULT_GRACE = 30;

interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly graceSeconds?: number;
}

/** Reports whether a request with these preconditions gets neither 404 nor 409. */
export function meets(slot: Slot, { uid = "", resourceVersion = "" }: Preconditions): slot is Stored<Pod> {
  if (slot === undefined || (uid !== "" && slot.metadata.uid !== uid)) return false;
  return resourceVersion === "" || slot.metadata.resourceVersion === resourceVersion;
}

/** Deletes as pods are deleted (registry/core/pod strategy: CheckGracefulDelete); a forbidden deletion changes nothing. */
export function deletePod(slot: Slot, options: Preconditions = {}): Slot {
  if (!meets(slot, options)) return slot;
  const asked = options.graceSeconds ?? DEFAULT_GRACE;
  const grace = !isBound(slot) || isTerminal(slot) ? 0 : asked;
  const { deletionGracePeriodSeconds: earlier, finalizers = [] } = slot.metadata;
  const left = earlier === undefined ? grace : Math.min(earlier, grace);
  if (left === 0 && finalizers.length === 0) return undefined;
  return withMetadata(slot, { deletionTimestamp: DELETED_AT, deletionGracePeriodSeconds: left });
}

/** `pods/binding` on the host; a conflict changes nothing and is not a success. */
export function bindPod(slot: Slot, { member, proxyUid, delegateUid, memberNode }: ActionOf<"bind">): Slot {
  if (!meets(slot, { uid: proxyUid }) || isBound(slot) || isDeleting(slot)) return slot;
  const recorded = delegateUid === undefined ? {} : annotationsFor(delegateUid, memberNode ?? "");
  const annotations = { ...slot.metadata.annotations, ...recorded, "legation.dev/cluster": member };
  const spec = { containers: [], ...slot.spec, nodeName: virtualNodeName(member) };
  const conditions = [{ type: "PodScheduled", status: "True" }];
  const status = { ...slot.status, conditions };
  return same({ ...slot, metadata: { ...slot.metadata, annotations }, spec, status });
}

/** A merge patch of annotations, with uid and resourceVersion in it. */
export function recordOn(slot: Slot, action: ActionOf<"recordDelegate">): Slot {
  const { proxyUid, resourceVersion, delegateUid, memberNode } = action;
  if (!meets(slot, { uid: proxyUid, resourceVersion })) return slot;
  return withMetadata(slot, {
    annotations: { ...slot.metadata.annotations, ...annotationsFor(delegateUid, memberNode) },
  });
}

/** The patch that removes Legation's finalizer; a pod deleted with grace 0 goes with its last finalizer. */
export function releasePod(slot: Slot, uid: string): Slot {
  if (!meets(slot, { uid })) return slot;
  const finalizers = (slot.metadata.finalizers ?? []).filter((name) => name !== DELEGATE_FINALIZER);
  if (isDeleting(slot) && slot.metadata.deletionGracePeriodSeconds === 0 && finalizers.length === 0) return undefined;
  return withMetadata(slot, { finalizers });
}

/** Adds Legation's finalizer; the API server refuses that while the pod is being deleted. */
export function holdPod(slot: Slot, uid: string): Slot {
  if (!meets(slot, { uid }) || isDeleting(slot)) return slot;
  return withMetadata(slot, { finalizers: [...new Set([...(slot.metadata.finalizers ?? []), DELEGATE_FINALIZER])] });
}

/** A strategic merge patch of the status, with its preconditions. */
export function patchStatus(slot: Slot, patch: StatusPatch): Slot {
  if (!meets(slot, patch.metadata)) return slot;
  const status: Record<string, unknown> = { ...slot.status };
  for (const [field, value] of Object.entries(patch.status)) {
    if (value === null) delete status[field];
    else if (field === "conditions") status[field] = mergedConditions(slot.status?.conditions ?? [], value);
    else status[field] = Array.isArray(value) ? value.filter((item) => !("$patch" in item)) : value;
  }
  return same({ ...slot, status: status satisfies PodStatus });
}

function mergedConditions(current: readonly PodCondition[], patches: unknown): PodCondition[] {
  const merged = new Map(current.map((condition) => [condition.type, condition]));
  for (const patch of Array.isArray(patches) ? patches : []) {
    if (patch.$patch === "delete") merged.delete(patch.type);
    else merged.set(patch.type, withoutNulls({ ...merged.get(patch.type), ...patch }));
  }
  return [...merged.values()];
}

function withoutNulls<T extends object>(object: T): T {
  const result = { ...object };
  for (const [key, value] of Object.entries(result)) if (value === null) Reflect.deleteProperty(result, key);
  return result;
}

function annotationsFor(delegateUid: string, memberNode: string): Record<string, string> {
  return { "legation.dev/delegate-uid": delegateUid, "legation.dev/member-node": memberNode };
}

type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;
