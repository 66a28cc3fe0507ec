import type { ClusterClient } from "../../../src/kube/client.ts";
import { kubeError } from "./kube-error.ts";

interface ServedGroup {
  readonly group: string;
  /** Plurals by version; the API server prefers the first version. */
  readonly versions: Readonly<Record<string, readonly string[]>>;
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
