import {
  ADMITTED_BY_ANNOTATIONS,
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
import { FIELDS_NOT_DELEGATED } from "../api/spec-fields.ts";
import { forwardedTolerations } from "./failover.ts";
import { type Fingerprints, fingerprints, writeRecord } from "./forwarded.ts";
import { type ApiAccess, withApiAccess } from "./home-api.ts";
import { withoutMergedKeys } from "./label-keys.ts";
import { withProxyUid } from "./own-uid.ts";
import { isReplaced } from "./phase.ts";

/** The host as its members know it. */
export interface HostIdentity {
  /** uid of the host's kube-system namespace: never the same for two clusters. */
  readonly id: string;
  /** Name people gave the host; only for reading. */
  readonly name: string;
}

/** The host object that an object in a member stands for, as its owner annotation says. */
export interface Owner {
  /** Name of the host cluster. */
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

// Binding copies these from the node to the pod (KEP-4742), so each cluster has values of its own.
const TOPOLOGY_LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
/** Labels that a delegate has not from its proxy, or has of its own. */
export const HOST_ONLY_LABELS: ReadonlySet<string> = new Set([PROXY_LABEL, HOST_LABEL, ...TOPOLOGY_LABELS]);

// Kueue has admitted the pod on the host: a member's own would queue it once more, where nobody gives it a quota.
const KUEUE = "kueue.x-k8s.io/";
const KUEUE_MANAGED_LABEL = `${KUEUE}managed`;
// On pods of a Job or JobSet that it has admitted as a whole.
const KUEUE_PODSET_LABEL = `${KUEUE}podset`;

/** True for what only means something to the host's own queue. */
function isAdmittedOnHost(proxy: Pod, key: string): boolean {
  if (!key.startsWith(KUEUE)) return false;
  const { [KUEUE_MANAGED_LABEL]: managed, [KUEUE_PODSET_LABEL]: podset } = proxy.metadata?.labels ?? {};
  return managed === "true" || podset !== undefined;
}

/** The labels a delegate has because its proxy has them. */
export function forwardedLabels(proxy: Pod): Record<string, string> {
  return withoutKeys(proxy.metadata?.labels, (key) => HOST_ONLY_LABELS.has(key) || isAdmittedOnHost(proxy, key));
}

/** The annotations a delegate has because its proxy has them. */
export function forwardedAnnotations(proxy: Pod): Record<string, string> {
  const annotations = withoutKeys(
    proxy.metadata?.annotations,
    (key) => INTERNAL_ANNOTATIONS.has(key) || ADMITTED_BY_ANNOTATIONS.has(key) || isAdmittedOnHost(proxy, key),
  );
  // It is for the host's ReplicaSet, and a write in the member for nothing.
  const ownCost = proxy.metadata?.annotations?.[OWN_DELETION_COST_ANNOTATION];
  if (ownCost !== undefined && annotations[DELETION_COST_ANNOTATION] === ownCost) {
    delete annotations[DELETION_COST_ANNOTATION];
  }
  return annotations;
}

/**
 * The pod to create in a member for a proxy: the author's own pod again, without what the host added to it.
 * Derived from the proxy alone, so no copy of the manifest is kept anywhere. `spec` is the proxy's as the member is to have it.
 */
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
  // For what it makes with the host's API. Agents on the member's node know it by its own.
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
        [FORWARDED_ANNOTATION]: forwardedKeys(labels, annotations, createdWith(proxy)),
      },
    },
    ...(known === undefined ? {} : { spec: delegateSpec(known, proxy, access) }),
  };
}

/** What the delegate of a proxy is known by: the watch selects by the label, and the annotation says whose it is. */
export function marksOf(
  {
    namespace = "",
    name,
    uid,
  }: { readonly namespace?: string | undefined; readonly name: string; readonly uid: string },
  host: HostIdentity,
): { readonly labels: Record<string, string>; readonly annotations: Record<string, string> } {
  const owner: Owner = { cluster: host.name, namespace, name, uid };
  return { labels: { [HOST_LABEL]: host.id }, annotations: { [OWNER_ANNOTATION]: JSON.stringify(owner) } };
}

/** A pod that autoscalers move on the host, where they see its controller: its workload replaces it, and it keeps nothing. */
function mayMove(proxy: Pod): boolean {
  const keeps = proxy.spec?.volumes?.some(({ emptyDir, hostPath }) => (emptyDir ?? hostPath) !== undefined) ?? false;
  return isReplaced(proxy) && !keeps;
}

/** The value of the annotation that records what of a delegate came from its proxy. */
function forwardedKeys(
  labels: Record<string, string>,
  annotations: Record<string, string>,
  spec: Fingerprints,
): string {
  return writeRecord({ labels: Object.keys(labels), annotations: Object.keys(annotations), conditions: [], spec });
}

/** Ephemeral containers are not among what a pod can be created with. */
function createdWith(proxy: Pod): Fingerprints {
  return Object.fromEntries(Object.entries(fingerprints(proxy)).filter(([path]) => !path.startsWith("ephemeral/")));
}

// Objects in stores never change, and one decision asks for the same owner several times.
const owners = new WeakMap<KubeObject, { readonly owner: Owner | undefined }>();

/** Whose delegate an object is; undefined when it is not Legation's or its owner annotation is unreadable. */
export function ownerOf(object: KubeObject): Owner | undefined {
  let known = owners.get(object);
  if (known === undefined) {
    known = { owner: readOwner(object) };
    owners.set(object, known);
  }
  return known.owner;
}

function readOwner(object: KubeObject): Owner | undefined {
  const text = object.metadata?.annotations?.[OWNER_ANNOTATION];
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { cluster, namespace, name, uid } = value as Record<string, unknown>;
  if (typeof cluster !== "string" || typeof namespace !== "string") return undefined;
  if (typeof name !== "string" || typeof uid !== "string") return undefined;
  return { cluster, namespace, name, uid };
}

/** True when `object` is a delegate that this host made. */
export function madeByHost(object: KubeObject, hostId: string): boolean {
  return object.metadata?.labels?.[HOST_LABEL] === hostId && ownerOf(object) !== undefined;
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

/** The scheduler of a pod that has overflowed, which was never told another name than its author's. */
function ownScheduler({ schedulerName }: PodSpec): string | undefined {
  return schedulerName === SCHEDULER_NAME || schedulerName === DEFAULT_SCHEDULER ? undefined : schedulerName;
}

function withoutKeys(
  map: Record<string, string> | undefined,
  isLeftOut: (key: string) => boolean,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(map ?? {})) if (!isLeftOut(key)) kept[key] = value;
  return kept;
}
