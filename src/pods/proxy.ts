import {
  DELEGATE_FINALIZER,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
} from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";

// kube-scheduler's own name is what defaulting gives to every pod: a member gives it again.
const DEFAULT_SCHEDULER = "default-scheduler";

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
  const { schedulerName } = pod.spec ?? {};
  const kept =
    schedulerName === undefined || schedulerName === DEFAULT_SCHEDULER || schedulerName === SCHEDULER_NAME
      ? {}
      : { [SCHEDULER_NAME_ANNOTATION]: schedulerName };
  const annotations = { ...pod.metadata?.annotations, ...kept };
  const finalizers = pod.metadata?.finalizers ?? [];
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata?.labels, [PROXY_LABEL]: PROXY_LABEL_VALUE },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      finalizers: finalizers.includes(DELEGATE_FINALIZER) ? finalizers : [...finalizers, DELEGATE_FINALIZER],
    },
    spec: { containers: [], ...pod.spec, schedulerName: SCHEDULER_NAME },
  };
}
