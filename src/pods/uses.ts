import type { Pod, Stored } from "../api/kubernetes.ts";
import { allDependenciesOf, type DependencyKey, type DependencyKind, dependencyKey } from "./dependencies.ts";
import { isTerminal } from "./phase.ts";

/** Name of the index of proxies by what they use. */
export const USES_INDEX = "uses";

/** Under which values a proxy is found: what it uses together with its node, and the kinds that it uses. */
export function usesOf(proxy: Stored<Pod>): string[] {
  const dependencies = allDependenciesOf(proxy);
  // What has ended mounts nothing any more.
  if (dependencies.length === 0 || isTerminal(proxy)) return [];
  const node = proxy.spec?.nodeName ?? "";
  const kinds = new Set(dependencies.map(({ kind, namespace }) => kindIn(kind, namespace)));
  return [...kinds, ...dependencies.map((dependency) => useOn(node, dependencyKey(dependency)))];
}

/** Under which proxies that use the kind in a namespace are found. */
export function kindIn(kind: DependencyKind, namespace: string): string {
  return `${kind}/${namespace}`;
}

/** Under which proxies on a node that use it are found; the node of one without is empty. */
export function useOn(node: string, key: DependencyKey): string {
  return `${node}|${key}`;
}
