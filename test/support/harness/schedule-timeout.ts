import { clusters } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";

/** Sets how long every member's scheduler may take; call the result to put back what was there. */
export async function scheduleTimeout(host: ClusterClient, seconds: number): Promise<() => Promise<void>> {
  const { items } = await host.list(clusters);
  const set = async (name: string, scheduleTimeoutSeconds: number | null): Promise<void> => {
    await host.patch(clusters, { name }, { type: "merge", body: { spec: { scheduleTimeoutSeconds } } });
  };
  await Promise.all(items.map(({ metadata }) => set(metadata.name, seconds)));
  return async () => {
    await Promise.all(items.map(({ metadata, spec }) => set(metadata.name, spec.scheduleTimeoutSeconds ?? null)));
  };
}
