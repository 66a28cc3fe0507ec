import {
  CLUSTER_ANNOTATION,
  clusterOfNode,
  DEFAULT_SCHEDULER,
  DELEGATE_FINALIZER,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
  SLOT_LABEL,
} from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { slotOf } from "../api/shards.ts";

/** Reports whether the pod has all three marks of a proxy, since each alone could be forged or lost. */
export function isProxy({ metadata, spec }: Pod): boolean {
  return (
    metadata?.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE &&
    spec?.schedulerName === SCHEDULER_NAME &&
    (metadata.finalizers?.includes(DELEGATE_FINALIZER) ?? false)
  );
}

/** Returns the pod as a proxy. A proxy comes back unchanged, so admission may run twice. */
export function toProxy(pod: Pod): Pod {
  if (isProxy(pod)) return pod;
  const finalizers = pod.metadata?.finalizers ?? [];
  const annotations = keepScheduler(pod);
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata?.labels, [PROXY_LABEL]: PROXY_LABEL_VALUE },
      ...(annotations === undefined ? {} : { annotations }),
      finalizers: finalizers.includes(DELEGATE_FINALIZER) ? finalizers : [...finalizers, DELEGATE_FINALIZER],
    },
    spec: { containers: [], ...pod.spec, schedulerName: SCHEDULER_NAME },
  };
}

/** Returns the pod with the label by which its shard selects it. */
export function withSlot(pod: Pod, namespace: string): Pod {
  const labels = { ...pod.metadata?.labels, [SLOT_LABEL]: String(slotOf(namespace)) };
  return { ...pod, metadata: { ...pod.metadata, labels } };
}

/** Another admission plugin may just have changed the author's scheduler. */
function keepScheduler({ metadata, spec }: Pod): Record<string, string> | undefined {
  const { annotations } = metadata ?? {};
  const { schedulerName = "" } = spec ?? {};
  if (schedulerName === SCHEDULER_NAME) return annotations;
  if (schedulerName !== "" && schedulerName !== DEFAULT_SCHEDULER) {
    return { ...annotations, [SCHEDULER_NAME_ANNOTATION]: schedulerName };
  }
  if (annotations?.[SCHEDULER_NAME_ANNOTATION] === undefined) return annotations;
  const { [SCHEDULER_NAME_ANNOTATION]: _, ...rest } = annotations;
  return rest;
}

/** Returns the member of a bound proxy. Tokens and streams go by `spec.nodeName` alone, which never changes. */
export function memberOf({ metadata, spec }: Pod): string | undefined {
  // A pod on a real node has no member.
  const cluster = clusterOfNode(spec?.nodeName);
  return cluster === undefined ? undefined : (metadata?.annotations?.[CLUSTER_ANNOTATION] ?? cluster);
}
