import { OVERFLOW_LABEL_VALUE, PROXY_LABEL, SCHEDULER_NAME, VIRTUAL_NODE_TAINT } from "../api/keys.ts";
import type { Pod, Toleration } from "../api/kubernetes.ts";
import { isTolerated } from "./tolerations.ts";

/** True for a pod in overflow mode that is no proxy: the host's scheduler may give it a node at any moment. */
export function isOverflow({ metadata }: Pod): boolean {
  return metadata?.labels?.[PROXY_LABEL] === OVERFLOW_LABEL_VALUE;
}

/** True for a pod in overflow mode, also when it has overflowed: the proxy keeps the scheduler that was asked first. */
export function asksHostFirst({ spec }: Pod): boolean {
  return spec?.schedulerName !== SCHEDULER_NAME;
}

/** The pod with the mark of overflow mode, which is all that admission adds to it: it stays an ordinary pod of the host. */
export function toOverflow(pod: Pod): Pod {
  const labels = { ...pod.metadata?.labels, [PROXY_LABEL]: OVERFLOW_LABEL_VALUE };
  return { ...pod, metadata: { ...pod.metadata, labels } };
}

/**
 * Whether the host's scheduler may choose a virtual node for a pod. In overflow mode it would then never say that the pod is
 * unschedulable: it fails again and again at a Binding that is Legation's alone.
 */
export function toleratesVirtualNodes(tolerations: readonly Toleration[]): boolean {
  return isTolerated({ key: VIRTUAL_NODE_TAINT, effect: "NoSchedule" }, tolerations);
}

/**
 * The field of a pod whose claim is the host's, which no member has: the data of a volume, or a device. Undefined: it claims
 * nothing.
 */
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
