import { setAt, valueAt } from "../../api/json.ts";
import { WHOLE_FINALIZER, WHOLE_KEY, WHOLE_MANAGED_BY } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import type { Maker, WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { type FoundWhole, wholeName } from "../member/delegated.ts";
import { namespacedName } from "../shared/reading.ts";
import { dropFinalizer, remove, unlessGone } from "../shared/removal.ts";
import { untilReleased } from "./after-admission.ts";

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
