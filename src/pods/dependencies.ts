import type { Container, KubeObject, Pod, PodSpec, Volume } from "../api/kubernetes.ts";

/** Kinds of objects of the whole cluster that a pod names. */
export type ClassKind = "PriorityClass" | "RuntimeClass";

/** Kinds of objects that a pod names and that its delegate needs beside it. */
export type DependencyKind = "ConfigMap" | "Secret" | "ServiceAccount" | ClassKind;

/** Kinds in a pod's own namespace, in the order in which copies are made. */
export const NAMESPACED_KINDS: readonly DependencyKind[] = ["ConfigMap", "Secret", "ServiceAccount"];

/** Kinds of the whole cluster. */
export const CLASS_KINDS: readonly ClassKind[] = ["PriorityClass", "RuntimeClass"];

const ALL_KINDS: readonly DependencyKind[] = [...NAMESPACED_KINDS, ...CLASS_KINDS];

/** One object that a pod uses. */
export interface Dependency {
  readonly kind: DependencyKind;
  /** The pod's own; empty for a class. */
  readonly namespace: string;
  readonly name: string;
  /** The pod starts without it. */
  readonly optional: boolean;
  /** What kubelet says when it is not there: reason and message of its event. */
  readonly missing: { readonly reason: string; readonly message: string };
}

/** Names one dependency. */
export type DependencyRef = Pick<Dependency, "kind" | "namespace" | "name">;

declare const dependencyKeyBrand: unique symbol;
/** `Kind/namespace/name`: names one dependency, whoever uses it. */
export type DependencyKey = string & { readonly [dependencyKeyBrand]: true };

/** The key of a dependency. */
export function dependencyKey({ kind, namespace, name }: DependencyRef): DependencyKey {
  return `${kind}/${namespace}/${name}` as DependencyKey;
}

// In every namespace of every cluster, each with what is that cluster's own.
const ROOT_CA_CONFIG_MAP = "kube-root-ca.crt";
const DEFAULT_ACCOUNT = "default";
// Reserved for the two classes that every API server has (pkg/apis/scheduling: SystemPriorityClassPrefix).
const SYSTEM_PRIORITY = "system-";

// Objects in stores never change, and several indexes and decisions ask for the same pod's.
const known = new WeakMap<KubeObject, readonly Dependency[]>();

/** What a pod uses of its namespace, each object once; optional only when every use of it is. */
export function dependenciesOf(pod: Pod): readonly Dependency[] {
  let dependencies = known.get(pod);
  if (dependencies === undefined) {
    dependencies = pod.spec === undefined ? [] : merged(usesOf(pod.spec), pod.metadata?.namespace ?? "");
    known.set(pod, dependencies);
  }
  return dependencies;
}

/** Returns the classes that a pod names, but for those that every cluster has. */
export function classesOf({ spec }: Pod): readonly Dependency[] {
  const { priorityClassName = "", runtimeClassName } = spec ?? {};
  const named: [ClassKind, string][] = [];
  if (priorityClassName !== "" && !priorityClassName.startsWith(SYSTEM_PRIORITY)) {
    named.push(["PriorityClass", priorityClassName]);
  }
  if (runtimeClassName !== undefined && runtimeClassName !== "") named.push(["RuntimeClass", runtimeClassName]);
  return named.map(([kind, name]) => {
    const message = `${kind} ${JSON.stringify(name)} not found`;
    return { kind, namespace: "", name, optional: false, missing: { reason: "FailedCreate", message } };
  });
}

/** Returns what a pod uses of its namespace, and its classes. */
export function allDependenciesOf(pod: Pod): readonly Dependency[] {
  const classes = classesOf(pod);
  return classes.length === 0 ? dependenciesOf(pod) : [...dependenciesOf(pod), ...classes];
}

/** The keys of all that a pod uses, classes included. */
export function dependencyKeys(pod: Pod): DependencyKey[] {
  return allDependenciesOf(pod).map(dependencyKey);
}

/** Reports whether objects of the kind belong to the whole cluster. */
export function isClass(kind: DependencyKind): kind is ClassKind {
  return CLASS_KINDS.some((one) => one === kind);
}

