import type { NameRule } from "../api/delegated-type.ts";
import type { Pod } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { type Reference, referencesBy } from "./references.ts";

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

/** An object that a pod names. */
export interface Dependency<Kind extends string = string> {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly optional: boolean;
  /** The kubelet's event for a missing object. */
  readonly missing: { readonly reason: string; readonly message: string };
}

export type DependencyRef<Kind extends string = string> = Pick<Dependency<Kind>, "kind" | "namespace" | "name">;

declare const dependencyKeyBrand: unique symbol;
/** `Kind/namespace/name` of a dependency. */
export type DependencyKey = string & { readonly [dependencyKeyBrand]: true };

export function dependencyKey({ kind, namespace, name }: DependencyRef): DependencyKey {
  return `${kind}/${namespace}/${name}` as DependencyKey;
}

// Present in every namespace of every cluster with that cluster's own content.
const ROOT_CA_CONFIG_MAP = "kube-root-ca.crt";
const DEFAULT_ACCOUNT = "default";
// Reserved for the classes that every API server has (pkg/apis/scheduling: SystemPriorityClassPrefix).
const SYSTEM_PRIORITY = "system-";

export type FindDependencies<Kind extends string = string> = (pod: Pod) => readonly Dependency<Kind>[];

/** Kinds that pods name, and where. Of objects that a missing one is told by, volumes come first. */
type Rules<Kind extends string> = readonly (readonly [Kind, NameRule & { readonly optional?: true }])[];

const VOLUME = "/spec/volumes/*";
const CONTAINERS = ["initContainers", "containers", "ephemeralContainers"].map((list) => `/spec/${list}/*`);
/** Follows `VisitPodSecretNames` and `VisitPodConfigmapNames` of Kubernetes: what a node may read for a pod. */
const NAMESPACED: Rules<DependencyKind> = [
  ["ConfigMap", { field: `${VOLUME}/configMap/name` }],
  ["Secret", { field: `${VOLUME}/secret/secretName` }],
  ["ConfigMap", { field: `${VOLUME}/projected/sources/*/configMap/name` }],
  ["Secret", { field: `${VOLUME}/projected/sources/*/secret/name` }],
  ["Secret", { field: `${VOLUME}/azureFile/secretName` }],
  // Volumes of cephfs, cinder, flexVolume, iscsi, rbd, scaleIO and storageos.
  ["Secret", { field: `${VOLUME}/*/secretRef/name` }],
  ["Secret", { field: `${VOLUME}/csi/nodePublishSecretRef/name` }],
  ...CONTAINERS.flatMap(
    (container): Rules<DependencyKind> => [
      ["ConfigMap", { field: `${container}/envFrom/*/configMapRef/name` }],
      ["Secret", { field: `${container}/envFrom/*/secretRef/name` }],
      ["ConfigMap", { field: `${container}/env/*/valueFrom/configMapKeyRef/name` }],
      ["Secret", { field: `${container}/env/*/valueFrom/secretKeyRef/name` }],
    ],
  ),
  ["ServiceAccount", { field: "/spec/serviceAccountName" }],
  // The kubelet pulls without a pull secret that it does not find.
  ["Secret", { field: "/spec/imagePullSecrets/*/name", optional: true }],
];
const CLASSES: Rules<ClassKind> = [
  ["PriorityClass", { field: "/spec/priorityClassName" }],
  ["RuntimeClass", { field: "/spec/runtimeClassName" }],
];

/** Returns the namespaced objects that a pod uses; optional only if every use is. */
export const dependenciesOf: FindDependencies<DependencyKind> = dependenciesBy(NAMESPACED, {
  isLeftOut: (kind, name) =>
    (kind === "ConfigMap" && name === ROOT_CA_CONFIG_MAP) || (kind === "ServiceAccount" && name === DEFAULT_ACCOUNT),
  missing,
});

