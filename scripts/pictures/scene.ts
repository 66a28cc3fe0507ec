import { join } from "node:path";
import type { ClusterOptions } from "../../test/support/clusters/types.ts";
import { AGENT_MEMBER, installLegation, joinBehindAgent, joinMembers, MEMBERS, type Tour } from "../demo/tour.ts";

/** Folder of the scene's manifests. */
export const MANIFESTS: string = join(import.meta.dirname, "scene");

/** The member that is lost at the end. */
export const LOST_MEMBER = "east";

/** Members, and how many pods of their own each has: so many that the session's pods go to the two smaller ones. */
const NEIGHBOURS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(Object.keys(MEMBERS).map((name) => [name, 5])),
  [LOST_MEMBER]: 2,
  [AGENT_MEMBER]: 28,
};

/** Clusters of the scene: sites of different sizes, one of them with accelerators. */
export const CLUSTERS: Readonly<Record<string, ClusterOptions>> = {
  host: { nodes: [{ count: 1, cpu: "8", memory: "32Gi", pods: 110 }] },
  west: { nodes: [{ count: 3, cpu: "8", memory: "32Gi", pods: 110 }] },
  [LOST_MEMBER]: { nodes: [{ count: 2, cpu: "8", memory: "32Gi", pods: 110 }] },
  [AGENT_MEMBER]: { nodes: [{ count: 2, cpu: "32", memory: "128Gi", pods: 110, labels: { accelerator: "a100" } }] },
};

type Scene = Pick<Tour, "clusters" | "shell">;

/** Joins three members, one behind an agent, and runs workloads there: all but those that the recorded session is about. */
export async function openScene(tour: Tour): Promise<void> {
  const { shell } = tour;
  // The controller reads other tenants' pods when a member joins, and then minutes later.
  for (const [name, pods] of Object.entries(NEIGHBOURS)) await furnish(tour, name, pods);
  const hub = await installLegation(tour);
  await joinMembers(tour);
  await joinBehindAgent(tour, hub);
  await shell.run("kubectl", "label", `cluster/${AGENT_MEMBER}`, "region=eu");
  const limits = JSON.stringify({ spec: { limits: { total: { memory: "192Gi" } } } });
  await shell.run("kubectl", "patch", `cluster/${AGENT_MEMBER}`, "--type=merge", `--patch=${limits}`);
  await shell.run("kubectl", "wait", `cluster/${AGENT_MEMBER}`, "--for=condition=Ready", "--timeout=60s");
  shell.step("Run workloads");
  await apply(tour, "namespaces.yaml");
  await apply(tour, "workloads.yaml");
  await inShop(tour, "create", "job", "report-29401920", "--from=cronjob/report");
  await inShop(tour, "rollout", "status", "deployment/web", "--timeout=90s");
  await inShop(tour, "rollout", "status", "deployment/checkout", "--timeout=90s");
  await inShop(tour, "rollout", "status", "statefulset/cache", "--timeout=90s");
  await inShop(tour, "wait", "job/report-29401920", "--for=condition=Complete", "--timeout=90s");
  await inShop(tour, "patch", "deployment/checkout", `--patch-file=${join(MANIFESTS, "checkout-rollout.yaml")}`);
}

/** Waits until the pods of the annotated Deployment run in members. */
export async function awaitDelegated(scene: Scene): Promise<void> {
  await inShop(scene, "rollout", "status", "deployment/web", "--timeout=90s");
}

/** Starts a Job, of which some pods end, and a pod that no member can take. */
export async function startTraining(scene: Scene): Promise<void> {
  const { shell } = scene;
  const inMl = (...args: readonly string[]): Promise<string> => shell.run("kubectl", "-n", "ml", ...args);
  await apply(scene, "train-model.yaml");
  await apply(scene, "fine-tune.yaml");
  await inMl("wait", "pods", "-l", "job-name=train-model", "--for=condition=Ready", "--timeout=90s");
  const names = await shell.read("kubectl", "-n", "ml", "get", "pods", "-l", "job-name=train-model", "-o", "name");
  const some = names.trim().split("\n").slice(0, 3);
  await inMl("annotate", ...some, "kwok.test/outcome=succeeded");
  await inMl("wait", "job/train-model", "--for=jsonpath={.status.succeeded}=3", "--timeout=90s");
  await inMl("wait", "job/train-model", "--for=jsonpath={.status.ready}=4", "--timeout=90s");
  await inMl("wait", "pod/fine-tune", "--for=condition=PodScheduled=false", "--timeout=30s");
}

/** Freezes the API server of a member, and waits until the host calls its node not ready. */
export async function loseMember({ clusters, shell }: Scene): Promise<void> {
  await clusters.get(LOST_MEMBER).apiServer.freeze();
  const node = `node/legation-${LOST_MEMBER}`;
  await shell.run("kubectl", "wait", node, "--for=condition=Ready=Unknown", "--timeout=120s");
}

/** Waits until pods of the lost member are evicted, and others run in their place. */
export async function awaitReplaced(scene: Scene): Promise<void> {
  const lost = ["pods", "-l", "app=web", `--field-selector=spec.nodeName=legation-${LOST_MEMBER}`];
  await inShop(scene, "wait", ...lost, "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=120s");
  await inShop(scene, "wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=60s");
}

/** Gives a member pods of its own, and the host's administrator the right to look at everything there. */
async function furnish({ clusters, shell }: Scene, name: string, pods: number): Promise<void> {
  const inMember = ["--kubeconfig", clusters.get(name).kubeconfig];
  const rights = ["--clusterrole=cluster-admin", "--user=legation:admin"];
  await shell.run("kubectl", ...inMember, "create", "clusterrolebinding", "legation-pictures", ...rights);
  await shell.run("kubectl", ...inMember, "apply", "-f", join(MANIFESTS, "neighbours.yaml"));
  await shell.run("kubectl", ...inMember, "scale", "deployment/warehouse", `--replicas=${pods}`);
}

function apply({ shell }: Scene, file: string): Promise<string> {
  return shell.run("kubectl", "apply", "-f", join(MANIFESTS, file));
}

function inShop({ shell }: Scene, ...args: readonly string[]): Promise<string> {
  return shell.run("kubectl", "-n", "shop", ...args);
}
