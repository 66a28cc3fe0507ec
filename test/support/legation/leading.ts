import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

/** Makes the Lease look held for the next hour, for joins that stay not Ready. Resolves to its end. */
export async function pretendToLead(host: Cluster): Promise<() => Promise<void>> {
  const renewTime = new Date(Date.now() + 3_600_000).toISOString().replace("Z", "000Z");
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { namespace: "legation-system", name: "legation-controller" },
    spec: { holderIdentity: "nobody", leaseDurationSeconds: 15, renewTime },
  };
  await kubectl(host, ["apply", "-f", "-"], { input: JSON.stringify(lease) });
  return async () => {
    await kubectl(host, ["-n", lease.metadata.namespace, "delete", "lease", lease.metadata.name]);
  };
}
