import { defined } from "../../api/defined.ts";
import { MEMBER_NODE_ANNOTATION, WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { kindName, namespaces, pods as podResource, type Resource } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { MemberPart } from "../../whole/member-part.ts";
import type { WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { DELEGATED_OBJECTS, type Hidden, objectsOf, ofViewers } from "../shared/hidden.ts";
import { listProxies, notOnHost, readable } from "../shared/reading.ts";
import type { Reason } from "./model.ts";
import { kubectlStatus } from "./pod-status.ts";
import { asksForMember, whyWithoutMember } from "./waiting.ts";
import { partsOf } from "./whole.ts";

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
  const options = { ...defined({ namespace }), labelSelector: WHOLE_KEY, signal };
  const read = async (
    resource: Resource<KubeObject>,
    builtIn?: WholeType,
  ): Promise<Pick<NamespaceStatus, "objects" | "hidden">> => {
    // An object without a namespace is in none of them.
    if (!resource.namespaced && namespace !== undefined) return { objects: [], hidden: [] };
    const found = await readable(listAll(client, resource, options)).catch((error: unknown) => {
      // The definition of the type was removed.
      if (isKubeError(error, "NotFound")) return [];
      throw error;
    });
    const hidden = builtIn === undefined ? objectsOf : ofViewers;
    return {
      objects: (found ?? []).map((object) => objectRow(resource, object, builtIn)),
      hidden: found === undefined ? [hidden(kindName(resource))] : [],
    };
  };
  const [builtIn, types] = await Promise.all([
    Promise.all(WHOLE_TYPES.map((type) => read(type.resource, type))),
    readable(listDelegatedTypes(client, signal)),
  ]);
  const parts = [...builtIn, ...(await Promise.all((types ?? []).map((type) => read(resourceOfType(type)))))];
  const hidden = [...parts.flatMap((part) => part.hidden), ...(types === undefined ? [DELEGATED_OBJECTS] : [])];
  return { objects: parts.flatMap(({ objects }) => objects).sort(byName), hidden };
}

function objectRow(
  { kind }: Resource<KubeObject>,
  object: Stored<KubeObject>,
  builtIn: WholeType | undefined,
): NamespaceObject {
  const { namespace = "", name } = object.metadata;
  const parts = partsOf(object, builtIn);
  const clusters = parts.map(({ member }) => member);
  return { namespace, kind, name, clusters, state: builtIn?.progressOf(object) ?? stepText(parts) };
}

function stepText(parts: readonly MemberPart[]): string {
  const others = parts.filter(({ state }) => state !== "InStep");
  const inStep = parts.length === 0 ? "no member has it yet" : `in step in ${parts.length - others.length}`;
  return [inStep, ...others.map(({ member, state }) => `${state} in ${member}`)].join(", ");
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
