import { isInShard, type Shard, slotSelector } from "../api/shards.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../kube/client.ts";
import type { KubeObject, Stored } from "../kube/objects.ts";
import { pods, type Resource } from "../kube/resources.ts";

interface Selected {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
}

/**
 * Returns a client whose lists and watches of all namespaces show those of the shard. An object of the host and what
 * members have of it share their namespace, so the same client serves both. The API server selects pods by their slot.
 */
export function shardClient(client: ClusterClient, shard: Shard): ClusterClient {
  if (shard.count === 1) return client;
  const ofSlots = slotSelector(shard);
  const isOurNamespace = (namespace: string | undefined): boolean => isInShard(shard, namespace);
  const isOurs = ({ metadata }: Stored<KubeObject>): boolean => isOurNamespace(metadata.namespace);
  const isWhole = ({ namespaced }: Resource<KubeObject>, { namespace }: Selected): boolean =>
    !namespaced || namespace !== undefined;
  const selected = <Options extends Selected>({ plural, group }: Resource<KubeObject>, options: Options): Options =>
    plural === pods.plural && group === pods.group
      ? { ...options, labelSelector: [options.labelSelector ?? [], ofSlots].flat().join(",") }
      : options;
  async function* watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
  ): AsyncIterable<WatchEvent<T>> {
    const ofShard = { ...selected(resource, options), isWanted: isOurNamespace };
    for await (const event of client.watch(resource, ofShard)) {
      if (event.type === "BOOKMARK" || isOurs(event.object)) yield event;
    }
  }
  return {
    ...client,
    list: async (resource, options = {}) => {
      if (isWhole(resource, options)) return client.list(resource, options);
      const page = await client.list(resource, selected(resource, options));
      const items = page.items.filter(isOurs);
      // The size is that of all items together.
      const size = items.length === 0 ? 0 : (page.size * items.length) / page.items.length;
      return { ...page, items, size };
    },
    watch: (resource, options) =>
      isWhole(resource, options) ? client.watch(resource, options) : watch(resource, options),
  };
}
