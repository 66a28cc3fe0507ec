import { describe, expect, onTestFinished, test } from "vitest";
import { HOST_LABEL, PROXY_LABEL, VIRTUAL_NODE_LABEL } from "../../src/api/keys.ts";
import type { KubeEvent, KubeObject, Pod, PodSpec, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { events, namespaces, nodes, pods, type Resource } from "../../src/kube/resources.ts";
import { conditionOf, controllerOf } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { replicated, template, WEB_LABELS } from "../support/builders/workload.ts";
import { type AuditEvent, auditEvents } from "../support/clusters/audit.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { ready } from "../support/harness/at-rest.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { readState } from "../support/harness/final-state.ts";
import { hostNodeWrites } from "../support/harness/host-nodes.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { overlaps, type PodLife, podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podOf, podsOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { scheduleTimeout } from "../support/harness/schedule-timeout.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { change, createIn, deleteFrom, type Workload } from "../support/harness/workloads.ts";

useLegation();
const clients = useClients();

const members = ["west", "east"] as const;
const running = inPhase("Running");
const opted = new Set<string>();
const BALLAST_LABELS = { app: "ballast" };

async function optedIn(): Promise<string> {
  const labels = { "legation.dev/delegation": "all" };
  const namespace = await freshNamespace(hostCluster(), { prefix: "workloads", labels });
  opted.add(namespace);
  return namespace;
}

interface PodOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: Partial<PodSpec>;
}

function aPod(namespace: string, name: string, { annotations = {}, spec = {} }: PodOptions = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, labels: { ...WEB_LABELS }, annotations: { ...annotations } },
    spec: { containers: [{ name: "main", image: "main:1" }], ...spec },
  };
}

async function runningPod(pod: Pod): Promise<{ proxy: Stored<Pod>; member: "west" | "east" }> {
  const { namespace = "", name = "" } = pod.metadata ?? {};
  await clients().host.create(pods, pod);
  const proxy = await podThat(clients().host, namespace, name, running);
  return { proxy, member: proxy.spec?.nodeName === "legation-west" ? "west" : "east" };
}

// A member that uses this much of a node's 64 cores is not the first choice for a pod with CPU requests.
const BALLAST = { resources: { requests: { cpu: "40" } } };
const SOME_CPU = { resources: { requests: { cpu: "100m" } } };

/** Makes `west` the first choice for pods that request CPU, whatever earlier tests have left. */
async function westFirst(namespace: string): Promise<{ readonly first: "west"; readonly second: "east" }> {
  const annotations = { "legation.dev/clusters": "east" };
  const spec = { containers: [{ name: "main", image: "main:1", ...BALLAST }] };
  const { metadata, ...ballast } = aPod(namespace, "ballast", { annotations, spec });
  await runningPod({ ...ballast, metadata: { ...metadata, labels: BALLAST_LABELS } });
  return { first: "west", second: "east" };
}

async function livesIn(namespace: string): Promise<PodLife[]> {
  return (await Promise.all(members.map((name) => podLives(memberCluster(name), namespace)))).flat();
}

/** Returns Legation's own events about the pod's placement, without the member's and those about its token. */
async function eventsOf(pod: Stored<Pod>): Promise<Stored<KubeEvent>[]> {
  const { items } = await clients().host.list(events, { namespace: pod.metadata.namespace ?? "" });
  return items.filter(
    ({ involvedObject, source, reason }) =>
      involvedObject.uid === pod.metadata.uid && source?.component === "legation" && reason !== "NoHomeAPI",
  );
}

