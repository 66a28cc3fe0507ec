import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { MODE_ANNOTATION, OVERFLOW_AFTER_ANNOTATION, PROXY_LABEL } from "../../src/api/keys.ts";
import type { Pod, PodSpec, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events, nodes, pods } from "../../src/kube/resources.ts";
import { unschedulableMessage } from "../../src/pods/pod-state.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { stopNow } from "../support/delegated/stop-now.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { hostNodeWrites } from "../support/harness/host-nodes.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { change, createIn, type Workload } from "../support/harness/workloads.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Write } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();

const NAME = "one";
const patient = { timeoutMs: 60_000 };
const POOL = "overflow-pool";
const WEST = "legation-west";
let namespace: string;

beforeEach(async () => {
  gated().release();
  // A failed test may have left it killed.
  await gated().legation.controller.start();
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "overflow", labels });
});

/** Returns a pod that only nodes of this test's pool can run: none, until one is offered. */
function overflowPod(parts: PodParts = {}): Pod {
  const { labels = {}, name = NAME, annotations = {}, spec = {} } = parts;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, labels, annotations: { ...overflowing(), ...annotations } },
    spec: { ...poolSpec(), ...spec },
  };
}

interface PodParts {
  readonly labels?: Record<string, string>;
  readonly name?: string;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<PodSpec>;
}

function overflowing(): Record<string, string> {
  return {
    [MODE_ANNOTATION]: "overflow",
    [OVERFLOW_AFTER_ANNOTATION]: "1s",
    [KWOK_ANNOTATIONS.stopsAfter]: "100ms",
  };
}

/** Returns a spec that only nodes of the pool can run; with `cores`, one such pod per node. */
function poolSpec(cores = "1"): PodSpec {
  const resources = { requests: { cpu: cores } };
  return { nodeSelector: { [POOL]: namespace }, containers: [{ name: "main", image: "work:1", resources }] };
}

// More than half of a node's.
const MOST_CORES = "40";

/** Puts one node of the cluster into this test's pool, once the pods of earlier tests have left it. */
async function offerNode(client: ClusterClient): Promise<string> {
  const { items } = await client.list(nodes);
  const name = items.find(({ metadata }) => metadata.name.includes("-node-"))?.metadata.name ?? "";
  await eventually(async () => {
    const there = (await client.list(pods, { fieldSelector: `spec.nodeName=${name}` })).items;
    const earlier = there.find(({ spec }) => ![undefined, namespace].includes(spec?.nodeSelector?.[POOL]));
    if (earlier !== undefined) throw new Error(`${earlier.metadata.namespace}/${earlier.metadata.name} is on ${name}`);
    return true;
  }, patient);
  const label = (pool: string | null): Promise<unknown> =>
    client.patch(nodes, { name }, { type: "merge", body: { metadata: { labels: { [POOL]: pool } } } });
  await label(namespace);
  onTestFinished(async () => void (await label(null)));
  return name;
}

/** Returns all delegates that the pods of this test ever had. */
async function delegates(): Promise<string[]> {
  const lives = await Promise.all(
    [memberCluster("west"), memberCluster("east")].map((one) => podLives(one, namespace)),
  );
  return lives.flat().map(({ cluster }) => cluster);
}

/** Returns the host's writes on pods that it was about to run, without its scheduler's condition. */
async function runOnHost(): Promise<string[]> {
  const signs = await hostNodeWrites(hostCluster(), new Set([namespace]));
  return signs.filter((sign) => !/^system:kube-scheduler: patch .*\/status/.test(sign));
}

function bound(holds: (node: string) => boolean): (pod: Stored<Pod>) => boolean {
  return ({ spec }) => holds(spec?.nodeName ?? "");
}

async function said(reason: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.filter((event) => event.reason === reason).map(({ message = "" }) => message);
}

const collection = (): string => `/api/v1/namespaces/${namespace}/pods`;
const one = (): string => `${collection()}/${NAME}`;

