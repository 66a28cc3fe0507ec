import { beforeAll, beforeEach, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { kindName, pods, type Resource } from "../../../src/kube/resources.ts";
import { isBound } from "../../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { createKwokNodes } from "../../support/clusters/nodes.ts";
import { startClusters } from "../../support/clusters/start.ts";
import type { ClusterOptions, Clusters } from "../../support/clusters/types.ts";
import { delegatedPod, numbered } from "../../support/delegated/pods.ts";
import { afterFile, cleanUpFile } from "../../support/harness/after-file.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podsOf } from "../../support/harness/pods-of.ts";
import { scheduleTimeout } from "../../support/harness/schedule-timeout.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";
import { legation } from "../../support/legation/cli.ts";
import { startLegation } from "../../support/legation/start.ts";

const podGroups: Resource<AnyObject> = {
  group: "scheduling.k8s.io",
  version: "v1alpha2",
  plural: "podgroups",
  kind: "PodGroup",
  namespaced: true,
};
const GATES = "--feature-gates=GenericWorkload=true";
const SIZE = 12;
const WEST_FIRST = JSON.stringify({
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 100, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] } },
  ],
});
const patient = { timeoutMs: 120_000, intervalMs: 300 };

let clusters: Clusters;
let host: ClusterClient;
let west: ClusterClient;
let east: ClusterClient;
let namespace: string;

function withGangs(options: ClusterOptions): ClusterOptions {
  return {
    ...options,
    apiServerFlags: [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
    controllerManagerFlags: [GATES],
    schedulerFlags: [`${GATES},GangScheduling=true`],
  };
}

beforeAll(async () => {
  clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: {
      host: withGangs({ nodes: [] }),
      west: withGangs({ nodes: [{ count: 2, cpu: "4" }] }),
      east: withGangs({ nodes: [{ count: 2, cpu: "8" }] }),
    },
  });
  afterFile(() => clusters.stop());
  const all = ["host", "west", "east"].map((name) => clusters.get(name));
  const [hostCluster, ...members] = all;
  if (hostCluster === undefined) throw new Error("no host");
  const running = await startLegation({
    host: hostCluster,
    members: Object.fromEntries(members.map((member) => [member.name, member])),
  });
  afterFile(() => running.stop());
  const onHost = `--kubeconfig=${hostCluster.kubeconfig}`;
  const types = `--types=${kindName(podGroups)}`;
  await legation(["install", onHost, types]);
  for (const { name, kubeconfig } of members) {
    await legation(["join", name, onHost, `--member-kubeconfig=${kubeconfig}`, types]);
  }
  [host, west, east] = all.map((cluster) => {
    const client = clientOf(cluster);
    afterFile(() => client.close());
    return client;
  }) as [ClusterClient, ClusterClient, ClusterClient];
  await scheduleTimeout(host, 5);
  return cleanUpFile;
});

beforeEach(async () => {
  namespace = await freshNamespace(clusters.all, {
    prefix: "gangs",
    labels: { "legation.dev/delegation": "annotated" },
    annotations: { "legation.dev/cluster-affinity": WEST_FIRST },
  });
});

async function createGang(cpu: string): Promise<void> {
  const { group, version, kind } = podGroups;
  await host.create(podGroups, {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { namespace, name: "gang" },
    spec: { schedulingPolicy: { gang: { minCount: SIZE } } },
  });
  await Promise.all(numbered("worker", SIZE).map((name) => host.create(pods, worker(name, cpu))));
}

function worker(name: string, cpu: string): Pod {
  return delegatedPod(namespace, name, {
    spec: {
      schedulingGroup: { podGroupName: "gang" },
      containers: [{ name: "main", image: "work:1", resources: { requests: { cpu } } }],
    },
  });
}

/** Waits until all pods of the gang run, and returns the nodes of their proxies. */
async function nodesOfGang(): Promise<Set<string | undefined>> {
  let nodes = new Set<string | undefined>();
  await eventuallyPasses(async () => {
    const running = (await podsOf(host, namespace)).filter(inPhase("Running"));
    expect(running).toHaveLength(SIZE);
    nodes = new Set(running.map(({ spec }) => spec?.nodeName));
  }, patient);
  return nodes;
}

function reasonsOf(found: readonly Stored<Pod>[]): Set<string | undefined> {
  return new Set(found.map((pod) => whyNotPlaced(pod)?.message));
}

test("a gang runs in one member, and the status of its PodGroup comes back", async () => {
  await createGang("100m");
  expect(await nodesOfGang()).toEqual(new Set(["legation-west"]));
  expect(await podsOf(east, namespace)).toEqual([]);
  await eventuallyPasses(async () => {
    const { status } = await host.get(podGroups, { namespace, name: "gang" });
    expect(status).toMatchObject({ conditions: [{ type: "PodGroupScheduled", status: "True" }] });
  }, patient);
});

test("a gang that does not fit into the first member runs in the second as a whole", async () => {
  await createGang("1");
  expect(await nodesOfGang()).toEqual(new Set(["legation-east"]));
  await eventuallyPasses(async () => expect(await podsOf(west, namespace)).toEqual([]), patient);
});

test("a gang that fits nowhere waits as a whole for one reason, and runs when there is room", async () => {
  await createGang("3");
  const inMember = (room: string): string => `cpu: 36 requested by the pods of PodGroup gang together, ${room} left`;
  const reason = `east: ${inMember("16")}; west: ${inMember("8")}`;
  await eventuallyPasses(async () => {
    expect(reasonsOf(await podsOf(host, namespace))).toEqual(new Set([reason]));
    expect(await podsOf(west, namespace)).toHaveLength(SIZE);
  }, patient);
  for (const client of [host, west, east]) {
    expect((await podsOf(client, namespace)).filter(isBound)).toEqual([]);
  }
  await createKwokNodes(clusters.get("east"), "east-more", [{ count: 3, cpu: "16" }]);
  expect(await nodesOfGang()).toEqual(new Set(["legation-east"]));
  expect(await podsOf(west, namespace)).toEqual([]);
});

// Its pods would fit into the member together, but not onto its nodes.
test("a gang whose pods fit onto no nodes of the first member runs in the second as a whole", async () => {
  await createKwokNodes(clusters.get("west"), "west-small", [{ count: 20, cpu: "2" }]);
  await createGang("3");
  expect(await nodesOfGang()).toEqual(new Set(["legation-east"]));
  await eventuallyPasses(async () => expect(await podsOf(west, namespace)).toEqual([]), patient);
});
