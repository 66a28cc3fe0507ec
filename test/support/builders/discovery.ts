import type { ClusterClient } from "../../../src/kube/client.ts";
import { kubeError } from "./kube-error.ts";

interface ServedGroup {
  readonly group: string;
  /** Plurals by version; the API server prefers the first version. */
  readonly versions: Readonly<Record<string, readonly string[]>>;
}

/** A type as aggregated discovery tells of it. */
export interface TypeServed {
  readonly group?: string;
  readonly version?: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced?: boolean;
  readonly verbs?: readonly string[];
  readonly shortNames?: readonly string[];
  /** The server of its version does not answer. */
  readonly isStale?: boolean;
}

/** The aggregated discovery document of `/api` or `/apis` with these types, the preferred versions first. */
export function discoveryDocument(path: string, types: readonly TypeServed[]): object {
  const ofPath = types.filter(({ group = "" }) => (group === "" ? "/api" : "/apis") === path);
  const items = [...Map.groupBy(ofPath, ({ group = "" }) => group)].map(([name, ofGroup]) => ({
    metadata: { name },
    versions: [...Map.groupBy(ofGroup, ({ version = "v1" }) => version)].map(([version, ofVersion]) => ({
      version,
      freshness: ofVersion.some(({ isStale = false }) => isStale) ? "Stale" : "Current",
      resources: ofVersion.map(
        ({ plural, kind, namespaced = true, verbs = ["get", "list", "delete"], shortNames = [] }) => ({
          resource: plural,
          responseKind: { kind },
          scope: namespaced ? "Namespaced" : "Cluster",
          verbs,
          shortNames,
          subresources: [{ subresource: "status", responseKind: { kind }, verbs: ["get"] }],
        }),
      ),
    })),
  }));
  return { kind: "APIGroupDiscoveryList", items };
}

/** The aggregated discovery of an API server with these types, for a fake client. */
export function discovering(...types: readonly TypeServed[]): ClusterClient["raw"] {
  return async ({ path }) => discoveryDocument(path, types);
}

/** The discovery documents of an API server that serves these groups, for a fake client. */
export function serving(...all: readonly ServedGroup[]): ClusterClient["raw"] {
  // A group without versions is not listed.
  const groups = all.filter(({ versions }) => Object.keys(versions).length > 0);
  return async ({ path }) => {
    if (path === "/apis") {
      return {
        groups: groups.map(({ group, versions }) => {
          const inOrder = Object.keys(versions).map((version) => ({ version }));
          return { name: group, versions: inOrder, preferredVersion: inOrder[0] };
        }),
      };
    }
    const [, , group, version = ""] = path.split("/");
    const plurals = groups.find((one) => one.group === group)?.versions[version];
    if (plurals !== undefined) return { resources: plurals.map((name) => ({ name })) };
    throw kubeError("NotFound", "404 page not found", { cluster: "fake", verb: "get", resource: path });
  };
}

/** The discovery documents of an API server with ServiceExports in these versions, the preferred one first. */
export function servingExports(...versions: readonly string[]): ClusterClient["raw"] {
  return serving({
    group: "multicluster.x-k8s.io",
    versions: Object.fromEntries(versions.map((version) => [version, ["serviceexports"]])),
  });
}