describe("a pod in overflow mode", () => {
  test("stays on the host while the host has a node for it", async () => {
    const { host } = clients();
    const node = await offerNode(host);
    await offerNode(clients().west);
    await host.create(pods, overflowPod());
    const pod = await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(pod.spec?.nodeName).toBe(node);
    expect(pod.spec?.schedulerName).toBe("default-scheduler");
    expect(pod.metadata.finalizers).toBeUndefined();
    await host.delete(pods, { namespace, name: NAME });
    await podGone(host, namespace, NAME, undefined, patient);
    expect(await delegates()).toEqual([]);
    expect((await legationWrites(hostCluster(), namespace)).pods).toEqual(new Map());
  });

  test("is delegated after the host's patience, by a fixed number of writes", async () => {
    const { host, west } = clients();
    await offerNode(west);
    await host.create(pods, overflowPod());
    const pod = await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(pod.spec?.nodeName).toBe(WEST);
    expect(pod.metadata.labels?.[PROXY_LABEL]).toBe("true");
    // The host has a node again: too late, the pod stays in the member.
    await offerNode(host);
    await host.delete(pods, { namespace, name: NAME });
    await Promise.all([host, west].map((client) => podGone(client, namespace, NAME, undefined, patient)));
    expect(await delegates()).toEqual(["west"]);
    expect(await runOnHost()).toEqual([]);
    expect(await said("Overflowed")).toEqual([
      "this cluster has found no node for the pod, so it is delegated to west",
    ]);
    const writes = (await legationWrites(hostCluster(), namespace)).pods.get(NAME) ?? [];
    expect(writes.slice(0, 3)).toEqual(["create pods/binding", "patch pods", "patch pods"]);
    expect(writes.length).toBeLessThanOrEqual(8);
  });

  test("waits when no member takes it either, has one event, and goes when one does", async () => {
    const { host, west, east } = clients();
    await offerNode(west);
    const quota = {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "none" },
      spec: { hard: { pods: "0" } },
    };
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    await west.raw({ method: "POST", path, body: quota });
    await eventually(async () => JSON.stringify(await west.raw({ method: "GET", path })).includes('"used"'), patient);
    await host.create(pods, overflowPod());
    const [why] = await eventually(async () => {
      const told = await said("NotOverflowed");
      if (told.length === 0) throw new Error("nothing was said");
      return told;
    }, patient);
    expect(why).toContain("exceeded quota: none");
    expect(why).toContain("east: none of its");
    const waiting = await host.get(pods, { namespace, name: NAME });
    expect(unschedulableMessage(waiting)).toBeDefined();
    expect(waiting.metadata.finalizers).toBeUndefined();
    expect(await delegates()).toEqual([]);
    await offerNode(east);
    await podThat(
      host,
      namespace,
      NAME,
      bound((node) => node === "legation-east"),
      patient,
    );
    await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(await said("NotOverflowed")).toHaveLength(1);
    expect(await delegates()).toEqual(["east"]);
  });

  test("stays on the host if the scheduler is faster, and leaves nothing in a member", async () => {
    const { host, west } = clients();
    await offerNode(west);
    let node = "";
    gated().trap("host", {
      when: "late",
      catches: ({ path }) => path === `${one()}/binding`,
      onCaught: async () => {
        node = await offerNode(host);
        await podThat(
          host,
          namespace,
          NAME,
          bound((name) => name === node),
          patient,
        );
      },
    });
    await host.create(pods, overflowPod());
    await podThat(host, namespace, NAME, inPhase("Running"), patient);
    await eventually(async () => {
      const writes = (await legationWrites(hostCluster(), namespace)).pods.get(NAME) ?? [];
      expect(writes).toEqual(["create pods/binding: 409"]);
      return true;
    }, patient);
    expect(await delegates()).toEqual([]);
    await host.delete(pods, { namespace, name: NAME });
    await podGone(host, namespace, NAME, undefined, patient);
  });

  test("goes, and never has a delegate, if it is deleted just after its Binding", async () => {
    const { host, west } = clients();
    await offerNode(west);
    gated().trap("host", {
      when: "late",
      catches: ({ path, method, body }) => path === one() && method === "PATCH" && body.includes("finalizers"),
      onCaught: () => host.delete(pods, { namespace, name: NAME }),
    });
    // A watch sees each change, while polling might miss that it was bound.
    const { histories, stop } = await watchPods(host, namespace);
    onTestFinished(stop);
    await host.create(pods, overflowPod());
    await podGone(host, namespace, NAME, undefined, patient);
    expect([...histories.values()].map(({ node }) => node)).toEqual([WEST]);
    expect(await delegates()).toEqual([]);
  });
});

/** Counts the test's pods on the host and in members, once so many have nodes. */
async function placed(count: number): Promise<Record<string, number>> {
  const nodesOf = async (): Promise<string[]> =>
    (await podsOf(clients().host, namespace)).flatMap(({ spec }) => spec?.nodeName ?? []);
  const found = await eventually(async () => {
    const names = await nodesOf();
    if (names.length !== count) throw new Error(`${names.length} pods have nodes`);
    return names;
  }, patient);
  return Object.fromEntries(
    [...Map.groupBy(found, (node) => (node.startsWith("legation-") ? node : "host"))].map(([node, those]) => [
      node,
      those.length,
    ]),
  );
}

