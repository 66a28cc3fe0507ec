import type { Container, KubeObject, Pod, PodSpec, Stored, Volume } from "../api/kubernetes.ts";
import { isTerminal } from "./pod-state.ts";

/** Kinds without a namespace, of which a Cluster selects those that its member gets; of others the member is the judge. */
export type ClassKind = "PriorityClass" | "RuntimeClass";

export type DependencyKind = "ConfigMap" | "Secret" | "ServiceAccount" | ClassKind;

// In the order in which copies are made.
const IS_CLASS: Readonly<Record<DependencyKind, boolean>> = {
  ConfigMap: false,
  Secret: false,
  ServiceAccount: false,
  PriorityClass: true,
  RuntimeClass: true,
};
const ALL_KINDS = Object.keys(IS_CLASS) as readonly DependencyKind[];

export const NAMESPACED_KINDS: readonly DependencyKind[] = ALL_KINDS.filter((kind) => !isClass(kind));

export const CLASS_KINDS: readonly ClassKind[] = ALL_KINDS.filter(isClass);

export interface Dependency {
  readonly kind: DependencyKind;
  readonly namespace: string;
  readonly name: string;
  readonly optional: boolean;
  /** The kubelet's event for a missing object. */
  readonly missing: { readonly reason: string; readonly message: string };
}

export type DependencyRef = Pick<Dependency, "kind" | "namespace" | "name">;

interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

declare const dependencyKeyBrand: unique symbol;
/** `Kind/namespace/name` of a dependency. */
export type DependencyKey = string & { readonly [dependencyKeyBrand]: true };

export function dependencyKey({ kind, namespace, name }: ObjectName): DependencyKey {
  return `${kind}/${namespace}/${name}` as DependencyKey;
}

// Present in every namespace of every cluster with that cluster's own content.
const ROOT_CA_CONFIG_MAP = "kube-root-ca.crt";
const DEFAULT_ACCOUNT = "default";
// Reserved for the classes that every API server has (pkg/apis/scheduling: SystemPriorityClassPrefix).
const SYSTEM_PRIORITY = "system-";

// Objects in stores never change, and indexes and decisions ask repeatedly.
const known = new WeakMap<KubeObject, readonly Dependency[]>();

/** Returns the namespaced objects that a pod uses; optional only if every use is. */
export function dependenciesOf(pod: Pod): readonly Dependency[] {
  let dependencies = known.get(pod);
  if (dependencies === undefined) {
    dependencies = pod.spec === undefined ? [] : merged(referencesIn(pod.spec), pod.metadata?.namespace ?? "");
    known.set(pod, dependencies);
  }
  return dependencies;
}

/** Returns the classes that a pod names, except those that every cluster has. */
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

export function allDependenciesOf(pod: Pod): readonly Dependency[] {
  const classes = classesOf(pod);
  return classes.length === 0 ? dependenciesOf(pod) : [...dependenciesOf(pod), ...classes];
}

export function dependencyKeys(pod: Pod): DependencyKey[] {
  return allDependenciesOf(pod).map(dependencyKey);
}

export function isClass(kind: string): kind is ClassKind {
  return ALL_KINDS.some((one) => one === kind && IS_CLASS[one]);
}

export function dependencyRef(key: DependencyKey): DependencyRef {
  const [kind, namespace = "", name = ""] = key.split("/");
  return { kind: ALL_KINDS.find((known) => known === kind) ?? "ConfigMap", namespace, name };
}

interface Use {
  readonly kind: DependencyKind;
  readonly name: string | undefined;
  readonly optional: boolean;
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

function referencesIn(spec: PodSpec): Use[] {
  const { containers, initContainers = [], ephemeralContainers = [], volumes = [], serviceAccountName } = spec;
  const account: Use[] =
    serviceAccountName === undefined || serviceAccountName === DEFAULT_ACCOUNT
      ? []
      : [{ kind: "ServiceAccount", name: serviceAccountName, optional: false }];
  return [
    ...volumes.flatMap(volumeUses),
    ...[...initContainers, ...containers, ...ephemeralContainers].flatMap(environmentUses),
    ...account,
    // The kubelet pulls without a pull secret that it does not find.
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

/** Follows `VisitPodSecretNames` and `VisitPodConfigmapNames` of Kubernetes: what a node may read for a pod. */
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

/** Explains why a Helm release is missing: these Secrets of up to a megabyte are not read. */
function helmRelease(kind: DependencyKind, name: string): string {
  if (kind !== "Secret" || !name.startsWith("sh.helm.release.")) return "";
  return "; Secrets of type helm.sh/release.v1 are not copied to members: keep what the pod needs in a Secret of its own";
}

export const USES_INDEX = "uses";

/** Returns kinds by namespace, and objects by node. */
export function usesOf(proxy: Stored<Pod>): string[] {
  const dependencies = allDependenciesOf(proxy);
  // A terminal pod mounts nothing.
  if (dependencies.length === 0 || isTerminal(proxy)) return [];
  const node = proxy.spec?.nodeName ?? "";
  const kinds = new Set(dependencies.map(({ kind, namespace }) => kindIn(kind, namespace)));
  return [...kinds, ...dependencies.map((dependency) => useOn(node, dependencyKey(dependency)))];
}

export function kindIn(kind: string, namespace: string): string {
  return `${kind}/${namespace}`;
}

/** The node is empty for unbound proxies. */
export function useOn(node: string, key: DependencyKey): string {
  return `${node}|${key}`;
}
