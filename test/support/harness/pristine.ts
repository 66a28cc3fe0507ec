import type { Cluster } from "../clusters/types.ts";
import { runCli } from "../legation/cli.ts";
import { kubectl } from "./kubectl.ts";

/** Removes everything of Legation from used clusters, for files that test installing, joining and leaving. */
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
