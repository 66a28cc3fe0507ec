import { defined } from "../api/defined.ts";
import {
  CLUSTER_ANNOTATION,
  DEFAULT_SCHEDULER,
  DELEGATE_FINALIZER,
  DELEGATE_UID_ANNOTATION,
  DELETION_COST_ANNOTATION,
  FAILOVER_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OWN_DELETION_COST_ANNOTATION,
  PROXY_LABEL,
  RESTRICTED_ANNOTATION,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
  SLOT_LABEL,
} from "../api/keys.ts";
import type { Pod, PodSpec } from "../api/kubernetes.ts";
import { hasEndlessTolerations, withEndlessTolerations } from "./failover.ts";

/** Annotations of a pod that its author cannot change. */
export const KEPT_ANNOTATIONS: readonly string[] = [
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OWN_DELETION_COST_ANNOTATION,
  SCHEDULER_NAME_ANNOTATION,
  RESTRICTED_ANNOTATION,
  FAILOVER_ANNOTATION,
];

/** A mark with another value stays: an admission policy refuses it. */
export function withMarksOf(old: Pod, pod: Pod): Pod {
  const before = old.metadata ?? {};
  const cost = before.annotations?.[OWN_DELETION_COST_ANNOTATION];
  const isOwnCost = cost !== undefined && before.annotations?.[DELETION_COST_ANNOTATION] === cost;
  const keys = isOwnCost ? [...KEPT_ANNOTATIONS, DELETION_COST_ANNOTATION] : KEPT_ANNOTATIONS;
  const labels = withKeysOf(before.labels, pod.metadata?.labels, [PROXY_LABEL, SLOT_LABEL]);
  const annotations = withKeysOf(before.annotations, pod.metadata?.annotations, keys);
  const finalizers = withFinalizerOf(before.finalizers, pod.metadata?.finalizers);
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ...defined({ labels, annotations, finalizers }),
    },
    ...(pod.spec === undefined ? {} : { spec: withSpecOf(old, pod.spec) }),
  };
}

export function withKeysOf(
  old: Readonly<Record<string, string>> = {},
  map: Readonly<Record<string, string>> | undefined,
  keys: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const lost = Object.entries(old).filter(([key]) => keys.includes(key) && map?.[key] === undefined);
  return lost.length === 0 ? map : { ...map, ...Object.fromEntries(lost) };
}

function withFinalizerOf(old: readonly string[] = [], finalizers: string[] | undefined): string[] | undefined {
  const isLost = old.includes(DELEGATE_FINALIZER) && finalizers?.includes(DELEGATE_FINALIZER) !== true;
  return isLost ? [...(finalizers ?? []), DELEGATE_FINALIZER] : finalizers;
}

function withSpecOf(old: Pod, spec: PodSpec): PodSpec {
  const author = old.metadata?.annotations?.[SCHEDULER_NAME_ANNOTATION] ?? DEFAULT_SCHEDULER;
  const isAuthors = old.spec?.schedulerName === SCHEDULER_NAME && spec.schedulerName === author;
  const named = isAuthors ? { ...spec, schedulerName: SCHEDULER_NAME } : spec;
  const { tolerations } = hasEndlessTolerations(old) ? (withEndlessTolerations({ spec: named }).spec ?? {}) : named;
  return tolerations === undefined ? named : { ...named, tolerations };
}