describe("a StatefulSet", () => {
  test("starts its pods one after the other, keeps their names, and ends them in reverse order", async () => {
    const namespace = await optedIn();
    const { host } = clients();
    const slow = { [KWOK_ANNOTATIONS.startsAfter]: "400ms", [KWOK_ANNOTATIONS.stopsAfter]: "400ms" };
    const set = replicated("StatefulSet", 3, { serviceName: "web", template: template({}, slow) });
    await createIn(host, namespace, [set]);
    const settled = (count: number): Promise<boolean> =>
      eventually(async () => ready(count)(await readState(host, namespace)), {
        timeoutMs: 60_000,
        what: `${count} ready`,
      });
    await settled(3);
    const names = ["web-0", "web-1", "web-2"];
    const starts = byName(await livesIn(namespace));
    expect([...starts.keys()].sort()).toEqual(names);
    for (const [earlier, later] of [
      ["web-0", "web-1"],
      ["web-1", "web-2"],
    ] as const) {
      expect(moment(starts, later, "from") - moment(starts, earlier, "from")).toBeGreaterThan(400);
    }

    // A deleted pod returns under its name once the former has ended.
    const former = await podOf(host, namespace, "web-1");
    await host.delete(pods, { namespace, name: "web-1" });
    await podGone(host, namespace, "web-1", former?.metadata.uid);
    await settled(3);
    expect((await podsOf(host, namespace)).map(({ metadata }) => metadata.name)).toEqual(names);

    await change(host, namespace, ["StatefulSet", "web"], { spec: { replicas: 0 } });
    await eventually(async () => (await podsOf(host, namespace)).length === 0, { timeoutMs: 60_000 });
    const lives = await livesIn(namespace);
    const ends = byName(lives);
    for (const [earlier, later] of [
      ["web-2", "web-1"],
      ["web-1", "web-0"],
    ] as const) {
      expect(moment(ends, later, "until") - moment(ends, earlier, "until")).toBeGreaterThan(400);
    }
    expect(lives).toHaveLength(4);
    expect(overlaps(lives)).toEqual([]);
  });
});

describe("labels and annotations", () => {
  test("are added, changed and removed on the delegate with the proxy, and the member's own stay", async () => {
    const namespace = await optedIn();
    const pod = aPod(namespace, "web", { annotations: { "example.com/first": "1", "example.com/second": "2" } });
    const { member } = await runningPod(pod);
    const ref = { namespace, name: "web" };
    const own = {
      metadata: { labels: { "member.example.com/label": "own" }, annotations: { "member.example.com/note": "own" } },
    };
    await clients()[member].patch(pods, ref, { type: "merge", body: own });
    const changes = {
      labels: { app: "changed", added: "yes" },
      annotations: { "example.com/first": null, "example.com/second": "changed", "example.com/third": "3" },
    };
    await clients().host.patch(pods, ref, { type: "merge", body: { metadata: changes } });
    await eventuallyPasses(async () => {
      const delegate = await podOf(clients()[member], namespace, "web");
      const { labels, annotations } = delegate?.metadata ?? {};
      expect(withoutLegations(labels)).toEqual({ app: "changed", added: "yes", "member.example.com/label": "own" });
      expect(withoutLegations(annotations)).toEqual({
        "example.com/second": "changed",
        "example.com/third": "3",
        "member.example.com/note": "own",
      });
    });

    // A change of a followed key in the member is undone.
    const meddled = { metadata: { labels: { app: "meddled", added: null } } };
    await clients()[member].patch(pods, ref, { type: "merge", body: meddled });
    await eventuallyPasses(async () => {
      const delegate = await podOf(clients()[member], namespace, "web");
      expect(delegate?.metadata.labels).toMatchObject({ app: "changed", added: "yes" });
      expect(delegate?.metadata.labels?.[HOST_LABEL]).toBeDefined();
    });
    const proxy = await podOf(clients().host, namespace, "web");
    expect(proxy?.metadata.labels?.["member.example.com/label"]).toBeUndefined();
    expect(proxy?.metadata.annotations?.["member.example.com/note"]).toBeUndefined();
  });
});

describe("a Deployment's pods in a member", () => {
  test("are not adopted by a ReplicaSet there whose selector matches them", async () => {
    const namespace = await optedIn();
    const { host, west } = clients();
    const annotations = { "legation.dev/clusters": "west" };
    await createIn(host, namespace, [replicated("Deployment", 3, { template: template({}, annotations) })]);
    const areRunning = async (): Promise<string[]> =>
      (await podsOf(host, namespace)).filter(running).map(({ metadata }) => metadata.uid);
    await eventually(async () => (await areRunning()).length === 3, { what: "3 running" });
    const before = await areRunning();

    const own = [replicated("ReplicaSet", 1)];
    await createIn(west, namespace, own);
    onTestFinished(() => deleteFrom(west, namespace, own));
    const controllers = async (): Promise<(string | undefined)[]> =>
      (await podsOf(west, namespace)).filter(running).map((pod) => controllerOf(pod)?.kind);
    // If it adopted pods without a controller, it would have two too many, and delete them.
    await eventually(async () => (await controllers()).includes("ReplicaSet"), { what: "its own pod" });
    expect((await controllers()).sort()).toEqual(["Namespace", "Namespace", "Namespace", "ReplicaSet"]);
    expect((await areRunning()).sort()).toEqual(before.sort());
  });
});

