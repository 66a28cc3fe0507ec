import { join } from "node:path";
import type { Cluster } from "../clusters/types.ts";
import { installDefinitions } from "../harness/definitions.ts";
import { ensurePrograms } from "./programs.ts";

/** Installs the Prometheus operator's definitions in a cluster. */
export async function installPrometheusOperator(cluster: Cluster): Promise<void> {
  await installDefinitions(cluster, join(await ensurePrograms("prometheus-operator", () => {}), "crds"));
}
