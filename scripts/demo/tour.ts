import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ACCESS_NAMESPACE } from "../../src/api/access.ts";
import { SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import { kubeconfigText } from "../../test/support/clusters/kubeconfig.ts";
import { realNodesPossible } from "../../test/support/clusters/node/possible.ts";
import { freePort } from "../../test/support/clusters/ports.ts";
import type { Cluster, Clusters } from "../../test/support/clusters/types.ts";
import { countPods, countsTable } from "./counts.ts";
import { startProcess } from "./process.ts";
import type { Shell } from "./shell.ts";

/** Dependencies of every part of the tour. */
export interface Tour {
  readonly clusters: Clusters;
  readonly shell: Shell;
  readonly signal: AbortSignal;
}

/** Members of the demo, and the labels of the examples. */
export const MEMBERS: Readonly<Record<string, string>> = { west: "region=eu,tier=gold", east: "region=us" };

/** Manifest by which the host's administrator may look into a member. */
export const VIEWER = "scripts/demo/viewer.yaml";

/** A member behind an agent. It has a real node, if this machine can run one. */
export const AGENT_MEMBER = "north";

/**
 * Installs Legation on the host and runs its three processes with their own service accounts. Returns the address at which agents
 * connect.
 */
export async function installLegation({ clusters, shell, signal }: Tour): Promise<string> {
  const { directory } = clusters.info;
  const host = clusters.get("host");
  const listen = `127.0.0.1:${await freePort()}`;
  const kubeletListen = `127.0.0.1:${await freePort()}`;
  const hubListen = `127.0.0.1:${await freePort()}`;
  const accessPort = await freePort();
  shell.step("Install Legation on the host");
  const outside = ["--webhook-url", `https://${listen}`, "--access", "--access-address", `localhost:${accessPort}`];
  await shell.run("legation", "install", ...outside, "--cluster-name", "host");
  shell.say("Webhook, controller and access run on this machine, each with the rights of its own service account.");
  const processes = {
    webhook: { flags: ["--listen", listen], readyText: "webhook serves" },
    controller: {
      flags: ["--kubelet-listen", kubeletListen, "--hub-listen", hubListen],
      readyText: "controllers started",
    },
    access: { flags: ["--listen", `127.0.0.1:${accessPort}`], readyText: "access serves" },
  };
  for (const name of ["webhook", "controller", "access"] as const) {
    const { flags, readyText } = processes[name];
    const namespace = name === "access" ? ACCESS_NAMESPACE : SYSTEM_NAMESPACE;
    const kubeconfig = await accountKubeconfig(shell, host, { account: `legation-${name}`, namespace, directory });
    const args = ["--kubeconfig", kubeconfig, ...flags];
    const log = join(directory, `${name}.log`);
    shell.note(`legation ${name} ${args.join(" ")} >${log} &`.replaceAll(directory, "$DEMO"));
    await startProcess({ name, args, directory, readyText, signal });
  }
  return hubListen;
}

/** Writes a kubeconfig with a token of a service account. */
async function accountKubeconfig(
  shell: Shell,
  { name: cluster, server, caData, kubeconfig: admin }: Cluster,
  {
    account,
    namespace,
    directory,
  }: { readonly account: string; readonly namespace: string; readonly directory: string },
): Promise<string> {
  const file = join(directory, `${account}.kubeconfig`);
  const command = ["--kubeconfig", admin, "-n", namespace, "create", "token", account, "--duration=24h"];
  shell.note(`kubectl ${command.join(" ")}   # kept in ${file}`.replaceAll(directory, "$DEMO"));
  const token = (await shell.read("kubectl", ...command)).trim();
  writeFileSync(file, kubeconfigText({ name: cluster, server, caData, user: account, token }), { mode: 0o600 });
  return file;
}

/** Joins the members. */
export async function joinMembers({ clusters, shell }: Tour): Promise<void> {
  shell.step("Join two members: to the host, each is one large node");
  for (const [name, labels] of Object.entries(MEMBERS)) {
    const { kubeconfig } = clusters.get(name);
    await shell.run("legation", "join", name, "--member-kubeconfig", kubeconfig, "--labels", labels, "--access");
  }
  await shell.look("kubectl", "get", "nodes");
}

const RUNNING = "--field-selector=status.phase=Running";
const WHERE = "custom-columns=POD:.metadata.name,NODE:.spec.nodeName,IP:.status.podIP";

/** Applies the examples and shows where their pods run. */
export async function runExamples(tour: Tour): Promise<void> {
  const { shell } = tour;
  shell.step("Run ordinary workloads in the members");
  shell.say("The manifests of examples/ are ordinary ones with one annotation; those of examples/all-mode have none.");
  await shell.run("kubectl", "apply", "-f", "examples/namespace.yaml");
  await shell.run("kubectl", "apply", "-f", "examples/");
  await shell.run("kubectl", "apply", "-f", "examples/all-mode/namespace.yaml", "-f", "examples/all-mode/job.yaml");
  await shell.run("kubectl", "-n", "shop", "create", "job", "report-now", "--from=cronjob/report");
  await shell.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s");
  await shell.run("kubectl", "-n", "shop", "rollout", "status", "statefulset/cache", "--timeout=90s");
  await shell.run("kubectl", "-n", "shop", "wait", "pod/toolbox", "--for=condition=Ready", "--timeout=90s");
  const jobs = ["job/thumbnails", "job/report-now"];
  await shell.run("kubectl", "-n", "shop", "wait", ...jobs, "--for=condition=Complete", "--timeout=90s");
  await shell.run("kubectl", "-n", "pipelines", "wait", "job/unchanged", "--for=condition=Complete", "--timeout=90s");
  await shell.look("kubectl", "-n", "shop", "get", "pods", RUNNING, "-o", WHERE);
  await showCounts(tour);
  shell.say("Members have more pods than the host: it has none of the whole Jobs sweep and render.");
  await shell.run("kubectl", "-n", "shop", "get", "deployments,statefulsets,jobs,cronjobs");
  await shell.run("kubectl", "-n", "shop", "events", "--for", "deployment/web");
  const name = await shell.read("kubectl", "-n", "shop", "get", "pods", "-l", "app=web", "-o", "name");
  const [first = ""] = name.trim().split("\n");
  await shell.run("legation", "status", "pod", first.replace("pod/", ""), "-n", "shop");
}

/** Prints how many pods each cluster has. The lists of all are in the file. */
export async function showCounts({ clusters, shell }: Pick<Tour, "clusters" | "shell">): Promise<void> {
  const counts = [];
  for (const { name, kubeconfig } of clusters.all) {
    const list = ["--kubeconfig", kubeconfig, "get", "pods", "-A"];
    await shell.run("kubectl", ...list, "-o", "wide");
    counts.push(countPods(name, await shell.read("kubectl", ...list, "-o", "json")));
  }
  shell.say(...countsTable(counts));
}

/** Joins a third member through an agent. */
export async function joinBehindAgent({ clusters, shell, signal }: Tour, hub: string): Promise<void> {
  const { directory } = clusters.info;
  const member = clusters.get(AGENT_MEMBER);
  const { kubeconfig } = member;
  shell.step("Join a member that the host cannot reach");
  shell.say("An agent there connects to the host. It runs on this machine, too, since no image of Legation is here.");
  const file = join(directory, "agent.yaml");
  const words = ["join", AGENT_MEMBER, "--agent", "--hub-address", hub, "--access"];
  shell.note(`legation ${words.join(" ")} > $DEMO/agent.yaml`);
  const manifest = await shell.read("legation", ...words);
  writeFileSync(file, manifest, { mode: 0o600 });
  await shell.run("kubectl", "--kubeconfig", kubeconfig, "apply", "-f", file);
  const [, agent = ""] = /^ {2}name: (legation-agent-\w+)$/m.exec(manifest) ?? [];
  const scaled = ["-n", SYSTEM_NAMESPACE, "scale", `deployment/${agent}`, "--replicas=0"];
  await shell.run("kubectl", "--kubeconfig", kubeconfig, ...scaled);
  const args = [
    "--kubeconfig",
    await accountKubeconfig(shell, member, { account: agent, namespace: SYSTEM_NAMESPACE, directory }),
    "--secret",
    agent,
  ];
  shell.note(`legation agent ${args.join(" ")} >$DEMO/agent.log &`.replaceAll(directory, "$DEMO"));
  await startProcess({ name: "agent", args, directory, readyText: "connected to the hub", signal });
}

/** Runs a pod behind the agent, and shows its log and a command there if its node is real. */
export async function runBehindAgent({ shell }: Pick<Tour, "shell">): Promise<void> {
  // The node of that member has one image: only pods that tolerate the taint are placed there.
  const taint = JSON.stringify({ spec: { taints: [{ key: "demo", value: "one-image", effect: "NoSchedule" }] } });
  await shell.run("kubectl", "patch", `cluster/${AGENT_MEMBER}`, "--type=merge", `--patch=${taint}`);
  await shell.run("kubectl", "wait", `cluster/${AGENT_MEMBER}`, "--for=condition=Ready", "--timeout=60s");

  shell.step("Run a pod there, read its log, run a command");
  await shell.run("kubectl", "apply", "-f", "scripts/demo/talker.yaml");
  await shell.run("kubectl", "-n", "shop", "wait", "pod/talker", "--for=condition=Ready", "--timeout=90s");
  await shell.look("kubectl", "-n", "shop", "get", "pod", "talker", "-o", WHERE);
  const obstacle = realNodesPossible();
  if (obstacle === undefined) {
    await shell.look("kubectl", "-n", "shop", "logs", "talker");
    const script = "echo $(hostname) has $(nproc) processors";
    await shell.look("kubectl", "-n", "shop", "exec", "talker", "--", "sh", "-c", script);
  } else {
    shell.say(
      "kubectl logs, exec, attach and port-forward reach a pod wherever it runs (docs/kubelet-api.md).",
      `No container runs here that could show it: ${obstacle}.`,
    );
  }
}

/** Gives the host's administrator rights in all members, and shows the objects there. */
export async function showAllMembers({ clusters, shell }: Pick<Tour, "clusters" | "shell">): Promise<void> {
  shell.step("Look into all members at once, as a user of the host with rights there");
  for (const name of [...Object.keys(MEMBERS), AGENT_MEMBER]) {
    const { kubeconfig } = clusters.get(name);
    await shell.run("kubectl", "--kubeconfig", kubeconfig, "apply", "-f", VIEWER);
  }
  await shell.look("legation", "get", "pods", "-n", "shop", "-l", "app=web");
}

/** Scales a Deployment over the members. */
export async function scale({ shell }: Tour): Promise<void> {
  shell.step("Scale a Deployment over the members");
  await shell.look("kubectl", "-n", "shop", "scale", "deployment/web", "--replicas=10");
  await shell.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s");
  await shell.look("legation", "status", "deployment/web", "-n", "shop");
  await shell.run("kubectl", "-n", "shop", "scale", "deployment/web", "--replicas=6");
  await shell.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=90s");
}

const WHY = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}{"\\n"}';

/** Shows a pod that no member takes. */
export async function showPending({ shell }: Tour): Promise<void> {
  shell.step("A pod that no member can take says why");
  await shell.run("kubectl", "apply", "-f", "examples/waiting/pod.yaml");
  const wait = ["wait", "pod/too-large", "--for=condition=PodScheduled=false", "--timeout=30s"];
  await shell.run("kubectl", "-n", "shop", ...wait);
  await shell.look("kubectl", "-n", "shop", "get", "pod", "too-large", "-o", WHY);
  await shell.run("legation", "status", "pod", "too-large", "-n", "shop");
}