/** Returns the classes that a pod names, except those that every cluster has. */
export const classesOf: FindDependencies<ClassKind> = dependenciesBy(CLASSES, {
  namespace: "",
  isLeftOut: (kind, name) => kind === "PriorityClass" && name.startsWith(SYSTEM_PRIORITY),
  missing: (kind, { name }) => ({ reason: "FailedCreate", message: `${kind} ${JSON.stringify(name)} not found` }),
});

interface RuleOptions<Kind extends string> {
  /** Default: the pod's. */
  readonly namespace?: "";
  /** Reports whether every cluster has the object itself. Default: none. */
  readonly isLeftOut?: (kind: Kind, name: string) => boolean;
  readonly missing: (kind: Kind, reference: Reference, rule: NameRule) => Dependency["missing"];
}

/** Returns what finds the objects that pods name by rules, each once. */
export function dependenciesBy<Kind extends string>(
  rules: Rules<Kind>,
  { namespace, isLeftOut = () => false, missing }: RuleOptions<Kind>,
): FindDependencies<Kind> {
  const compiled = rules.map(([kind, rule]) => ({ kind, rule, find: referencesBy(rule) }));
  return memoized((pod) => {
    const byKey = new Map<string, Dependency<Kind>>();
    for (const { kind, rule, find } of compiled) {
      for (const reference of find(pod)) {
        const { name, within } = reference;
        if (isLeftOut(kind, name)) continue;
        const optional = rule.optional ?? within.optional === true;
        const before = byKey.get(`${kind}/${name}`);
        if (before !== undefined && (!before.optional || optional)) continue;
        const at = namespace ?? pod.metadata?.namespace ?? "";
        byKey.set(`${kind}/${name}`, { kind, namespace: at, name, optional, missing: missing(kind, reference, rule) });
      }
    }
    return [...byKey.values()];
  });
}

export function allDependenciesOf(pod: Pod): readonly Dependency<DependencyKind>[] {
  const classes = classesOf(pod);
  return classes.length === 0 ? dependenciesOf(pod) : [...dependenciesOf(pod), ...classes];
}

export function dependencyKeys(pod: Pod): DependencyKey[] {
  return allDependenciesOf(pod).map(dependencyKey);
}

/** Returns the field of a pod's spec that names one object of the kind. Undefined for kinds that pods name elsewhere. */
export function namingField(kind: DependencyKind): string | undefined {
  const all: Rules<DependencyKind> = [...NAMESPACED, ...CLASSES];
  const fields = all.flatMap(([of, { field = "" }]) => (of === kind ? (/^\/spec\/(\w+)$/.exec(field)?.[1] ?? []) : []));
  return fields[0];
}

export function isClass(kind: string): kind is ClassKind {
  return ALL_KINDS.some((one) => one === kind && IS_CLASS[one]);
}

export function dependencyRef(key: DependencyKey): DependencyRef {
  const [kind = "", namespace = "", name = ""] = key.split("/");
  return { kind, namespace, name };
}

export function isDependencyKind(kind: string): kind is DependencyKind {
  return Object.hasOwn(IS_CLASS, kind);
}

function missing(kind: DependencyKind, { name, item }: Reference, { field = "" }: NameRule): Dependency["missing"] {
  if (kind === "ServiceAccount") {
    return { reason: "FailedMount", message: `failed to fetch token: serviceaccounts "${name}" not found` };
  }
  const message = `${kind.toLowerCase()} "${name}" not found${helmRelease(kind, name)}`;
  if (!field.startsWith(VOLUME)) return { reason: "Failed", message: `Error: ${message}` };
  return { reason: "FailedMount", message: `MountVolume.SetUp failed for volume "${item?.name}" : ${message}` };
}

/** Explains why a Helm release is missing: these Secrets of up to a megabyte are not read. */
function helmRelease(kind: DependencyKind, name: string): string {
  if (kind !== "Secret" || !name.startsWith("sh.helm.release.")) return "";
  return "; Secrets of type helm.sh/release.v1 are not copied to members: keep what the pod needs in a Secret of its own";
}
