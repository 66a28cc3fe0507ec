import {
  DELEGATE_FINALIZER,
  DELETION_COST_ANNOTATION,
  INTERNAL_ANNOTATIONS,
  OVERFLOW_LABEL_VALUE,
  OWN_DELETION_COST_ANNOTATION,
  PROXY_LABEL,
} from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll, listPages } from "../../kube/list-pages.ts";
import { pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/phase.ts";
import { podName } from "../proxies/list.ts";
import { dropFinalizer, remove } from "../removal.ts";
import { waitFor } from "../wait.ts";

/** Returns the annotations that Legation wrote. Leaves the author's, and a deletion cost that was changed since. */
function ownAnnotations({ metadata: { annotations = {} } }: Stored<Pod>): string[] {
  const cost = annotations[OWN_DELETION_COST_ANNOTATION];
  const isOwnCost = cost !== undefined && annotations[DELETION_COST_ANNOTATION] === cost;
  return [...INTERNAL_ANNOTATIONS, ...(isOwnCost ? [DELETION_COST_ANNOTATION] : [])];
}

/** Every pod of the host that carries Legation's label or finalizer, whatever somebody did to the other of the two. */
export async function listMarkedPods(host: ClusterClient, signal: AbortSignal): Promise<Stored<Pod>[]> {
  const marked: Stored<Pod>[] = [];
  for await (const page of listPages(host, pods, { signal })) marked.push(...page.filter(isMarked));
  return marked;
}

function isMarked({ metadata }: Stored<Pod>): boolean {
  // Pods that have not overflowed belong to the host; see `unmarkOverflow`.
  if (metadata.labels?.[PROXY_LABEL] === OVERFLOW_LABEL_VALUE) return false;
  return metadata.labels?.[PROXY_LABEL] !== undefined || metadata.finalizers?.includes(DELEGATE_FINALIZER) === true;
}

/**
 * Lets a proxy go. One that has not finished is deleted: without Legation nobody runs it, and its controller replaces
 * it. A finished one keeps its result, without Legation's marks, until the pod garbage collector sees that its node is gone.
 */
export async function releaseProxy(host: ClusterClient, proxy: Stored<Pod>, signal: AbortSignal): Promise<void> {
  await afterPolicies(() => release(host, proxy, signal), signal);
}

/**
 * Takes the mark off pods in overflow mode that are the host's: without Legation they are pods like any other, with it, too. Resolves
 * to how many there were, and what has kept it on others.
 */
export async function unmarkOverflow(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<{ readonly unmarked: number; readonly remained: readonly string[] }> {
  const labelSelector = `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`;
  let unmarked = 0;
  const remained: string[] = [];
  for (const pod of await listAll(host, pods, { labelSelector, signal })) {
    try {
      await afterPolicies(async () => {
        if (await unmark(host, pod, signal)) unmarked += 1;
      }, signal);
    } catch (error) {
      // Another admission policy must not block the uninstallation.
      if (!isKubeError(error, "Forbidden", "BadRequest", "ServerError")) throw error;
      remained.push(`label ${PROXY_LABEL} of pod ${podName(pod)} (${error.detail})`);
    }
  }
  return { unmarked, remained };
}

/** False for one that is gone, or has overflowed at the last moment. */
async function unmark(host: ClusterClient, { metadata }: Stored<Pod>, signal: AbortSignal): Promise<boolean> {
  const { name, namespace = "", uid } = metadata;
  const path = `/metadata/labels/${PROXY_LABEL.replace("/", "~1")}`;
  const body = [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path, value: OVERFLOW_LABEL_VALUE },
    { op: "remove", path },
  ];
  try {
    await host.patch(pods, { namespace, name }, { type: "json", body }, { signal, metadataOnly: true });
    return true;
  } catch (error) {
    // A failed test of a JSON patch is 422.
    if (isKubeError(error, "NotFound", "Conflict", "Unprocessable")) return false;
    throw error;
  }
}

// API servers apply a policy for a few seconds after its binding is gone: each follows them by a watch of its own.
const POLICY_LAG_MS = 20_000;

async function afterPolicies(act: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const done = await waitFor(() => unlessForbidden(act), { timeoutMs: POLICY_LAG_MS, signal });
  if (done === undefined) await act();
}

async function unlessForbidden(act: () => Promise<void>): Promise<true | undefined> {
  try {
    await act();
    return true;
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return undefined;
    throw error;
  }
}

async function release(host: ClusterClient, proxy: Stored<Pod>, signal: AbortSignal): Promise<void> {
  const { name, namespace = "", uid } = proxy.metadata;
  const ref = { namespace, name };
  if (!isTerminal(proxy)) await remove(host, pods, ref, { uid, gracePeriodSeconds: 0, signal });
  await dropFinalizer(host, pods, proxy, DELEGATE_FINALIZER, signal);
  if (!isTerminal(proxy)) return;
  const annotations = Object.fromEntries(ownAnnotations(proxy).map((key) => [key, null]));
  const body = { metadata: { uid, labels: { [PROXY_LABEL]: null }, annotations } };
  try {
    await host.patch(pods, ref, { type: "merge", body }, { signal });
  } catch (error) {
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
}
