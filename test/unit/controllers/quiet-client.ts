import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, WatchOptions } from "../../../src/kube/client.ts";
import { fakeClient } from "../cli/client.ts";

/** Returns a client whose watches stay silent, and whose lists return these items. */
export function quietClient(items: readonly KubeObject[], writes: Partial<ClusterClient> = {}): ClusterClient {
  return fakeClient({
    list: (async () => ({ items, resourceVersion: "1", size: 0 })) as never,
    watch: async function* (_resource: unknown, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } as never,
    ...writes,
  });
}
