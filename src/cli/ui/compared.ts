import { defined } from "../../api/defined.ts";
import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { LAST_APPLIED_ANNOTATION } from "../../api/last-applied.ts";
import { standsFor } from "../../copies/copy-metadata.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
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
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  "data",
  "stringData",
  `metadata.annotations.${LAST_APPLIED_ANNOTATION}`,
]);

/** Reads a pod beside its delegate. Rejects with `Failure` when the host has no such pod, else with KubeError. */
export async function compareDelegate(viewer: Viewer, ref: Ref): Promise<ComparedView> {
  const pod = await viewer.host.find(pods, ref, { signal: viewer.signal });
  if (pod === undefined) throw notOnHost(`pod ${ref.namespace}/${ref.name}`);
  const uid = pod.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  const isDelegate = (found: Stored<KubeObject>): boolean =>
    uid === undefined ? standsFor(found, pod) : found.metadata.uid === uid;
  return await compareCopy(viewer, { resource: pods, ref, object: pod, member: memberOf(pod), isCopy: isDelegate });
}

/** Reads a whole object or Job beside its copy in a member. Rejects like `compareDelegate`. */
export async function compareObject(viewer: Viewer, { type, namespace, name, member }: CopyRef): Promise<ComparedView> {
  const { host, signal } = viewer;
  const { resource } = await findTypeNamed(host, type, signal);
  const ref = { name, ...defined({ namespace }) };
  const object = await host.find(resource, ref, { signal });
  if (object === undefined) throw notOnHost(objectText(resource.kind, ref));
  const isCopy = (found: Stored<KubeObject>): boolean => standsFor(found, object);
  return await compareCopy(viewer, { resource, ref, object, member, isCopy });
}

interface Compared {
  readonly resource: Resource<KubeObject>;
  readonly ref: { readonly namespace?: string; readonly name: string };
  readonly object: Stored<KubeObject>;
  readonly member: string | undefined;
  readonly isCopy: (found: Stored<KubeObject>) => boolean;
}

async function compareCopy({ members, signal }: Viewer, compared: Compared): Promise<ComparedView> {
  const { resource, ref, object, member, isCopy } = compared;
  const hidden = resource.kind === secrets.kind ? SECRET_FIELDS : new Set<string>();
  const lines = (copy?: Stored<KubeObject>): Promise<ComparedView["lines"]> =>
    compareObjects(shown(object, resource), copy && shown(copy, resource), { hidden, signal });
  const alone = async (notRead: string): Promise<ComparedView> => ({ lines: await lines(), member, notRead });
  if (member === undefined) return await alone("no member has it");
  try {
    const client = await members.client(member);
    const found = await client.find(resource, ref, { signal });
    if (found === undefined) return await alone(`${member} has none of this name`);
    if (!isCopy(found)) return await alone(`the one of this name in ${member} is another's`);
    const events = await ignoring(readEvents(client, found, signal));
    return { lines: await lines(found), member, events: events && toldEvents(events) };
  } catch (error) {
    const notRead = whyNotRead(error, member);
    if (notRead === undefined || signal.aborted) throw error;
    return await alone(notRead);
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

/** Returns the object as people read it: type first, without managedFields. */
function shown(object: Stored<KubeObject>, resource: Resource<KubeObject>): Record<string, unknown> {
  const { managedFields: _, ...metadata } = object.metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object, metadata };
}