/** The dependency of a key. */
export function dependencyRef(key: DependencyKey): DependencyRef {
  const [kind, namespace = "", name = ""] = key.split("/");
  return { kind: ALL_KINDS.find((known) => known === kind) ?? "ConfigMap", namespace, name };
}

interface Use {
  readonly kind: DependencyKind;
  readonly name: string | undefined;
  readonly optional: boolean;
  /** The volume that needs it; absent: an environment variable does. */
  readonly volume?: string;
}

function merged(uses: readonly Use[], namespace: string): readonly Dependency[] {
  const byKey = new Map<string, Dependency>();
  for (const { kind, name, optional, volume } of uses) {
    if (name === undefined || name === "" || (kind === "ConfigMap" && name === ROOT_CA_CONFIG_MAP)) continue;
    const key = `${kind}/${name}`;
    const before = byKey.get(key);
    if (before !== undefined && (!before.optional || optional)) continue;
    byKey.set(key, { kind, namespace, name, optional, missing: missing(kind, name, volume) });
  }
  return [...byKey.values()];
}

function usesOf(spec: PodSpec): Use[] {
  const { containers, initContainers = [], ephemeralContainers = [], volumes = [], serviceAccountName } = spec;
  const account: Use[] =
    serviceAccountName === undefined || serviceAccountName === DEFAULT_ACCOUNT
      ? []
      : [{ kind: "ServiceAccount", name: serviceAccountName, optional: false }];
  return [
    ...volumes.flatMap(volumeUses),
    ...[...initContainers, ...containers, ...ephemeralContainers].flatMap(environmentUses),
    ...account,
    // Kubelet pulls without one that it does not find.
    ...(spec.imagePullSecrets ?? []).map(({ name }): Use => ({ kind: "Secret", name, optional: true })),
  ];
}

function environmentUses({ env = [], envFrom = [] }: Pick<Container, "env" | "envFrom">): Use[] {
  const uses: Use[] = [];
  const add = (kind: DependencyKind, source: { name?: string; optional?: boolean } | undefined): void => {
    if (source !== undefined) uses.push({ kind, name: source.name, optional: source.optional ?? false });
  };
  for (const { configMapRef, secretRef } of envFrom) {
    add("ConfigMap", configMapRef);
    add("Secret", secretRef);
  }
  for (const { valueFrom } of env) {
    add("ConfigMap", valueFrom?.configMapKeyRef);
    add("Secret", valueFrom?.secretKeyRef);
  }
  return uses;
}

/** As `VisitPodSecretNames` and `VisitPodConfigmapNames` of Kubernetes, which say what a node may read for a pod. */
function volumeUses(volume: Volume): Use[] {
  const uses: Use[] = [];
  const add = (kind: DependencyKind, name: string | undefined, optional = false): void => {
    uses.push({ kind, name, optional, volume: volume.name });
  };
  add("ConfigMap", volume.configMap?.name, volume.configMap?.optional);
  add("Secret", volume.secret?.secretName, volume.secret?.optional);
  for (const { configMap, secret } of volume.projected?.sources ?? []) {
    add("ConfigMap", configMap?.name, configMap?.optional);
    add("Secret", secret?.name, secret?.optional);
  }
  add("Secret", volume.azureFile?.secretName);
  const { cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos } = volume;
  for (const source of [cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos])
    add("Secret", source?.secretRef?.name);
  add("Secret", volume.csi?.nodePublishSecretRef?.name);
  return uses;
}

function missing(kind: DependencyKind, name: string, volume: string | undefined): Dependency["missing"] {
  if (kind === "ServiceAccount") {
    return { reason: "FailedMount", message: `failed to fetch token: serviceaccounts "${name}" not found` };
  }
  const message = `${kind.toLowerCase()} "${name}" not found${helmRelease(kind, name)}`;
  if (volume === undefined) return { reason: "Failed", message: `Error: ${message}` };
  return { reason: "FailedMount", message: `MountVolume.SetUp failed for volume "${volume}" : ${message}` };
}

/** Helm keeps its releases in Secrets of up to a megabyte, by the dozen: they are not read. */
function helmRelease(kind: DependencyKind, name: string): string {
  if (kind !== "Secret" || !name.startsWith("sh.helm.release.")) return "";
  return "; Secrets of type helm.sh/release.v1 are not copied to members: keep what the pod needs in a Secret of its own";
}
