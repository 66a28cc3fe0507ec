import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "./kubectl.ts";
import { mutatingPolicy, newPodsIn } from "./mutating-policy.ts";

/** Has new pods of the namespaces find hosts by name: the nodes of the tests have no DNS. `addresses` are by name. */
export async function aliasHosts(
  cluster: Cluster,
  name: string,
  namespaces: readonly string[],
  addresses: ReadonlyMap<string, string>,
): Promise<void> {
  // CEL takes values of different types in one map if they are dynamic.
  const aliases = [...addresses].map(([host, ip]) => `{"ip": dyn("${ip}"), "hostnames": dyn(["${host}"])}`);
  const expression = `[JSONPatch{op: "add", path: "/spec/hostAliases", value: [${aliases.join(", ")}]}]`;
  await applyAll(
    cluster,
    mutatingPolicy(name, {
      matchConstraints: newPodsIn(namespaces),
      mutation: { patchType: "JSONPatch", jsonPatch: { expression } },
    }),
  );
}

/** Returns the address at which the cluster's pods reach its API server. */
export function apiAddress(cluster: Cluster): Promise<string> {
  return kubectl(cluster, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
}