describe("pods of one group in overflow mode", () => {
  const grouped = (name: string, cores = MOST_CORES): Pod =>
    overflowPod({ name, annotations: { "legation.dev/group": "flow" }, spec: poolSpec(cores) });

  test("follow the first that has overflowed to its member, though another has more room", async () => {
    const { host, west, east } = clients();
    await Promise.all([west, east].map((member) => offerNode(member)));
    await host.create(pods, grouped("first", "20"));
    const [home = ""] = Object.keys(await placed(1));
    await host.create(pods, grouped("second", "20"));
    expect(await placed(2)).toEqual({ [home]: 2 });
    await podThat(host, namespace, "second", inPhase("Running"), patient);
  });

  test("stay on the host while others of them run there, and go when these have gone", async () => {
    const { host, west } = clients();
    const node = await offerNode(host);
    await offerNode(west);
    await host.create(pods, grouped("first"));
    await podThat(
      host,
      namespace,
      "first",
      bound((name) => name === node),
      patient,
    );
    await host.create(pods, grouped("second"));
    await eventually(async () => {
      expect(await said("NotOverflowed")).toEqual(["stays on this cluster: group flow has pods on its nodes"]);
      return true;
    }, patient);
    expect(await delegates()).toEqual([]);
    await host.patch(nodes, { name: node }, { type: "merge", body: { metadata: { labels: { [POOL]: null } } } });
    await host.delete(pods, { namespace, name: "first" });
    await podThat(
      host,
      namespace,
      "second",
      bound((name) => name === WEST),
      patient,
    );
  });
});

test("leaves a pod to the host's scheduler that makes room for it by preemption, though members have room", async () => {
  const { host, west } = clients();
  const node = await offerNode(host);
  await offerNode(west);
  const priority = `${namespace}-high`;
  const path = "/apis/scheduling.k8s.io/v1/priorityclasses";
  const body = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: priority }, value: 1000 };
  await host.raw({ method: "POST", path, body });
  onTestFinished(async () => void (await host.raw({ method: "DELETE", path: `${path}/${priority}` })));
  const victim: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name: "victim", annotations: { [KWOK_ANNOTATIONS.stopsAfter]: "100s" } },
    spec: poolSpec(MOST_CORES),
  };
  await host.create(pods, victim);
  await podThat(host, namespace, "victim", inPhase("Running"), patient);
  await host.create(pods, overflowPod({ spec: { ...poolSpec(MOST_CORES), priorityClassName: priority } }));
  await podThat(host, namespace, NAME, ({ status }) => status?.nominatedNodeName === node, patient);
  // Three times the patience.
  await sleep(3_000);
  await stopNow(host, namespace, "victim");
  await podThat(host, namespace, NAME, inPhase("Running"), patient);
  const pod = await host.get(pods, { namespace, name: NAME });
  expect(pod.spec?.nodeName).toBe(node);
  expect(await delegates()).toEqual([]);
  expect((await legationWrites(hostCluster(), namespace)).pods).toEqual(new Map());
});

describe("workloads in overflow mode", () => {
  const template = (annotations: Record<string, string> = {}, spec: Partial<PodSpec> = {}): object => ({
    // The host's scheduler may see the pods before it sees the label of the node.
    metadata: {
      labels: { app: "web" },
      annotations: { ...overflowing(), [OVERFLOW_AFTER_ANNOTATION]: "5s", ...annotations },
    },
    spec: { ...poolSpec(MOST_CORES), ...spec },
  });

  test("spill over into members as a Deployment, and leave nothing there when they shrink", async () => {
    const { host, west, east } = clients();
    await Promise.all([host, west, east].map((client) => offerNode(client)));
    const selector = { matchLabels: { app: "web" } };
    const deployment: Workload = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" } };
    const web: Workload = { ...deployment, spec: { replicas: 1, selector, template: template() } };
    await createIn(host, namespace, [web]);
    expect(await placed(1)).toEqual({ host: 1 });
    await change(host, namespace, ["Deployment", "web"], { spec: { replicas: 3 } });
    expect(await placed(3)).toEqual({ host: 1, "legation-west": 1, "legation-east": 1 });
    await change(host, namespace, ["Deployment", "web"], { spec: { replicas: 1 } });
    await eventually(async () => {
      const left = await podsOf(host, namespace);
      const inMembers = (await Promise.all([west, east].map((member) => podsOf(member, namespace)))).flat();
      expect(left).toHaveLength(1);
      const expected = left.filter(({ spec }) => spec?.nodeName?.startsWith("legation-"));
      expect(inMembers.map(({ metadata }) => metadata.name)).toEqual(expected.map(({ metadata }) => metadata.name));
      return true;
    }, patient);
  });

  test("end on both sides as a Job, and the Job is complete", async () => {
    const { host, west } = clients();
    await Promise.all([host, west].map((client) => offerNode(client)));
    const job: Workload = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "sum" } };
    const pod = template({ [KWOK_ANNOTATIONS.outcome]: "running" }, { restartPolicy: "Never" });
    const sum: Workload = { ...job, spec: { completions: 2, parallelism: 2, template: pod } };
    await createIn(host, namespace, [sum]);
    expect(await placed(2)).toEqual({ host: 1, "legation-west": 1 });
    // Once both have their places: otherwise the first would give its own to the second.
    for (const { metadata } of await podsOf(host, namespace)) {
      const body = { metadata: { annotations: { [KWOK_ANNOTATIONS.outcome]: "succeeded" } } };
      await host.patch(pods, { namespace, name: metadata.name }, { type: "merge", body });
    }
    await eventually(async () => {
      const path = `/apis/batch/v1/namespaces/${namespace}/jobs/sum`;
      expect(await host.raw({ method: "GET", path })).toMatchObject({ status: { succeeded: 2 } });
      return true;
    }, patient);
    expect(await delegates()).toEqual(["west"]);
  });
});

