import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podsOf, podsPerNode, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { isRefused, refuseWrites } from "../support/harness/refusals.ts";
import { scheduleTimeout } from "../support/harness/schedule-timeout.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();
const WEST = "legation-west";
const EAST = "legation-east";
const patient = { timeoutMs: 60_000, intervalMs: 200 };
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "capacity", labels });
});

/** Counts the pods of each node that are not being deleted. */
function placed(): Promise<Record<string, number>> {
  return podsPerNode(clients().host, namespace);
}

describe("the nodes of a member", () => {
  test("decide whether a pod with a node selector is sent there", async () => {
    const { host, east } = clients();
    const { items } = await east.list(nodes);
    const ref = { name: items[0]?.metadata.name ?? "" };
    const label = (disk: string | null): Promise<unknown> =>
      east.patch(nodes, ref, { type: "merge", body: { metadata: { labels: { disk } } } });
    const spec = { nodeSelector: { disk: "fast" } };
    await host.create(pods, delegatedPod(namespace, "early", { spec }));
    const message = await waitingFor(clients().host, namespace, "early", "none of its");
    expect(message).toMatch(/^east: none of its \d+ nodes is one that the pod selects; west: none of its/);
    await label("fast");
    try {
      await Promise.all(numbered("late", 3).map((name) => host.create(pods, delegatedPod(namespace, name, { spec }))));
      await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4 }), patient);
      expect(await podsOf(clients().west, namespace)).toEqual([]);
    } finally {
      await label(null);
    }
  });
});

test("the status of a Cluster says how many pods run in its member, and what they request there", async () => {
  const { host } = clients();
  const annotations = { "legation.dev/clusters": "west" };
  const resources = { requests: { cpu: "123m" } };
  const spec = { containers: [{ name: "main", image: "registry.example/web:1", resources }] };
  await host.create(pods, delegatedPod(namespace, "counted", { annotations, spec }));
  await podThat(host, namespace, "counted", inPhase("Running"));
  await eventuallyPasses(async () => {
    // Pods of earlier tests may still be there.
    const { items } = await host.list(pods, { fieldSelector: `spec.nodeName=${WEST}` });
    const unfinished = items.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
    const { status } = await host.get(clusters, { name: "west" });
    expect(status).toMatchObject({
      pods: items.length,
      unfinishedPods: unfinished.length,
      runningPods: items.filter(inPhase("Running")).length,
      requested: { cpu: expect.stringMatching(/3m$/), pods: String(unfinished.length) },
    });
  }, patient);
});

