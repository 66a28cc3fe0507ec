import { type Dependency, type DependencyKind, isClass } from "../../pods/dependencies.ts";

// Authorities that a controller of each cluster writes into all of its namespaces: the pod trusts those of where it runs.
const EACH_CLUSTERS_OWN: ReadonlySet<string> = new Set(["istio-ca-root-cert", "openshift-service-ca.crt"]);

/** True when what a member has in the place of a copy is used as it is. */
export function isUsedInPlace(kind: DependencyKind, name: string): boolean {
  // An account is who the pod is in that member: the member's administrator may have said so. Its classes are the member's own.
  return kind === "ServiceAccount" || isClass(kind) || (kind === "ConfigMap" && EACH_CLUSTERS_OWN.has(name));
}

/** Why a member cannot have a copy: what is there is somebody else's. */
export function foreignMessage({ kind, name }: Pick<Dependency, "kind" | "name">): string {
  return `${kind} ${name}, which the pod needs, is there already and was not made by Legation for this host`;
}
