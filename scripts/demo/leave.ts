import type { Cluster } from "../../test/support/clusters/types.ts";
import { stopProcesses } from "./process.ts";
import { AGENT_MEMBER, MEMBERS, showCounts, type Tour, VIEWER } from "./tour.ts";

/** Deletes the workloads and checks that their delegates are gone. */
export async function deleteWorkloads(tour: Tour): Promise<void> {
  const { shell } = tour;
  shell.step("Delete the workloads, and with them their pods in members");
  await shell.look("kubectl", "delete", "namespace", "shop", "pipelines", "--timeout=90s");
  await showCounts(tour);
  for (const cluster of tour.clusters.all) {
    const pods = await list(tour, cluster, "pods");
    if (pods.length > 0) throw new Error(`${cluster.name}: pods are left: ${pods.join(", ")}`);
  }
}

/** Removes the members and Legation, and checks that nothing is left. */
export async function removeLegation(tour: Tour): Promise<void> {
  const { clusters, shell } = tour;
  shell.step("Take Legation out again");
  for (const name of [...Object.keys(MEMBERS), AGENT_MEMBER]) {
    const { kubeconfig } = clusters.get(name);
    await shell.run("legation", "unjoin", name, "--member-kubeconfig", kubeconfig);
    await shell.run("kubectl", "--kubeconfig", kubeconfig, "delete", "-f", VIEWER);
  }
  shell.note("kill %1 %2 %3 %4   # webhook, controller, access and agent");
  await stopProcesses(clusters.info.directory);
  await shell.run("legation", "uninstall");

  const left: string[] = [];
  for (const cluster of clusters.all) {
    left.push(...(await legationObjects(tour, cluster)).map((object) => `${cluster.name}: ${object}`));
    await shell.run("kubectl", "--kubeconfig", cluster.kubeconfig, "get", "nodes,namespaces");
  }
  if (left.length > 0) throw new Error(`Legation has left something behind: ${left.join(", ")}`);
  shell.say("Nothing is left of it: no node, namespace, role, definition, webhook or policy, in any cluster.");
}

const KINDS = [
  "namespaces",
  "nodes",
  "clusterroles",
  "clusterrolebindings",
  "customresourcedefinitions",
  "mutatingwebhookconfigurations",
  "validatingwebhookconfigurations",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "apiservices",
  "leases",
].join(",");

async function legationObjects(tour: Tour, cluster: Cluster): Promise<string[]> {
  return (await list(tour, cluster, KINDS)).filter((name) => /legation|shop|pipelines/.test(name));
}

async function list({ shell }: Tour, { kubeconfig }: Cluster, kinds: string): Promise<string[]> {
  const output = await shell.read("kubectl", "--kubeconfig", kubeconfig, "get", kinds, "-A", "-o", "name");
  return output.split("\n").filter((line) => line !== "");
}