describe("a member that has just refused a pod", () => {
  test("takes it as soon as its quota has room, without waiting for the end of the backoff", async () => {
    const { host, west } = clients();
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "one" }, spec: { hard: { pods: "1" } } };
    await west.raw({ method: "POST", path, body: quota });
    await eventually(async () => JSON.stringify(await west.raw({ method: "GET", path })).includes('"used"'), patient);
    const annotations = { "legation.dev/clusters": "west" };
    await host.create(pods, delegatedPod(namespace, "first", { annotations }));
    await podThat(host, namespace, "first", inPhase("Running"));
    await host.create(pods, delegatedPod(namespace, "second", { annotations }));
    expect(await waitingFor(host, namespace, "second", "exceeded quota")).toContain("west: its API server refused");
    await host.delete(pods, { namespace, name: "first" }, { gracePeriodSeconds: 0 });
    await podThat(host, namespace, "second", inPhase("Running"), { timeoutMs: 25_000, intervalMs: 200 });
  });

  test("takes other pods of the same spec at once when it refused for the pod's own labels, and tells each pod its reason", async () => {
    const { host, west, east } = clients();
    const members = [west, east];
    const refused = {
      namespace,
      resource: "pods",
      operation: "CREATE",
      expression: "'team' in object.metadata.?labels.orValue({})",
      messageExpression: "object.metadata.name + ' needs a label team'",
    } as const;
    for (const member of members) await refuseWrites(member, refused);
    for (const member of members) {
      const probe = { ...delegatedPod(namespace, "probe"), spec: { containers: [{ name: "main", image: "x" }] } };
      await isRefused(() => member.create(pods, probe, { dryRun: true }));
    }
    const beganAt = Date.now();
    const names = numbered("no-team", 30);
    await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name))));
    const own = await Promise.all(names.map((name) => waitingFor(host, namespace, name, "needs a label team")));
    expect(own.map((message) => message.match(/\S+ needs a label team/g))).toEqual(
      names.map((name) => [`${name} needs a label team`, `${name} needs a label team`]),
    );
    await host.create(pods, delegatedPod(namespace, "with-team", { labels: { team: "blue" } }));
    await podThat(host, namespace, "with-team", inPhase("Running"), { timeoutMs: 25_000 });
    // Once, and again after each backoff of 30 s, 60 s and so on.
    const rests = 1 + Math.floor((Date.now() - beganAt) / 30_000);
    for (const name of ["west", "east"] as const) {
      const writes = await legationWrites(memberCluster(name), namespace);
      for (const pod of names) expect(writes.pods.get(pod)?.length).toBeLessThanOrEqual(rests);
    }
  });

  test("is not asked again for pods of the same shape until something there changes", async () => {
    const { host, west } = clients();
    // The nodes have room, but the pod's own anti-affinity allows one such pod per topology.
    const podAntiAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: "kubernetes.io/os", labelSelector: { matchLabels: { blocks: namespace } } },
      ],
    };
    const blocker: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "blocker", namespace, labels: { blocks: namespace } },
      spec: { containers: [{ name: "main", image: "x" }] },
    };
    await west.create(pods, blocker);
    await podThat(west, namespace, "blocker", inPhase("Running"));
    const preferWest = {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] } },
      ],
    };
    const annotations = { "legation.dev/cluster-affinity": JSON.stringify(preferWest) };
    const make = (name: string): Promise<unknown> =>
      host.create(pods, delegatedPod(namespace, name, { annotations, spec: { affinity: { podAntiAffinity } } }));
    const restore = await scheduleTimeout(host, 3);
    try {
      await make("first");
      await podThat(host, namespace, "first", ({ spec }) => spec?.nodeName === EAST);
    } finally {
      await restore();
    }
    await Promise.all(numbered("other", 3).map(make));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4 }), patient);
    // Only the first pod waited for the member's scheduler.
    const asked = (await podLives(memberCluster("west"), namespace)).map(({ name }) => name);
    expect(asked.filter((name) => name.startsWith("other"))).toEqual([]);
    const unlabel = (): Promise<string> => kubectl(memberCluster("west"), ["label", "nodes", "--all", "seen-"]);
    onTestFinished(async () => void (await unlabel()));
    await kubectl(memberCluster("west"), ["label", "nodes", "--all", "--overwrite", `seen=${namespace}`]);
    await west.delete(pods, { namespace, name: "blocker" }, { gracePeriodSeconds: 0 });
    // A pod that is created before Legation has seen the deletion still goes to the other member.
    let round = 0;
    await eventuallyPasses(
      async () => {
        round += 1;
        await make(`again-${round}`);
        const hasNode = ({ spec }: Pod): boolean => spec?.nodeName !== undefined;
        expect((await podThat(host, namespace, `again-${round}`, hasNode)).spec?.nodeName).toBe(WEST);
        // Later the member would be tried again anyway.
      },
      { ...patient, timeoutMs: 25_000 },
    );
  });
});

