import { DELEGATE_FINALIZER, OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { namespacedName } from "../shared/reading.ts";
import { dropFinalizer, remove } from "../shared/removal.ts";
import { afterAdmission, untilReleased } from "./after-admission.ts";
import type { RemovalContext } from "./objects.ts";

/** Lists every pod that has Legation's label or finalizer, even without the other of the two. */
export function listMarkedPods(host: ClusterClient, signal: AbortSignal): Promise<Stored<Pod>[]> {
  return listAll(host, pods, { signal }, isMarked);
}

function isMarked({ metadata }: Stored<Pod>): boolean {
  // Pods that have not overflowed belong to the host; see `unmarkOverflow`.
  if (metadata.labels?.[PROXY_LABEL] === OVERFLOW_LABEL_VALUE) return false;
  return metadata.labels?.[PROXY_LABEL] !== undefined || metadata.finalizers?.includes(DELEGATE_FINALIZER) === true;
}

/** Deletes a proxy, which no member has any more. Its controller replaces one that has not finished. */
export async function deleteProxy(host: ClusterClient, proxy: Stored<Pod>, signal: AbortSignal): Promise<void> {
  const { name, namespace = "", uid } = proxy.metadata;
  const release = async (): Promise<boolean> => {
    await remove(host, pods, { namespace, name }, { uid, gracePeriodSeconds: 0, signal });
    return await dropFinalizer(host, pods, proxy, DELEGATE_FINALIZER, signal);
  };
  await untilReleased(`pod ${namespacedName(proxy)}`, release, signal);
}

/** Removes the mark from pods in overflow mode that the host runs. Resolves to their number. */
export async function unmarkOverflow(removal: Pick<RemovalContext, "host" | "signal" | "remains">): Promise<number> {
  const { host, signal, remains } = removal;
  const labelSelector = `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`;
  let unmarked = 0;
  for (const pod of await listAll(host, pods, { labelSelector, signal })) {
    try {
      const isDone = await afterAdmission(async () => {
        const after = await unmark(host, pod, signal);
        if (after === undefined) return true;
        if (after.metadata.labels?.[PROXY_LABEL] !== undefined) return false;
        unmarked += 1;
        return true;
      }, signal);
      if (!isDone) remains(`label ${PROXY_LABEL} of pod ${namespacedName(pod)} (an admission webhook puts it back)`);
    } catch (error) {
      // Another admission policy must not block the uninstallation.
      if (!isKubeError(error, "Forbidden", "BadRequest", "ServerError")) throw error;
      remains(`label ${PROXY_LABEL} of pod ${namespacedName(pod)} (${error.detail})`);
    }
  }
  return unmarked;
}

/** Resolves to the changed pod. Undefined if the pod is gone or has just overflowed. */
async function unmark(
  host: ClusterClient,
  { metadata }: Stored<Pod>,
  signal: AbortSignal,
): Promise<Stored<Pod> | undefined> {
  const { name, namespace = "", uid } = metadata;
  const path = `/metadata/labels/${PROXY_LABEL.replace("/", "~1")}`;
  const body = [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path, value: OVERFLOW_LABEL_VALUE },
    { op: "remove", path },
  ];
  const patch = host.patch(pods, { namespace, name }, { type: "json", body }, { signal, metadataOnly: true });
  // The API server answers 422 to a failed test of a JSON patch.
  return await ignoring(patch, "NotFound", "Conflict", "Unprocessable");
}