describe("a controller that is killed at a write of a pod that overflows", () => {
  interface Point {
    readonly write: string;
    readonly when: "before" | "after";
    readonly where: "host" | "member";
    readonly matches: (write: Write) => boolean;
    /** The number of the matching write. */
    readonly nth?: number;
  }
  const patches = ({ method, path, body }: Write, word: string): boolean =>
    method === "PATCH" && path === one() && body.includes(word);
  const creates = ({ method, path }: Write): boolean => method === "POST" && path === collection();
  const binds = ({ path }: Write): boolean => path === `${one()}/binding`;
  const points: readonly Point[] = [
    { write: "the trial in the member", when: "after", where: "member", matches: creates },
    { write: "the Binding", when: "before", where: "host", matches: binds },
    { write: "the Binding", when: "after", where: "host", matches: binds },
    { write: "the finalizer", when: "before", where: "host", matches: (write) => patches(write, "finalizers") },
    { write: "the finalizer", when: "after", where: "host", matches: (write) => patches(write, "finalizers") },
    { write: "the delegate", when: "after", where: "member", matches: creates, nth: 2 },
    { write: "the record", when: "before", where: "host", matches: (write) => patches(write, "delegate-uid") },
  ];

  test.each(points)("finishes after a restart: $when $write", async ({ when, where, matches, nth = 1 }) => {
    const { host, west } = clients();
    const { legation, trap } = gated();
    await offerNode(west);
    let seen = 0;
    let killed = false;
    trap(where, {
      when,
      catches: (write) => {
        if (matches(write)) seen += 1;
        return matches(write) && seen === nth;
      },
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    await host.create(pods, overflowPod());
    await eventually(() => killed, { ...patient, what: "the write" });
    await legation.controller.start();
    const pod = await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(pod.spec?.nodeName).toBe(WEST);
    await host.delete(pods, { namespace, name: NAME });
    await Promise.all([host, west].map((client) => podGone(client, namespace, NAME, undefined, patient)));
    expect(await delegates()).toEqual(["west"]);
    expect(await runOnHost()).toEqual([]);
  });
});

describe("the mark of overflow mode", () => {
  test("cannot be forged, removed or changed, and a namespace's label gives it to all its pods", async () => {
    const { host } = clients();
    const plain = (labels: Record<string, string>): Pod => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace, name: "forged", labels },
      spec: { containers: [{ name: "main", image: "work:1" }] },
    });
    // A leftover of another pod, for all that anyone can tell: it is dropped, and gives nothing.
    const forged = await host.create(pods, plain({ [PROXY_LABEL]: "overflow" }));
    expect(forged.metadata.labels ?? {}).not.toHaveProperty([PROXY_LABEL]);
    await expect(host.create(pods, overflowPod({ labels: { [PROXY_LABEL]: "true" } }))).resolves.toMatchObject({
      metadata: { labels: { [PROXY_LABEL]: "overflow" } },
    });
    const relabel = (value: string | null): Promise<Pod> => {
      const body = { metadata: { labels: { [PROXY_LABEL]: value } } };
      return host.patch(pods, { namespace, name: NAME }, { type: "merge", body });
    };
    await expect(relabel("true")).rejects.toThrow("Legation");
    // The webhook restores an absent mark.
    await expect(relabel(null)).resolves.toMatchObject({ metadata: { labels: { [PROXY_LABEL]: "overflow" } } });
    const all = await freshNamespace(hostCluster(), { labels: { "legation.dev/delegation": "overflow" } });
    const made = await host.create(pods, { ...plain({}), metadata: { namespace: all, name: "any" } });
    expect(made.metadata.labels?.[PROXY_LABEL]).toBe("overflow");
    const toleration = { ...plain({}), metadata: { namespace: all, name: "all-taints" } };
    const spec = { containers: [{ name: "main", image: "work:1" }], tolerations: [{ operator: "Exists" }] };
    await expect(host.create(pods, { ...toleration, spec })).rejects.toThrow("would choose a virtual node");
  });
});
