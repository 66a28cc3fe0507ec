import { OVERFLOW_LABEL_VALUE, PROXY_LABEL, SCHEDULER_NAME, VIRTUAL_NODE_TAINT } from "../api/keys.ts";
import type { Pod, Toleration } from "../api/kubernetes.ts";
import { isTolerated } from "./scheduling.ts";

/** Reports whether the pod is in overflow mode and no proxy yet: the host's scheduler may bind it. */
export function isOverflow({ metadata }: Pod): boolean {
  return metadata?.labels?.[PROXY_LABEL] === OVERFLOW_LABEL_VALUE;
}

/** Reports whether the pod is in overflow mode, bound or not: it keeps its own scheduler name. */
export function asksHostFirst({ spec }: Pod): boolean {
  return spec?.schedulerName !== SCHEDULER_NAME;
}

export function toOverflow(pod: Pod): Pod {
  const labels = { ...pod.metadata?.labels, [PROXY_LABEL]: OVERFLOW_LABEL_VALUE };
  return { ...pod, metadata: { ...pod.metadata, labels } };
}

/** Reports whether the host's scheduler may choose a virtual node, and would never report the pod as unschedulable. */
export function toleratesVirtualNodes(tolerations: readonly Toleration[]): boolean {
  return isTolerated({ key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" }, tolerations);
}

/** Returns undefined if the pod claims none. */
export function hostClaim({
  volumes,
  resourceClaims,
}: {
  readonly resourceClaims?: readonly { readonly name?: string | null | undefined }[] | null | undefined;
  readonly volumes?:
    | readonly {
        readonly name?: string | null | undefined;
        readonly persistentVolumeClaim?: unknown;
        readonly ephemeral?: unknown;
      }[]
    | null
    | undefined;
}): string | undefined {
  const claimed = volumes?.find(({ persistentVolumeClaim, ephemeral }) => (persistentVolumeClaim ?? ephemeral) != null);
  if (claimed !== undefined) return `spec.volumes: ${claimed.name}`;
  const device = resourceClaims?.[0];
  return device == null ? undefined : `spec.resourceClaims: ${device.name}`;
}
