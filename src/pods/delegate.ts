import { isToolsAnnotation, isToolsLabel } from "../api/delivery-tools.ts";
import { isJsonObject, jsonOrNothing, withoutKeys } from "../api/json.ts";
import {
  ADMITTED_BY_ANNOTATIONS,
  COPY_LABEL,
  DEFAULT_SCHEDULER,
  DELETION_COST_ANNOTATION,
  FORWARDED_ANNOTATION,
  HOST_LABEL,
  INTERNAL_ANNOTATIONS,
  OWN_DELETION_COST_ANNOTATION,
  OWNER_ANNOTATION,
  PROXY_LABEL,
  PROXY_UID_ANNOTATION,
  SAFE_TO_EVICT_ANNOTATION,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
} from "../api/keys.ts";
import type { KubeObject, Pod, PodSpec, Stored } from "../api/kubernetes.ts";
import { KUEUE_PREFIX, PODSET_LABEL } from "../api/kueue.ts";
import { memoized } from "../api/memoized.ts";
import { FIELDS_NOT_DELEGATED } from "../api/overrides.ts";
import { withProxyUid } from "./downward-api.ts";
import { forwardedTolerations } from "./failover.ts";
import { type Fingerprints, fingerprints } from "./fingerprints.ts";
import { writeRecord } from "./forward-record.ts";
import { type ApiAccess, withApiAccess } from "./home-api.ts";
import { withoutMergedKeys } from "./label-keys.ts";
import { isReplaced } from "./pod-state.ts";

/** The host as its members know it. */
export interface HostIdentity {
  /** uid of the host's kube-system namespace, unique among clusters. */
  readonly id: string;
  readonly name: string;
}

/** The host object behind an object in a member. */
export interface HostOwner {
  readonly cluster: string;
  /** The type, as Kubernetes formats a GroupKind: `NetworkPolicy.networking.k8s.io`. Undefined in annotations of 0.1. */
  readonly kind?: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The part of a resource that names the type of its objects. */
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

const POD: GroupKind = { group: "", kind: "Pod" };

// Each cluster's Binding copies these from its node to the pod (KEP-4742).
const TOPOLOGY_LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
/** Labels that are never forwarded from a proxy. */
export const HOST_ONLY_LABELS: ReadonlySet<string> = new Set([PROXY_LABEL, HOST_LABEL, COPY_LABEL, ...TOPOLOGY_LABELS]);

/** Selects a host's delegates in a member. An operator there may carry labels of a copy over to pods, which are none. */
export function delegateSelector(hostId: string): string {
  return `${HOST_LABEL}=${hostId},!${COPY_LABEL}`;
}

// Kueue admitted the pod on the host; with these labels a Kueue in the member would queue it again.
const KUEUE_MANAGED_LABEL = `${KUEUE_PREFIX}managed`;

function isAdmittedOnHost(proxy: Pod, key: string): boolean {
  if (!key.startsWith(KUEUE_PREFIX)) return false;
  const { [KUEUE_MANAGED_LABEL]: managed, [PODSET_LABEL]: podset } = proxy.metadata?.labels ?? {};
  return managed === "true" || podset !== undefined;
}

export function forwardedLabels(proxy: Pod): Record<string, string> {
  return withoutKeys(
    proxy.metadata?.labels,
    (key, value) => HOST_ONLY_LABELS.has(key) || isToolsLabel(key, value, "pod") || isAdmittedOnHost(proxy, key),
  );
}

export function forwardedAnnotations(proxy: Pod): Record<string, string> {
  const annotations = withoutKeys(
    proxy.metadata?.annotations,
    (key) =>
      INTERNAL_ANNOTATIONS.has(key) ||
      ADMITTED_BY_ANNOTATIONS.has(key) ||
      isToolsAnnotation(key, "pod") ||
      isAdmittedOnHost(proxy, key),
  );
  // Legation's own deletion cost is for the host's ReplicaSet; forwarding it would cost a write.
  const ownCost = proxy.metadata?.annotations?.[OWN_DELETION_COST_ANNOTATION];
  if (ownCost !== undefined && annotations[DELETION_COST_ANNOTATION] === ownCost) {
    delete annotations[DELETION_COST_ANNOTATION];
  }
  return annotations;
}

/** Returns the delegate to create for a proxy, derived from the proxy alone. `spec` is adjusted to the member. */
export function toDelegate(
  proxy: Stored<Pod>,
  host: HostIdentity,
  access: ApiAccess = { mode: "member" },
  spec: PodSpec | undefined = proxy.spec,
): Pod {
  const { name, namespace = "", uid, generateName } = proxy.metadata;
  const labels = forwardedLabels(proxy);
  const annotations = forwardedAnnotations(proxy);
  const marks = marksOf({ namespace, name, uid }, host);
  // The pod names itself as owner of what it creates through the host's API.
  const known = spec !== undefined && access.mode === "host" ? withProxyUid(spec) : spec;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(generateName === undefined ? {} : { generateName }),
      labels: { ...labels, ...marks.labels },
      annotations: {
        ...(mayMove(proxy) ? { [SAFE_TO_EVICT_ANNOTATION]: "true" } : {}),
        ...annotations,
        ...marks.annotations,
        ...(known === spec ? {} : { [PROXY_UID_ANNOTATION]: uid }),
        [FORWARDED_ANNOTATION]: recordAtCreation(proxy, labels, annotations),
      },
    },
    ...(known === undefined ? {} : { spec: delegateSpec(known, proxy, access) }),
  };
}

