import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, HOST_LABEL } from "../../../src/api/keys.ts";
import type { ContainerStatus, Pod, PodStatus, Stored } from "../../../src/api/kubernetes.ts";
import { proxyPod } from "../builders/pod.ts";

// Objects never change, and equal ones are identical, which makes the exploration fast.
const known = new Map<string, Stored<Pod>>();

/** Returns the one object for this content. Its resourceVersion names the content: equal versions mean equal pods. */
export function same(pod: Stored<Pod>): Stored<Pod> {
  const content = { ...pod, metadata: { ...pod.metadata, resourceVersion: "" } };
  const text = JSON.stringify(content);
  let found = known.get(text);
  if (found === undefined) {
    found = { ...content, metadata: { ...content.metadata, resourceVersion: String(known.size + 1) } };
    known.set(text, found);
  }
  return found;
}

export function withMetadata(pod: Stored<Pod>, metadata: Partial<Stored<Pod>["metadata"]>): Stored<Pod> {
  return same({ ...pod, metadata: { ...pod.metadata, ...metadata } });
}

export function withStatus(pod: Stored<Pod>, status: PodStatus): Stored<Pod> {
  return same({ ...pod, status: { ...pod.status, ...status } });
}

/** Returns a proxy as the webhook leaves it on the host. */
export function newProxy(uid: string, controlled: boolean): Stored<Pod> {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "owner", controller: true };
  return same(proxyPod({ name: "web-0", uid, metadata: controlled ? { ownerReferences: [owner] } : {} }));
}

/** Returns a foreign pod in a member under the proxy's name. */
export function foreignPod(): Stored<Pod> {
  return same({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-0", namespace: "team", uid: "foreign", resourceVersion: "" },
    spec: { containers: [{ name: "main", image: "busybox" }], nodeName: "node" },
    status: { phase: "Running" },
  });
}

/** Returns the pod after a member's scheduler has found a node. */
export function scheduled(pod: Stored<Pod>): Stored<Pod> {
  const spec = { containers: [], ...pod.spec, nodeName: "node" };
  return withStatus(same({ ...pod, spec }), { conditions: [{ type: "PodScheduled", status: "True" }] });
}

/** Returns the pod after a member's scheduler has found none. */
export function unschedulable(pod: Stored<Pod>): Stored<Pod> {
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" };
  return withStatus(pod, { conditions: [condition] });
}

/** The container's id is the pod's uid, so that a status tells its source. */
function container(pod: Stored<Pod>, parts: Partial<ContainerStatus>): ContainerStatus {
  const id = { containerID: `model://${pod.metadata.uid}` };
  return { name: "main", image: "busybox", imageID: "", ready: false, restartCount: 0, ...id, ...parts };
}

/** Returns the pod after a kubelet has started the container. */
export function running(pod: Stored<Pod>): Stored<Pod> {
  const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  return withStatus(pod, { phase: "Running", containerStatuses: [container(pod, { state, ready: true })] });
}

/** Returns the pod after a kubelet has seen the container end. */
export function ended(pod: Stored<Pod>, phase: "Succeeded" | "Failed"): Stored<Pod> {
  const state = { terminated: { exitCode: phase === "Succeeded" ? 0 : 137 } };
  return withStatus(pod, { phase, containerStatuses: [container(pod, { state })] });
}

/** Returns the uid of the delegate that the pod's status came from. Undefined if no container was reported. */
export function statusSource(pod: Stored<Pod>): string | undefined {
  return pod.status?.containerStatuses?.[0]?.containerID?.replace("model://", "");
}

/** Returns the delegate without the label that its watch selects. */
export function withoutMarks(pod: Stored<Pod>): Stored<Pod> {
  return withMetadata(pod, { labels: {} });
}

/** Returns the delegate with that label. */
export function withMarks(pod: Stored<Pod>): Stored<Pod> {
  return isSelected(pod) ? pod : withMetadata(pod, { labels: { [HOST_LABEL]: "host-id" } });
}

/** Reports whether the watch of delegates shows the pod. */
export function isSelected({ metadata }: Stored<Pod>): boolean {
  return metadata.labels?.[HOST_LABEL] === "host-id";
}

/** Returns the delegate that a proxy records. */
export function recorded({ metadata }: Stored<Pod>): { readonly member?: string; readonly uid?: string } {
  const { [CLUSTER_ANNOTATION]: member, [DELEGATE_UID_ANNOTATION]: uid } = metadata.annotations ?? {};
  return { ...(member === undefined ? {} : { member }), ...(uid === undefined ? {} : { uid }) };
}
