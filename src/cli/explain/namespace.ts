import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import { MEMBER_NODE_ANNOTATION, WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { membersOfObject } from "../../copies/object-members.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { kindName, namespaces, pods as podResource, type Resource } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { DELEGATED_OBJECTS, type Hidden, objectsOf, ofViewers } from "../shared/hidden.ts";
import { listProxies, notOnHost, readable } from "../shared/reading.ts";
import type { Reason } from "./model.ts";
import { kubectlStatus } from "./pod-status.ts";
import { asksForMember, whyWithoutMember } from "./waiting.ts";

/** A delegated pod, or one in overflow mode that asks for a member. */
export interface NamespacePod {
  readonly namespace: string;
  readonly name: string;
  /** The status that `kubectl get pods` shows. */
  readonly status: string;
  readonly containers: { readonly ready: number; readonly all: number };
  readonly cluster: string | undefined;
  readonly memberNode: string | undefined;
  readonly created: string | undefined;
  /** Why it has no member. Undefined if it has one, or needs none. */
  readonly waits: Reason | undefined;
}

/** A Job or another object that members have whole. */
export interface NamespaceObject {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  /** The members that have it, or are to have it. */
  readonly clusters: readonly string[];
  /** A few words on how far it is. */
  readonly state: string;
}

/** All that a namespace, or all of them, have in members, as `legation status` shows it. */
export interface NamespaceStatus {
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** The one member that it is about. Absent: all. */
  readonly member?: string;
  readonly pods: readonly NamespacePod[];
  readonly objects: readonly NamespaceObject[];
  /** Number of pods that are the host's own. Undefined for all namespaces. */
  readonly onHost: number | undefined;
  /** Types that the account may not list. */
  readonly hidden: readonly Hidden[];
}

/**
 * Reads what a namespace has in members, for which rights in that namespace are enough. Rejects with `Failure` if the host has no such
 * namespace, else with KubeError.
 */
export async function readNamespace(
  client: ClusterClient,
  name: string,
  signal: AbortSignal,
): Promise<NamespaceStatus> {
  const [known, pods, whole] = await Promise.all([
    readable(client.find(namespaces, { name }, { signal }).then((found) => found !== undefined)),
    listAll(client, podResource, { namespace: name, signal }),
    readObjects(client, name, signal),
  ]);
  if (known === false) throw notOnHost(`Namespace ${name}`);
  const shown = pods.filter(asksForMember);
  return { namespace: name, pods: podRows(shown), ...whole, onHost: pods.length - shown.length };
}

export function inMember({ pods, objects, ...status }: NamespaceStatus, member: string): NamespaceStatus {
  return {
    ...status,
    member,
    pods: pods.filter(({ cluster }) => cluster === member),
    objects: objects.filter(({ clusters }) => clusters.includes(member)),
    onHost: undefined,
  };
}

/** Reads what all namespaces have in members. Rejects with `Failure` where the account may not read them. */
export async function readAllNamespaces(client: ClusterClient, signal: AbortSignal): Promise<NamespaceStatus> {
  const [pods, whole] = await Promise.all([listProxies(client, { signal }), readObjects(client, undefined, signal)]);
  return { namespace: undefined, pods: podRows(pods), ...whole, onHost: undefined };
}

/** Reads the Jobs and objects that members have whole, as far as the account may. */
async function readObjects(
  client: ClusterClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<Pick<NamespaceStatus, "objects" | "hidden">> {
  const list = <T extends KubeObject>(resource: Resource<T>): Promise<Stored<T>[] | undefined> => {
    const options = { ...(namespace === undefined ? {} : { namespace }), labelSelector: WHOLE_KEY, signal };
    return readable(listAll(client, resource, options));
  };
  const readType = async (type: Stored<DelegatedType>): Promise<Pick<NamespaceStatus, "objects" | "hidden">> => {
    const resource = resourceOfType(type);
    // An object without a namespace is in none of them.
    if (!resource.namespaced && namespace !== undefined) return { objects: [], hidden: [] };
    const found = await list(resource).catch((error: unknown) => {
      // The definition of the type was removed.
      if (isKubeError(error, "NotFound")) return [];
      throw error;
    });
    const objects = (found ?? []).map((object) => objectRow(type.spec.kind, object));
    return {
      objects,
      hidden: found === undefined ? [objectsOf(kindName(resource))] : [],
    };
  };
  const readBuiltIn = async (type: WholeType): Promise<Pick<NamespaceStatus, "objects" | "hidden">> => {
    const found = await list(type.resource);
    return {
      objects: (found ?? []).map((object) => builtInRow(type, object)),
      hidden: found === undefined ? [ofViewers(kindName(type.resource))] : [],
    };
  };
  const [builtIn, types] = await Promise.all([
    Promise.all(WHOLE_TYPES.map(readBuiltIn)),
    readable(listDelegatedTypes(client, signal)),
  ]);
  const parts = [...builtIn, ...(await Promise.all((types ?? []).map(readType)))];
  const hidden = [...parts.flatMap((part) => part.hidden), ...(types === undefined ? [DELEGATED_OBJECTS] : [])];
  return { objects: parts.flatMap(({ objects }) => objects).sort(byName), hidden };
}

function builtInRow(type: WholeType, object: Stored<KubeObject>): NamespaceObject {
  const { namespace = "", name } = object.metadata;
  const { kind } = type.resource;
  return { namespace, kind, name, clusters: type.membersOf(object), state: type.progressOf(object) };
}

function objectRow(kind: string, object: Stored<AnyObject>): NamespaceObject {
  const members = membersOfObject(object) ?? [];
  const others = members.filter(({ state }) => state !== "InStep");
  const words = others.map(({ member, state }) => `${state} in ${member}`);
  const inStep = members.length === 0 ? "no member has it yet" : `in step in ${members.length - others.length}`;
  return {
    namespace: object.metadata.namespace ?? "",
    kind,
    name: object.metadata.name,
    clusters: members.map(({ member }) => member),
    state: [inStep, ...words].join(", "),
  };
}

function podRows(pods: readonly Stored<Pod>[]): NamespacePod[] {
  return pods.map(namespacePod).sort(byName);
}

function byName<T extends { readonly namespace: string; readonly name: string }>(a: T, b: T): number {
  return a.namespace === b.namespace ? (a.name < b.name ? -1 : 1) : a.namespace < b.namespace ? -1 : 1;
}

function namespacePod(pod: Stored<Pod>): NamespacePod {
  const { metadata, spec, status } = pod;
  const { namespace = "", name, annotations = {}, creationTimestamp } = metadata;
  return {
    namespace,
    name,
    status: kubectlStatus(pod),
    containers: {
      ready: (status?.containerStatuses ?? []).filter(({ ready }) => ready === true).length,
      all: spec?.containers?.length ?? 0,
    },
    cluster: memberOf(pod),
    memberNode: annotations[MEMBER_NODE_ANNOTATION],
    created: creationTimestamp,
    waits: whyWithoutMember(pod),
  };
}