describe("a field that a member's API server drops silently", () => {
  const renamed = { hostnameOverride: "web.example" };

  test("keeps pods with it from that member, with the reason", async () => {
    const namespace = await optedIn();
    const annotations = { "legation.dev/clusters": "east" };
    await clients().host.create(pods, aPod(namespace, "web", { annotations, spec: renamed }));
    const why = await waitingFor(clients().host, namespace, "web", "without spec.hostnameOverride");
    expect(why).toContain("east: its API server refused the pod: it would run without");
    expect(await podLives(memberCluster("east"), namespace)).toEqual([]);
  });

  test("stays in a member that knows it", async () => {
    const namespace = await optedIn();
    await runningPod(aPod(namespace, "web", { spec: renamed }));
    expect((await podOf(clients().west, namespace, "web"))?.spec).toMatchObject(renamed);
  });
});

describe("a pod that waits in a member", () => {
  test("is taken out while the member's virtual node is cordoned, and returns afterwards", async () => {
    const namespace = await optedIn();
    const { host, west } = clients();
    const annotations = { "legation.dev/clusters": "west", [KWOK_ANNOTATIONS.outcome]: "running" };
    const large = { requests: { cpu: "1000" } };
    const spec = { containers: [{ name: "main", image: "main:1", resources: large }] };
    await host.create(pods, aPod(namespace, "large", { annotations, spec }));
    const waits = (): Promise<Stored<Pod> | undefined> => podOf(west, namespace, "large");
    await eventually(async () => (await waits()) !== undefined, { what: "a delegate in west" });
    const cordon = async (unschedulable: boolean): Promise<void> => {
      const body = { spec: { unschedulable } };
      await host.patch(nodes, { name: "legation-west" }, { type: "strategic", body });
    };
    onTestFinished(() => cordon(false));
    // Less than the scheduler's timeout, which plays no part here.
    const soon = { timeoutMs: 20_000 };
    await cordon(true);
    await eventually(async () => (await waits()) === undefined, { ...soon, what: "no delegate in west" });
    await waitingFor(host, namespace, "large", "west: its virtual node is cordoned");
    await cordon(false);
    await eventually(async () => (await waits()) !== undefined, { ...soon, what: "a delegate in west again" });
  });
});

describe("a member whose Cluster has createNamespaces: false", () => {
  test("gets no pod whose namespace it lacks, with the reason, and gets others", async () => {
    const [lacking, shared] = [await optedIn(), await optedIn()];
    const { host, west } = clients();
    const allow = async (createNamespaces: boolean | null): Promise<void> => {
      await host.patch(clusters, { name: "west" }, { type: "merge", body: { spec: { createNamespaces } } });
    };
    onTestFinished(() => allow(null));
    await allow(false);
    await west.create(namespaces, { metadata: { name: shared } });
    const annotations = { "legation.dev/clusters": "west" };
    await host.create(pods, aPod(lacking, "web", { annotations }));
    expect(await waitingFor(host, lacking, "web", "createNamespaces")).toContain(
      `west: its API server refused the pod: namespaces "${lacking}" not found, and spec.createNamespaces of Cluster west ` +
        "is false: make the namespace there, or set the field to true",
    );
    expect(await west.find(namespaces, { name: lacking })).toBeUndefined();
    await runningPod(aPod(shared, "web", { annotations }));
  });
});

describe("scheduling gates", () => {
  test("hold a proxy back from every member until the last one is removed", async () => {
    const namespace = await optedIn();
    const { host } = clients();
    const schedulingGates = [{ name: "example.com/quota" }, { name: "example.com/budget" }];
    await host.create(pods, aPod(namespace, "gated", { spec: { schedulingGates } }));
    const ref = { namespace, name: "gated" };
    const open = async (gates: readonly object[]): Promise<void> => {
      await host.patch(pods, ref, {
        type: "json",
        body: [{ op: "replace", path: "/spec/schedulingGates", value: gates }],
      });
    };
    await runningPod(aPod(namespace, "after-both"));
    await open(schedulingGates.slice(1));
    // A later pod runs: the gated pod was seen, and left alone.
    await runningPod(aPod(namespace, "after-one"));
    expect((await livesIn(namespace)).map(({ name }) => name).sort()).toEqual(["after-both", "after-one"]);
    await open([]);
    await podThat(host, namespace, "gated", running);
  });
});

interface ClassRow {
  readonly kind: string;
  readonly resource: Resource<KubeObject>;
  readonly fields: object;
  readonly asked: (name: string) => Partial<PodSpec>;
}

