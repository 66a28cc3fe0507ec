import { virtualNodeName } from "../../../src/api/keys.ts";
import type { KubeNode, KubeObject } from "../../../src/api/kubernetes.ts";
import { clusters, placementDefaults } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { nodes, type Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { eventually } from "../harness/wait.ts";
import { MEMBER_NAMES, MEMBERS, type MemberName, PRIORITY_CLASSES, TROUBLE } from "./members.ts";

/** Clients of the host and of all members. */
export type ScenarioClients = Readonly<Record<"host" | MemberName, ClusterClient>>;

const priorityClasses: Resource<KubeObject & { readonly value: number }> = {
  group: "scheduling.k8s.io",
  version: "v1",
  plural: "priorityclasses",
  kind: "PriorityClass",
  namespaced: false,
};

/** Gives the members that have joined what the table says of them; the nodes of the shared ones are as it says already. */
export async function furnish(clients: ScenarioClients): Promise<void> {
  const { host } = clients;
  await Promise.all(
    (["north", "south"] as const).flatMap((name) =>
      MEMBERS[name].nodes.map((node) => clients[name].create(nodes, node)),
    ),
  );
  for (const [name, members] of Object.entries(PRIORITY_CLASSES)) {
    const object = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value: 1 };
    const where = [host, ...members.map((member) => clients[member])];
    await Promise.all(where.map((client) => client.create(priorityClasses, object)));
  }
  await Promise.all(MEMBER_NAMES.map((name) => describeMember(host, name)));
}

/** Gives a member that has joined what the table says of it; resolves when the host knows its nodes. */
export async function describeMember(host: ClusterClient, name: MemberName): Promise<void> {
  const { labels, spec, nodes: wanted } = MEMBERS[name];
  await host.patch(clusters, { name }, { type: "merge", body: { metadata: { labels }, spec } });
  await eventually(async () => (await host.get(clusters, { name })).status?.allocatable?.cpu === cpuOf(wanted), {
    what: `${wanted.length} nodes of ${name}`,
    intervalMs: 200,
    timeoutMs: 120_000,
  });
}

function cpuOf(wanted: readonly KubeNode[]): string {
  return String(wanted.reduce((sum, { status }) => sum + Number(status?.allocatable?.cpu ?? 0), 0));
}

/** Takes back from the clusters that other files use what `furnish` has put there. */
export async function clear(clients: ScenarioClients): Promise<void> {
  const { host } = clients;
  for (const name of ["west", "east"]) {
    const body = { metadata: { labels: { provider: null } }, spec: { scheduleTimeoutSeconds: null } };
    await host.patch(clusters, { name }, { type: "merge", body });
  }
  // A failed test leaves these behind, and no pod of a later file would find a member with that label.
  const { name: defaults = "default" } = TROUBLE.defaults.metadata;
  if ((await host.find(placementDefaults, { name: defaults })) !== undefined) {
    await host.delete(placementDefaults, { name: defaults });
  }
  for (const [name, members] of Object.entries(PRIORITY_CLASSES)) {
    const where = [host, ...members.map((member) => clients[member])];
    await Promise.all(where.map((client) => client.delete(priorityClasses, { name })));
  }
}

/** Begins the trouble of the table; resolves when the host knows of it. */
export async function makeTrouble({ host }: ScenarioClients, lost: Cluster): Promise<void> {
  const probe = { periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 2 };
  await host.patch(clusters, { name: TROUBLE.lost }, { type: "merge", body: { spec: { probe } } });
  await host.create(placementDefaults, TROUBLE.defaults);
  await cordon(host, true);
  await lost.proxy.blackhole();
  await eventually(
    async () => {
      const { status } = await host.get(nodes, { name: virtualNodeName(TROUBLE.lost) });
      return status?.conditions?.some(({ type, status: ready }) => type === "Ready" && ready === "Unknown");
    },
    { what: `the loss of ${TROUBLE.lost}`, intervalMs: 200, timeoutMs: 120_000 },
  );
}

/** Members are in their initial state. */
export async function endTrouble({ host }: ScenarioClients, lost: Cluster): Promise<void> {
  await host.delete(placementDefaults, { name: "default" });
  await cordon(host, false);
  await lost.proxy.heal();
}

async function cordon(host: ClusterClient, unschedulable: boolean): Promise<void> {
  await host.patch(
    nodes,
    { name: virtualNodeName(TROUBLE.cordoned) },
    { type: "merge", body: { spec: { unschedulable } } },
  );
}
