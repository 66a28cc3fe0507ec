import { setAt, valueAt } from "../../api/json.ts";
import {
  DELEGATE_FINALIZER,
  OVERFLOW_LABEL_VALUE,
  PROXY_LABEL,
  WHOLE_FINALIZER,
  WHOLE_KEY,
  WHOLE_MANAGED_BY,
} from "../../api/keys.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import type { Maker, WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { type FoundWhole, wholeName } from "../member/delegated.ts";
import { Failure } from "../shared/failure.ts";
import { namespacedName } from "../shared/reading.ts";
import { dropFinalizer, remove, unlessGone } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";
import type { RemovalContext } from "./objects.ts";

/** Lists every object of a built-in type that has Legation's label, finalizer or manager, even without the others. */
export async function listMarkedWhole(host: ClusterClient, signal: AbortSignal): Promise<FoundWhole[]> {
  const found = WHOLE_TYPES.map(async (type) => {
    const objects = await listAll(host, type.resource, { signal }, (object) => isMarked(type, object));
    return objects.map((object) => ({ type, object }));
  });
  return (await Promise.all(found)).flat();
}

function isMarked({ managedBy, isFinished }: WholeType, object: Stored<KubeObject>): boolean {
  const { labels, finalizers = [] } = object.metadata;
  if (labels?.[WHOLE_KEY] !== undefined || finalizers.includes(WHOLE_FINALIZER)) return true;
  // A finished object that was released keeps the field.
  return valueAt({ ...object }, managedBy) === WHOLE_MANAGED_BY && !isFinished(object);
}

/** Releases a whole object. Deletes one that has not finished: nothing runs it here, since its manager never changes. */
export async function releaseWhole(host: ClusterClient, found: FoundWhole, signal: AbortSignal): Promise<void> {
  await untilReleased(wholeName(found), () => release(host, found, signal), signal);
}

async function release(host: ClusterClient, { type, object }: FoundWhole, signal: AbortSignal): Promise<boolean> {
  const { resource, recordKeys, isFinished } = type;
  const { name, namespace = "", uid } = object.metadata;
  const ref = { namespace, name };
  if (!isFinished(object)) await remove(host, resource, ref, { uid, signal });
  const isReleased = await dropFinalizer(host, resource, object, WHOLE_FINALIZER, signal);
  if (!isReleased || !isFinished(object)) return isReleased;
  const annotations = Object.fromEntries(recordKeys.map((key) => [key, null]));
  const body = { metadata: { uid, labels: { [WHOLE_KEY]: null }, annotations } };
  const after = await unlessGone(host.patch(resource, ref, { type: "merge", body }, { signal }));
  return after?.metadata.labels?.[WHOLE_KEY] === undefined;
}

/** Removes the marks from the templates of CronJobs and their like: this cluster runs what they make next. Resolves to their names. */
export async function unmarkMakers(host: ClusterClient, signal: AbortSignal): Promise<string[]> {
  const names: string[] = [];
  for (const { type, maker } of WHOLE_TYPES.flatMap((type) => type.makers.map((maker) => ({ type, maker })))) {
    const path = [...maker.part, ...type.managedBy];
    const makesWhole = (object: KubeObject): boolean => valueAt({ ...object }, path) === WHOLE_MANAGED_BY;
    for (const object of await listAll(host, maker.resource, { signal }, makesWhole)) {
      const what = `${maker.resource.kind} ${namespacedName(object)}`;
      await untilReleased(what, () => unmark(host, { type, maker, object }, makesWhole, signal), signal);
      names.push(namespacedName(object));
    }
  }
  return names;
}

async function unmark(
  host: ClusterClient,
  { type, maker, object }: FoundWhole & { readonly maker: Maker },
  makesWhole: (object: KubeObject) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const { name, namespace = "", uid } = object.metadata;
  const part = setAt({ metadata: { labels: { [WHOLE_KEY]: null } } }, type.managedBy, null);
  const body = setAt({ metadata: { uid } }, maker.part, part);
  const after = await unlessGone(host.patch(maker.resource, { namespace, name }, { type: "merge", body }, { signal }));
  return after === undefined || !makesWhole(after);
}

/** Lists every pod that has Legation's label or finalizer, even without the other of the two. */
export function listMarkedPods(host: ClusterClient, signal: AbortSignal): Promise<Stored<Pod>[]> {
  return listAll(host, pods, { signal }, isMarkedPod);
}

function isMarkedPod({ metadata }: Stored<Pod>): boolean {
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
        const after = await unmarkPod(host, pod, signal);
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
async function unmarkPod(
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

// Each API server follows policies and webhooks by a watch, so it may enforce removed ones for some seconds.
const ADMISSION_LAG_MS = 20_000;

/** Repeats an action until admission lets it through. Returns false on timeout. */
async function afterAdmission(act: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const isDone = async (): Promise<boolean> => (await ignoring(act(), "Forbidden")) ?? false;
  return (await until(isDone, { timeoutMs: ADMISSION_LAG_MS, signal })) || (await act());
}

/** Releases an object. Rejects with `Failure` when admission puts Legation's marks back. */
async function untilReleased(object: string, release: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  if (await afterAdmission(release, signal)) return;
  throw new Failure("refused", {
    object,
    problem: "has Legation's marks again as soon as they are taken off: an admission webhook puts them back",
    remedy: "look at `kubectl get mutatingwebhookconfigurations`, then run the command again",
  });
}