export function marksOf(
  {
    namespace = "",
    name,
    uid,
  }: { readonly namespace?: string | undefined; readonly name: string; readonly uid: string },
  host: HostIdentity,
): { readonly labels: Record<string, string>; readonly annotations: Record<string, string> } {
  const owner = ownerIn(host, POD, { namespace, name, uid });
  return { labels: { [HOST_LABEL]: host.id }, annotations: { [OWNER_ANNOTATION]: JSON.stringify(owner) } };
}

/** Returns the content of the owner annotation of what members get for an object of the host. */
export function ownerIn(
  { name: cluster }: HostIdentity,
  type: GroupKind,
  { namespace = "", name, uid }: { readonly namespace?: string; readonly name: string; readonly uid: string },
): HostOwner {
  return { cluster, kind: kindText(type), namespace, name, uid };
}

function kindText({ group, kind }: GroupKind): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** Reports whether a cluster autoscaler may evict the delegate: its workload replaces it, and no data is local. */
function mayMove(proxy: Pod): boolean {
  const keeps = proxy.spec?.volumes?.some(({ emptyDir, hostPath }) => (emptyDir ?? hostPath) !== undefined) ?? false;
  return isReplaced(proxy) && !keeps;
}

function recordAtCreation(proxy: Pod, labels: object, annotations: object): string {
  const keys = { labels: Object.keys(labels), annotations: Object.keys(annotations) };
  return writeRecord({ ...keys, conditions: [], spec: createdWith(proxy) }, proxy);
}

/** No pod can be created with ephemeral containers. */
function createdWith(proxy: Pod): Fingerprints {
  return Object.fromEntries(Object.entries(fingerprints(proxy)).filter(([path]) => !path.startsWith("ephemeral/")));
}

/** Returns the owner of a delegate or copy. Undefined if the annotation is missing or unreadable. */
export const ownerOf: (object: KubeObject) => HostOwner | undefined = memoized(readOwner);

function readOwner(object: KubeObject): HostOwner | undefined {
  const text = object.metadata?.annotations?.[OWNER_ANNOTATION];
  if (text === undefined) return undefined;
  const value = jsonOrNothing(text);
  if (!isJsonObject(value)) return undefined;
  const { cluster, kind, namespace, name, uid } = value;
  if (typeof cluster !== "string" || typeof namespace !== "string") return undefined;
  if (typeof name !== "string" || typeof uid !== "string") return undefined;
  return { cluster, ...(typeof kind === "string" ? { kind } : {}), namespace, name, uid };
}

/** Reports whether the object has its owner's name. Clients carry labels and annotations over to what they derive from it. */
export function hasNameOf(owner: HostOwner, { metadata }: KubeObject): boolean {
  return owner.name === metadata?.name && owner.namespace === (metadata.namespace ?? "");
}

/** Reports whether a client derived the object from one of another type, and carried its annotations over. */
export function isOfAnotherType(object: KubeObject, type: GroupKind): boolean {
  const kind = ownerOf(object)?.kind;
  return kind !== undefined && kind !== kindText(type);
}

export function madeByHost(pod: KubeObject, hostId: string): boolean {
  const owner = ownerOf(pod);
  if (owner === undefined || pod.metadata?.labels?.[HOST_LABEL] !== hostId) return false;
  return hasNameOf(owner, pod) && !isOfAnotherType(pod, POD);
}

function delegateSpec(spec: PodSpec, proxy: Stored<Pod>, access: ApiAccess): PodSpec {
  const copy: PodSpec = { ...spec };
  for (const field of FIELDS_NOT_DELEGATED) delete copy[field];
  const schedulerName = proxy.metadata.annotations?.[SCHEDULER_NAME_ANNOTATION] ?? ownScheduler(spec);
  if (schedulerName !== undefined) copy.schedulerName = schedulerName;

  if (spec.tolerations !== undefined) {
    copy.tolerations = forwardedTolerations({ metadata: proxy.metadata, spec });
  }
  if (spec.affinity !== undefined) copy.affinity = withoutMergedKeys(spec.affinity);
  if (spec.topologySpreadConstraints !== undefined) {
    copy.topologySpreadConstraints = withoutMergedKeys(spec.topologySpreadConstraints);
  }
  return withApiAccess(copy, proxy.metadata.uid, access);
}

function ownScheduler({ schedulerName }: PodSpec): string | undefined {
  return schedulerName === SCHEDULER_NAME || schedulerName === DEFAULT_SCHEDULER ? undefined : schedulerName;
}
