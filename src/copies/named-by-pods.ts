import type { ClusterSpec } from "../api/cluster.ts";
import type { NameRule } from "../api/delegated-type.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { LabelSelector } from "../api/label-expressions.ts";
import { memoized } from "../api/memoized.ts";
import { type Reference, referencesBy } from "../pods/references.ts";
import { DEPENDENCIES, type DependencyKind } from "./dependencies.ts";

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

/** Kinds that pods name, and where. A missing object is told by the first field that names it: volumes come first. */
type Rules<Kind extends string> = readonly (readonly [Kind, NameRule & { readonly optional?: true }])[];

const VOLUME = "/spec/volumes/*";
const CONTAINERS = ["initContainers", "containers", "ephemeralContainers"].map((list) => `/spec/${list}/*`);
/** Follows `VisitPodSecretNames` and `VisitPodConfigmapNames` of Kubernetes: what a node may read for a pod. */
const NAMED: Rules<DependencyKind> = [
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
  ["PriorityClass", { field: "/spec/priorityClassName" }],
  ["RuntimeClass", { field: "/spec/runtimeClassName" }],
];

/** Kinds that one controller copies for the pods that name them. */
export interface DependencyFamily {
  /** The controller's, in logs and metrics. */
  readonly name: string;
  readonly title: string;
  readonly kinds: readonly (typeof DEPENDENCIES)[DependencyKind][];
  /** Returns the objects of these kinds that a pod names; optional only if every use is. */
  readonly of: FindDependencies<DependencyKind>;
  /** Selects the classes that a member is given. Of others the member is the judge. Absent: the kinds are no classes, and every member of the pods gets them. */
  readonly selector?: (spec: ClusterSpec) => LabelSelector | undefined;
}

/** All kinds of a family have to be readable in a member before pods start there that name one of them. */
export const FAMILIES: Readonly<Record<"dependencies" | "classes", DependencyFamily>> = {
  dependencies: family(["ConfigMap", "Secret", "ServiceAccount"], {
    name: "dependencies",
    title: "ConfigMaps, Secrets and ServiceAccounts",
  }),
  classes: family(["PriorityClass", "RuntimeClass"], {
    name: "classes",
    title: "PriorityClasses and RuntimeClasses",
    selector: ({ classSelector }) => classSelector,
  }),
};

function family(
  kinds: readonly DependencyKind[],
  other: Pick<DependencyFamily, "name" | "title" | "selector">,
): DependencyFamily {
  const rules = NAMED.filter(([kind]) => kinds.includes(kind));
  const of = dependenciesBy(rules, { isClass, isLeftOut, missing });
  return { ...other, kinds: kinds.map((kind) => DEPENDENCIES[kind]), of };
}

/** Reports whether every cluster has the object itself. */
function isLeftOut(kind: DependencyKind, name: string): boolean {
  if (kind === "PriorityClass") return name.startsWith(SYSTEM_PRIORITY);
  return name === (kind === "ConfigMap" ? ROOT_CA_CONFIG_MAP : kind === "ServiceAccount" ? DEFAULT_ACCOUNT : undefined);
}

interface RuleOptions<Kind extends string> {
  /** Reports whether objects of the kind have no namespace. Default: they are in the pod's. */
  readonly isClass?: (kind: Kind) => boolean;
  /** Reports whether every cluster has the object itself. Default: none. */
  readonly isLeftOut?: (kind: Kind, name: string) => boolean;
  readonly missing: (kind: Kind, reference: Reference, rule: NameRule) => Dependency["missing"];
}

/** Returns what finds the objects that pods name by rules, each once. */
export function dependenciesBy<Kind extends string>(
  rules: Rules<Kind>,
  { isClass = () => false, isLeftOut = () => false, missing }: RuleOptions<Kind>,
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
        const at = isClass(kind) ? "" : (pod.metadata?.namespace ?? "");
        byKey.set(`${kind}/${name}`, { kind, namespace: at, name, optional, missing: missing(kind, reference, rule) });
      }
    }
    return [...byKey.values()];
  });
}

export function allDependenciesOf(pod: Pod): readonly Dependency<DependencyKind>[] {
  return Object.values(FAMILIES).flatMap(({ of }) => of(pod));
}

export function dependencyKeys(pod: Pod): DependencyKey[] {
  return allDependenciesOf(pod).map(dependencyKey);
}

/** Returns the field of a pod's spec that names one object of the kind. Undefined for kinds that pods name elsewhere. */
export function namingField(kind: DependencyKind): string | undefined {
  const fields = NAMED.flatMap(([of, { field = "" }]) =>
    of === kind ? (/^\/spec\/(\w+)$/.exec(field)?.[1] ?? []) : [],
  );
  return fields[0];
}

export function isClass(kind: DependencyKind): boolean {
  return !DEPENDENCIES[kind].resource.namespaced;
}

export function dependencyRef(key: DependencyKey): DependencyRef {
  const [kind = "", namespace = "", name = ""] = key.split("/");
  return { kind, namespace, name };
}

export function isDependencyKind(kind: string): kind is DependencyKind {
  return Object.hasOwn(DEPENDENCIES, kind);
}

function missing(kind: DependencyKind, { name, item }: Reference, { field = "" }: NameRule): Dependency["missing"] {
  if (isClass(kind)) return { reason: "FailedCreate", message: `${kind} ${JSON.stringify(name)} not found` };
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
