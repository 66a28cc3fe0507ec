import {
  DEFAULT_SCHEDULER,
  DELEGATE_FINALIZER,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
} from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";

/** True when admission has made the pod a proxy: all three marks, since each alone could be forged or lost. */
export function isProxy({ metadata, spec }: Pod): boolean {
  return (
    metadata?.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE &&
    spec?.schedulerName === SCHEDULER_NAME &&
    (metadata.finalizers?.includes(DELEGATE_FINALIZER) ?? false)
  );
}

/**
 * The pod as a proxy: Legation's scheduler name (the author's own kept in an annotation), label and finalizer; everything
 * else is the same object. A proxy comes out as it went in, so that admission may ask twice.
 */
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

/** The pod's annotations, in which its scheduler's name is as another admission plugin may just have changed it. */
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
