import type { Cluster } from "../clusters/types.ts";
import { legationOn } from "../legation/process.ts";
import { kubectl } from "./kubectl.ts";

/** Takes all types and members out, whether anything answers or not, and Legation off the host. */
export async function removeLegation(host: Cluster): Promise<void> {
  const types = await kubectl(host, ["get", "delegatedtypes.legation.dev", "-o", "name"]).catch(() => "");
  for (const type of types.split("\n").filter((name) => name !== "")) {
    await kubectl(host, ["patch", type, "--type=merge", "--patch", '{"metadata":{"finalizers":null}}']);
    await kubectl(host, ["delete", type, "--ignore-not-found"]);
  }
  const { code, stdout } = await legationOn(host, "status", "-o", "json");
  const joined: readonly { readonly name: string }[] = code === 0 ? JSON.parse(stdout).clusters : [];
  for (const { name } of joined) await legationOn(host, "unjoin", name, "--force", "--timeout=1s");
  await legationOn(host, "uninstall", "--force");
}

/** Removes everything of Legation from used clusters, for files that test installing, joining and leaving. */
export async function pristine(host: Cluster, ...members: readonly Cluster[]): Promise<void> {
  await removeLegation(host);
  await Promise.all(members.map(removeLegation));
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
