import { type Cluster, joinedNetworkOf } from "../../api/cluster.ts";
import { WHOLE_KEY, WHOLE_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { type ServiceObject, selects } from "../../copies/services.ts";

/** Says which Services lead to a part of these pods only, since the pods are divided over members that no network joins. */
export function dividedServices(
  pods: readonly Stored<Pod>[],
  memberOf: (pod: Stored<Pod>) => string | undefined,
  {
    services,
    clusters,
  }: { readonly services: readonly ServiceObject[]; readonly clusters: readonly Stored<Cluster>[] },
): string[] {
  const networkOf = new Map(clusters.map((cluster) => [cluster.metadata.name, joinedNetworkOf(cluster)]));
  return services.flatMap((service) => {
    const selected = pods.filter(
      ({ metadata }) => metadata.namespace === service.metadata?.namespace && selects(service, metadata.labels ?? {}),
    );
    const members = [...new Set(selected.map(memberOf))].filter((member) => member !== undefined).sort();
    const networks = new Set(members.map((member) => networkOf.get(member) ?? `alone: ${member}`));
    if (networks.size < 2 || service.metadata?.annotations?.[WHOLE_KEY] === WHOLE_VALUE) return [];
    const name = service.metadata?.name;
    return [
      `Service ${name} leads to the pods of the same member or network only: ${members.join(", ")} are in no network ` +
        "together (legation join --network)",
    ];
  });
}
