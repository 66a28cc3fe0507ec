import type { Cluster } from "../clusters/types.ts";
import { runCli } from "../legation/cli.ts";
import { kubectl } from "./kubectl.ts";

/**
 * Takes everything of Legation's out of clusters that other files have used: the installation, what it made in members,
 * and the namespaces there. For files that test installing, joining and leaving themselves.
 */
export async function pristine(host: Cluster, ...members: readonly Cluster[]): Promise<void> {
  const uninstall = ({ kubeconfig }: Cluster): Promise<unknown> =>
    runCli(["uninstall", "--force", `--kubeconfig=${kubeconfig}`]);
  // Uninstalling also cleans the members.
  await uninstall(host);
  await Promise.all(members.map(uninstall));
  const clusters = [host, ...members];
  await Promise.all(
    clusters.map(async (cluster) => {
      const remove = (...what: string[]): Promise<string> =>
        kubectl(cluster, ["delete", ...what, "--ignore-not-found", "--timeout=120s"], { timeoutMs: 130_000 });
      await remove("clusterroles,clusterrolebindings", "--selector=legation.dev/host");
      await remove("namespaces", "--selector=legation.dev/host");
      await remove("namespace", "legation-system");
    }),
  );
}
