import type { Clusters } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { legation } from "../legation/cli.ts";
import { startLegation } from "../legation/start.ts";

/**
 * Starts Legation on the cluster `host` until the end of the file, and joins these members in one network, in which it implements the
 * Multi-Cluster Services API.
 */
export async function startWithMcs(clusters: Clusters, members: readonly string[]): Promise<void> {
  const host = clusters.get("host");
  const running = await startLegation({ host, members: {}, restart: true });
  afterFile(() => running.stop());
  const given = `--kubeconfig=${host.kubeconfig}`;
  await legation(["install", given, "--mcs", "--network=corp"]);
  for (const name of members) {
    await legation(["join", name, given, `--member-kubeconfig=${clusters.get(name).kubeconfig}`, "--network=corp"]);
  }
  // It reads both when it starts.
  await running.controller.stop();
  await running.controller.start();
}