const classes: readonly ClassRow[] = [
  {
    kind: "PriorityClass",
    resource: {
      group: "scheduling.k8s.io",
      version: "v1",
      plural: "priorityclasses",
      kind: "PriorityClass",
      namespaced: false,
    },
    fields: { value: 1000 },
    asked: (priorityClassName) => ({ priorityClassName }),
  },
  {
    kind: "RuntimeClass",
    resource: {
      group: "node.k8s.io",
      version: "v1",
      plural: "runtimeclasses",
      kind: "RuntimeClass",
      namespaced: false,
    },
    fields: { handler: "runc" },
    asked: (runtimeClassName) => ({ runtimeClassName }),
  },
];

describe.each(classes)("a pod with a $kind", ({ kind, resource, fields, asked }) => {
  async function define(where: "host" | "west" | "east", name: string): Promise<void> {
    const client = clients()[where];
    const object = { apiVersion: `${resource.group}/${resource.version}`, kind, metadata: { name }, ...fields };
    await client.create(resource, object);
    onTestFinished(() => client.delete(resource, { name }));
  }

  test("waits if no member has it, with each member's reason in its condition and in one event", async () => {
    const namespace = await optedIn();
    const name = `${namespace}-class`;
    await define("host", name);
    await clients().host.create(pods, aPod(namespace, "web", { spec: asked(name) }));
    const waiting = await podThat(clients().host, namespace, "web", (pod) => whyNotPlaced(pod) !== undefined);
    const { reason, message } = whyNotPlaced(waiting) ?? {};
    expect(reason).toBe("NotPlaced");
    expect(message).toMatch(new RegExp(`^east: .*${name}.*; west: .*${name}`));
    const told = await eventually(async () => {
      const found = await eventsOf(waiting);
      return found.length > 0 && found;
    });
    expect(told.map(({ type, message: text }) => ({ type, text }))).toEqual([{ type: "Warning", text: message }]);
    // Placing of other pods goes on.
    await runningPod(aPod(namespace, "other"));
    expect(await eventsOf(waiting)).toHaveLength(1);
  });

  test("goes to the one member that has it, whichever was the first choice", async () => {
    const namespace = await optedIn();
    const name = `${namespace}-class`;
    const { first, second } = await westFirst(namespace);
    await define("host", name);
    await define(second, name);
    const spec = { ...asked(name), containers: [{ name: "main", image: "main:1", ...SOME_CPU }] };
    const { proxy, member } = await runningPod(aPod(namespace, "web", { spec }));
    expect(member).toBe(second);
    expect((await livesIn(namespace)).filter((life) => life.name === "web")).toHaveLength(1);
    const told = await eventually(async () => {
      const found = await eventsOf(proxy);
      return found.length > 0 && found;
    });
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringMatching(`${first}: .*${name}.*; placed in ${second}`),
    ]);
  });
});

describe("a pod for which the first member's scheduler finds no node", () => {
  test("goes to the next one after the member's timeout, and says why in between", async () => {
    const namespace = await optedIn();
    const restore = await scheduleTimeout(clients().host, 2);
    try {
      const { first, second } = await westFirst(namespace);
      // Beside a pod that only one member has: only that member's scheduler knows.
      const near = { labelSelector: { matchLabels: BALLAST_LABELS }, topologyKey: "kubernetes.io/hostname" };
      const spec = {
        affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [near] } },
        containers: [{ name: "main", image: "main:1", ...SOME_CPU }],
      };
      await clients().host.create(pods, aPod(namespace, "web", { spec }));
      const waiting = await podThat(clients().host, namespace, "web", (pod) => whyNotPlaced(pod) !== undefined);
      const { reason, message } = whyNotPlaced(waiting) ?? {};
      expect(reason).toBe("NotPlaced");
      expect(message).toContain(`${first}: 0/3 nodes are available`);
      const proxy = await podThat(clients().host, namespace, "web", running);
      expect(proxy.spec?.nodeName).toBe(`legation-${second}`);
      const { status, reason: before, message: said } = conditionOf(proxy, "PodScheduled") ?? {};
      expect({ status, before, said }).toEqual({ status: "True", before: undefined, said: undefined });

      const lives = (await livesIn(namespace)).filter(({ name }) => name === "web");
      expect(lives.map(({ cluster }) => cluster)).toEqual([first, second]);
      expect(overlaps(lives)).toEqual([]);
      expect(await eventsOf(proxy)).toHaveLength(1);
    } finally {
      await restore();
    }
  });
});

