import { join } from "node:path";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { ensurePrograms } from "./programs.ts";

/** Installs the Prometheus operator's definitions in a cluster. */
export async function installPrometheusOperator(cluster: Cluster): Promise<void> {
  const crds = join(await ensurePrograms("prometheus-operator", () => {}), "crds");
  await kubectl(cluster, ["apply", "--server-side", "-f", crds]);
  await kubectl(cluster, ["wait", "--for=condition=Established", "-f", crds]);
}
