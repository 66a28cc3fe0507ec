import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { LAST_APPLIED_ANNOTATION } from "../../api/last-applied.ts";
import { standsFor } from "../../copies/copy-metadata.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { apiVersionOf, pods, type Resource, secrets } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import { readEvents, toldEvents } from "../explain/events.ts";
import { findTypeNamed } from "../shared/delegated-types.ts";
import { Failure } from "../shared/failure.ts";
import { objectText } from "../shared/output.ts";
import { notOnHost } from "../shared/reading.ts";
import { compareObjects } from "./compare.ts";
import type { ComparedView } from "./model.ts";
import type { Viewer } from "./viewer.ts";

interface Ref {
  readonly namespace: string;
  readonly name: string;
}

interface CopyRef {
  /** Name of a DelegatedType, or plural of a built-in type. */
  readonly type: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly member: string;
}

// Values of Secrets are not for screens.
const SECRET_FIELDS: ReadonlySet<string> = new Set(["data", "stringData"]);

/** Reads a pod beside its delegate. Rejects with `Failure` when the host has no such pod, else with KubeError. */
export async function compareDelegate(viewer: Viewer, ref: Ref, signal: AbortSignal): Promise<ComparedView> {
  const pod = await viewer.host.find(pods, ref, { signal });
  if (pod === undefined) throw notOnHost(`pod ${ref.namespace}/${ref.name}`);
  const uid = pod.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  const isDelegate = (found: Stored<KubeObject>): boolean =>
    uid === undefined ? standsFor(found, pod) : found.metadata.uid === uid;
  return await compareCopy(
    viewer,
    { resource: pods, ref, object: pod, member: memberOf(pod), isCopy: isDelegate },
    signal,
  );
}

/** Reads a whole object or Job beside its copy in a member. Rejects like `compareDelegate`. */
export async function compareObject(
  viewer: Viewer,
  { type, namespace, name, member }: CopyRef,
  signal: AbortSignal,
): Promise<ComparedView> {
  const { resource } = await findTypeNamed(viewer.host, type, signal);
  const ref = namespace === undefined ? { name } : { namespace, name };
  const object = await viewer.host.find(resource, ref, { signal });
  if (object === undefined) throw notOnHost(objectText(resource.kind, ref));
  const isCopy = (found: Stored<KubeObject>): boolean => standsFor(found, object);
  return await compareCopy(viewer, { resource, ref, object, member, isCopy }, signal);
}

interface Compared {
  readonly resource: Resource<KubeObject>;
  readonly ref: { readonly namespace?: string; readonly name: string };
  readonly object: Stored<KubeObject>;
  readonly member: string | undefined;
  readonly isCopy: (found: Stored<KubeObject>) => boolean;
}

async function compareCopy(viewer: Viewer, compared: Compared, signal: AbortSignal): Promise<ComparedView> {
  const { resource, ref, object, member, isCopy } = compared;
  const hidden = resource.kind === secrets.kind ? SECRET_FIELDS : new Set<string>();
  const lines = (copy?: Stored<KubeObject>): Promise<ComparedView["lines"]> =>
    compareObjects(shown(object, resource), copy && shown(copy, resource), { hidden, signal });
  if (member === undefined) return { lines: await lines(), notRead: "no member has it" };
  try {
    const client = await viewer.members.client(member);
    const found = await client.find(resource, ref, { signal });
    if (found === undefined) return { lines: await lines(), member, notRead: `${member} has none of this name` };
    if (!isCopy(found))
      return { lines: await lines(), member, notRead: `the one of this name in ${member} is another's` };
    return { lines: await lines(found), member, events: await eventsOf(client, found, signal) };
  } catch (error) {
    const notRead = whyNotRead(error, member);
    if (notRead === undefined || signal.aborted) throw error;
    return { lines: await lines(), member, notRead };
  }
}

/** Returns the events of a copy, oldest first. Undefined if the user may not read them. */
async function eventsOf(
  client: ClusterClient,
  copy: Stored<KubeObject>,
  signal: AbortSignal,
): Promise<ComparedView["events"]> {
  try {
    return toldEvents(await readEvents(client, copy, signal));
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return undefined;
  }
}

/** Returns why an object of a member is not shown. Undefined: the error says nothing of the member. */
export function whyNotRead(error: unknown, member: string): string | undefined {
  if (error instanceof Failure) {
    return error.remedy === undefined ? error.message : `${error.message}; ${error.remedy}`;
  }
  if (isKubeError(error, "Forbidden")) return `you may not ${error.verb} ${error.target} in ${member}: ${error.detail}`;
  return isKubeError(error) ? `${member} cannot be read: ${error.detail}` : undefined;
}

/** Returns the object as people read it: type first, without managedFields, and without a Secret's manifest. */
function shown(object: Stored<KubeObject>, resource: Resource<KubeObject>): Record<string, unknown> {
  const { managedFields: _, annotations, ...rest } = object.metadata;
  const isHidden = resource.kind === secrets.kind && annotations?.[LAST_APPLIED_ANNOTATION] !== undefined;
  const metadata = {
    ...rest,
    ...(annotations === undefined
      ? {}
      : { annotations: isHidden ? { ...annotations, [LAST_APPLIED_ANNOTATION]: "(hidden)" } : annotations }),
  };
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object, metadata };
}