describe("a LimitRange of a member that gives each pod 20 cores", () => {
  const inWest = { annotations: { "legation.dev/clusters": "west" } };

  beforeEach(async () => {
    const { west } = clients();
    const limits = [{ type: "Container", defaultRequest: { cpu: "20" } }];
    const range = { apiVersion: "v1", kind: "LimitRange", metadata: { name: "usual" }, spec: { limits } };
    await west.raw({ method: "POST", path: `/api/v1/namespaces/${namespace}/limitranges`, body: range });
    const probe = { ...delegatedPod(namespace, "probe"), spec: { containers: [{ name: "main", image: "x" }] } };
    await eventually(async () => {
      const { spec } = await west.create(pods, probe, { dryRun: true });
      return spec?.containers[0]?.resources?.requests?.cpu === "20";
    }, patient);
  });

  test("sends a burst of pods that request nothing to the other member, before any waits there", async () => {
    const { host } = clients();
    const names = numbered("web", 40);
    await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name))));
    await Promise.all(names.map((name) => podThat(host, namespace, name, inPhase("Running"))));
    const asked = await podLives(memberCluster("west"), namespace);
    // Three nodes of 64 cores have room for nine, and few creates are in flight before the first answer.
    expect(asked.length).toBeLessThanOrEqual(9 + 5);
    // The member's scheduler has 30 s for a pod that is where it may be.
    const withdrawn = asked.flatMap(({ from, until }) =>
      until === undefined ? [] : [Date.parse(until) - Date.parse(from)],
    );
    expect(withdrawn.filter((waitedMs) => waitedMs > 20_000)).toEqual([]);
  });

  test("is named by the reason of pods that wait for room there", async () => {
    const { host } = clients();
    const names = numbered("web", 12);
    await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, inWest))));
    await eventuallyPasses(async () => expect(await placed()).toMatchObject({ [WEST]: 9 }), patient);
    const waiting = (await podsOf(host, namespace)).filter(({ spec }) => spec?.nodeName === undefined);
    const messages = await Promise.all(
      waiting.map(({ metadata }) => waitingFor(host, namespace, metadata.name, "LimitRange of the namespace")),
    );
    expect(messages).toHaveLength(3);
    for (const message of messages)
      expect(message).toMatch(
        /west: 0\/3 .* 3 Insufficient cpu\. .*\(cpu: 20 requested there by the LimitRange of the namespace\)$/,
      );
  });
});

describe("pods in a member that Legation did not create", () => {
  test("make another member preferred", async () => {
    const { host, east } = clients();
    const foreign = (name: string): Pod => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace },
      spec: { containers: [{ name: "main", image: "x", resources: { requests: { cpu: "1" } } }] },
    });
    await Promise.all(numbered("foreign", 4).map((name) => east.create(pods, foreign(name))));
    await Promise.all(numbered("foreign", 4).map((name) => podThat(east, namespace, name, inPhase("Running"))));
    // The controller reads them when it connects, and then every few minutes.
    await legation().controller.stop();
    await legation().controller.start();
    const spec = { containers: [{ name: "main", image: "x", resources: { requests: { cpu: "1" } } }] };
    // A pod that is created before that may go to either member.
    let round = 0;
    await eventuallyPasses(async () => {
      for (const { metadata } of await podsOf(host, namespace))
        await host.delete(pods, { namespace, name: metadata.name });
      round += 1;
      const names = numbered(`own-${round}`, 4);
      await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, { spec }))));
      await eventuallyPasses(async () => expect(await placed()).toEqual({ [WEST]: 4 }), { timeoutMs: 15_000 });
    }, patient);
  });
});

// East is reached directly in every run: an agent has to join anew with a Cluster that is made again.
test("keeps a deleted Cluster until the delegates that wait for a node in its member are gone", async () => {
  const { host, east } = clients();
  const resources = { requests: { cpu: "100k" } };
  const spec = { containers: [{ name: "main", image: "busybox", resources }] };
  await host.create(pods, delegatedPod(namespace, "large", { spec, annotations: { "legation.dev/clusters": "east" } }));
  await eventuallyPasses(async () => expect(await podsOf(east, namespace)).toHaveLength(1), patient);
  const run = (args: string[], input?: string): Promise<string> =>
    kubectl(hostCluster(), args, input === undefined ? {} : { input });
  const { metadata, spec: written } = await host.get(clusters, { name: "east" });
  const { apiVersion, kind } = { apiVersion: "legation.dev/v1alpha1", kind: "Cluster" };
  const again = { apiVersion, kind, metadata: { name: "east", labels: metadata.labels }, spec: written };
  await run(["delete", "clusters.legation.dev", "east", "--timeout=50s"]);
  try {
    expect(await podsOf(east, namespace)).toEqual([]);
    await waitingFor(host, namespace, "large", "no Cluster of that name has joined");
  } finally {
    await run(["create", "-f", "-"], JSON.stringify(again));
    await run(["wait", "clusters.legation.dev/east", "--for=condition=Ready", "--timeout=60s"]);
  }
});
