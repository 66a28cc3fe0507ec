import { defined } from "../../api/defined.ts";
import { CLUSTER_ANNOTATION } from "../../api/keys.ts";
import type { KubeEvent, Stored } from "../../api/kubernetes.ts";
import type { HostOwner } from "../../pods/delegate.ts";
import { apiSecretName } from "../../pods/home-api.ts";

// An object's name has at most 253 characters. A dot and 16 digits follow the pod's name.
const POD_NAME_LENGTH = 236;

// Legation itself reports on placement. A member's scheduler knows one member only, and an autoscaler of the host would add nodes in
// vain for its events.
const PLACEMENT_REASONS: ReadonlySet<string> = new Set(["FailedScheduling", "NotTriggerScaleUp"]);

/** Reports whether the event makes sense on the host. */
export function concernsHost({ reason }: KubeEvent): boolean {
  return reason === undefined || !PLACEMENT_REASONS.has(reason);
}

// A kubelet tries a mount again after half a second, a second and so on; the Secret comes a moment after the Binding.
const TOKEN_COMES_WITHIN_MS = 10_000;

/** Reports whether a kubelet was faster than the Secret with the pod's token, which comes after the Binding. On a plain cluster it has its token at once. */
export function awaitsToken(event: Stored<KubeEvent>, { uid }: HostOwner): boolean {
  const { message = "", firstTimestamp, eventTime, metadata } = event;
  if (!message.includes(apiSecretName(uid))) return false;
  const since = Date.parse(firstTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "");
  return !(observedAt(event) - since >= TOKEN_COMES_WITHIN_MS);
}

/** The name follows from the member's event alone, so that several leaders write it once. */
export function mirror(event: Stored<KubeEvent>, proxy: HostOwner, cluster: string): KubeEvent {
  const { metadata, involvedObject, related: _, ...rest } = event;
  const { namespace, name, uid } = proxy;
  const { fieldPath } = involvedObject;
  return {
    ...rest,
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: `${name.slice(0, POD_NAME_LENGTH).replace(/[-.]+$/, "")}.${digitsOf(event)}`,
      namespace,
      annotations: { [CLUSTER_ANNOTATION]: cluster },
    },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name, uid, ...defined({ fieldPath }) },
  };
}

/** Kubernetes' components write the time there, in hexadecimal nanoseconds: API servers list by name. */
function digitsOf({ metadata, involvedObject }: Stored<KubeEvent>): string {
  const start = `${involvedObject.name}.`;
  const end = metadata.name.startsWith(start) ? metadata.name.slice(start.length) : "";
  return /^[0-9a-f]{16}$/.test(end) ? end : metadata.uid.replaceAll("-", "").slice(0, 16);
}

export function recurrence({ count, lastTimestamp, message, series }: KubeEvent): object {
  return { count, lastTimestamp, message, series };
}

/** The event may have been written with a smaller count. */
export function recurs({ count = 1, series }: KubeEvent): boolean {
  return count > 1 || (series ?? undefined) !== undefined;
}

/** Returns epoch ms. */
export function observedAt({ metadata, series, lastTimestamp, eventTime }: KubeEvent): number {
  const times = [series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp];
  return Math.max(...times.map((time) => Date.parse(time ?? "")).filter((time) => !Number.isNaN(time)), 0);
}
