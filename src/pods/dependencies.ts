import type { Container, KubeObject, Pod, PodSpec, Volume } from "../api/kubernetes.ts";

/** Kinds of objects that a pod names and a kubelet or an API server looks for when it starts. */
export const DEPENDENCY_KINDS = ["ConfigMap", "Secret", "ServiceAccount"] as const;
export type DependencyKind = (typeof DEPENDENCY_KINDS)[number];

/** An object of the pod's own namespace that the pod needs. */
export interface Dependency {
  readonly kind: DependencyKind;
  readonly name: string;
  /** The pod starts without it, too. */
  readonly optional: boolean;
}

// Every cluster publishes its own authority under this name, in every namespace.
const PUBLISHED_AUTHORITY = "kube-root-ca.crt";
const DEFAULT_ACCOUNT = "default";

type Named = { readonly name?: string; readonly optional?: boolean } | undefined;

/** What a pod needs of its namespace, each object once; what is needed anywhere is not optional. */
export function dependenciesOf({ spec }: Pod): Dependency[] {
  if (spec === undefined) return [];
  const found = new Map<string, Dependency>();
  const add = (kind: DependencyKind, named: Named): void => {
    const { name = "", optional = false } = named ?? {};
    if (name === "" || (kind === "ConfigMap" && name === PUBLISHED_AUTHORITY)) return;
    const key = `${kind}/${name}`;
    if (optional && found.has(key)) return;
    found.set(key, { kind, name, optional });
  };
  for (const container of containersOf(spec)) addFromContainer(container, add);
  for (const volume of spec.volumes ?? []) addFromVolume(volume, add);
  // Images may be pulled without: kubelet tries, and says so in an event.
  for (const secret of spec.imagePullSecrets ?? []) add("Secret", { ...secret, optional: true });
  const { serviceAccountName } = spec;
  if (serviceAccountName !== undefined && serviceAccountName !== DEFAULT_ACCOUNT) {
    add("ServiceAccount", { name: serviceAccountName });
  }
  return [...found.values()];
}

/** One string for an object of a namespace: the key of indexes and queues. */
export function dependencyKey(kind: DependencyKind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

/** The keys of all that a pod needs. */
export function dependencyKeys(pod: KubeObject & Pod): string[] {
  const namespace = pod.metadata?.namespace ?? "";
  return dependenciesOf(pod).map(({ kind, name }) => dependencyKey(kind, namespace, name));
}

/** In kubelet's words: the objects that do not exist. */
export function notFound(missing: readonly Dependency[]): string {
  return missing.map(({ kind, name }) => `${kind.toLowerCase()} "${name}" not found`).join("; ");
}

type Add = (kind: DependencyKind, named: Named) => void;

function containersOf(spec: PodSpec): Pick<Container, "env" | "envFrom">[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
}

function addFromContainer({ env = [], envFrom = [] }: Pick<Container, "env" | "envFrom">, add: Add): void {
  for (const { valueFrom } of env) {
    add("ConfigMap", valueFrom?.configMapKeyRef);
    add("Secret", valueFrom?.secretKeyRef);
  }
  for (const { configMapRef, secretRef } of envFrom) {
    add("ConfigMap", configMapRef);
    add("Secret", secretRef);
  }
}

function addFromVolume(volume: Volume, add: Add): void {
  add("ConfigMap", volume.configMap);
  add("Secret", secretNamed(volume.secret?.secretName, volume.secret?.optional));
  for (const { configMap, secret } of volume.projected?.sources ?? []) {
    add("ConfigMap", configMap);
    add("Secret", secret);
  }
  add("Secret", volume.csi?.nodePublishSecretRef);
  add("Secret", secretNamed(volume.azureFile?.secretName, false));
  const { cephfs, flexVolume, iscsi, rbd, scaleIO, storageos } = volume;
  for (const source of [cephfs, flexVolume, iscsi, rbd, scaleIO, storageos]) add("Secret", source?.secretRef);
}

function secretNamed(name: string | undefined, optional: boolean | undefined): Named {
  return name === undefined ? undefined : { name, optional: optional ?? false };
}