describe("a DaemonSet of the host", () => {
  const daemonSets: Resource<Workload> = {
    group: "apps",
    version: "v1",
    plural: "daemonsets",
    kind: "DaemonSet",
    namespaced: true,
  };
  const everyTaint = [{ operator: "Exists" }];
  const elsewhere = { matchExpressions: [{ key: VIRTUAL_NODE_LABEL, operator: "DoesNotExist" }] };
  const away = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [elsewhere] } } };
  const specs: Readonly<Record<string, Partial<PodSpec>>> = {
    plain: {},
    selecting: { nodeSelector: { "kubernetes.io/os": "linux" } },
    tolerant: { tolerations: everyTaint },
    "tolerant-and-away": { tolerations: everyTaint, affinity: away },
  };

  test("runs no pod on a virtual node; if it tolerates every taint, one pod for each stays Pending", async () => {
    const { host } = clients();
    const labels = { "legation.dev/delegation": "all" };
    const namespace = await freshNamespace(hostCluster(), { prefix: "daemons", labels });
    for (const [name, spec] of Object.entries(specs)) {
      const selector = { matchLabels: WEB_LABELS };
      await host.create(daemonSets, { metadata: { namespace, name }, spec: { selector, template: template(spec) } });
      onTestFinished(() => host.delete(daemonSets, { namespace, name }));
    }
    const { items: all } = await host.list(nodes);
    const own = all.filter(({ metadata }) => metadata.labels?.[VIRTUAL_NODE_LABEL] === undefined).length;
    expect(all).toHaveLength(own + members.length);
    const numbers = async (): Promise<Record<string, unknown[]>> => {
      const { items } = await host.list(daemonSets, { namespace });
      return Object.fromEntries(
        items.map(({ metadata, status }) => [metadata.name, [status?.desiredNumberScheduled, status?.numberReady]]),
      );
    };
    const expected = {
      plain: [own, own],
      selecting: [own, own],
      tolerant: [own + members.length, own],
      "tolerant-and-away": [own, own],
    };
    await eventuallyPasses(async () => expect(await numbers()).toEqual(expected), { timeoutMs: 60_000 });
    // The scheduler has looked at them, and tries no Binding: a virtual node has no room for it.
    await eventuallyPasses(async () => {
      const pending = (await podsOf(host, namespace)).filter(({ spec }) => spec?.nodeName === undefined);
      const shown = pending.map((pod) => [pod.metadata.generateName, conditionOf(pod, "PodScheduled")?.message]);
      expect(shown).toEqual(members.map(() => ["tolerant-", expect.stringContaining("Too many pods")]));
    });
    const isRefused = ({ objectRef, responseStatus }: AuditEvent): boolean =>
      objectRef?.subresource === "binding" && (responseStatus?.code ?? 0) >= 400;
    expect(await auditEvents(hostCluster(), isRefused, [namespace])).toEqual([]);
    expect(await numbers()).toEqual(expected);
    const found = await podsOf(host, namespace);
    expect(found.filter(({ metadata }) => metadata.labels?.[PROXY_LABEL] !== undefined)).toEqual([]);
    expect(await livesIn(namespace)).toEqual([]);
  });
});

describe("the host's own nodes", () => {
  test("run a pod that asks not to be delegated, and none of the others", async () => {
    const namespace = await freshNamespace(hostCluster(), {
      prefix: "mixed",
      labels: { "legation.dev/delegation": "all" },
    });
    const stays = aPod(namespace, "stays", { annotations: { "legation.dev/delegate": "false" } });
    const { proxy } = await runningPod(stays);
    expect(proxy.spec?.nodeName).toMatch(/^host-node-/);
    // A pod on a node of the host leaves such writes in the log.
    expect(await hostNodeWrites(hostCluster(), new Set([namespace]))).not.toEqual([]);
    expect(await hostNodeWrites(hostCluster(), opted)).toEqual([]);
  });
});

/** Returns the last life of each name. */
function byName(lives: readonly PodLife[]): Map<string, PodLife> {
  return new Map(lives.toSorted((a, b) => (a.from < b.from ? -1 : 1)).map((life) => [life.name, life]));
}

/** Returns milliseconds since the epoch. */
function moment(lives: ReadonlyMap<string, PodLife>, name: string, which: "from" | "until"): number {
  return Date.parse(lives.get(name)?.[which] ?? "");
}

function withoutLegations(map: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => !key.startsWith("legation.dev/")));
}
