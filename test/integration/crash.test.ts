import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ClusterCondition } from "../../src/api/cluster-status.ts";
import { DELEGATE_UID_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { leases, nodes, pods } from "../../src/kube/resources.ts";
import { conditionOf, isBound } from "../../src/pods/pod-state.ts";
import { apiRequest } from "../support/clusters/api-request.ts";
import { type AuditEvent, auditEvents } from "../support/clusters/audit.ts";
import { NAME, patient } from "../support/crash/lives.ts";
import { isAt, isNamespace, type Place, type Point, points } from "../support/crash/points.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Trap } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();

// Less than the controller waits to see its own write.
const SOON_MS = 8_000;

// A failed test may have left it killed.
beforeEach(() => gated().legation.controller.start());

/** Runs a pod's life with a trap at some of its writes, and checks what every pod must see. */
async function liveThrough(
  point: Point,
  how: { readonly when: Trap["when"]; readonly status?: number; readonly onFinished: typeof onTestFinished },
  onCaught: (place: Place, namespace: string) => Promise<void>,
): Promise<void> {
  const { onFinished, ...when } = how;
  const members = [memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  const there = point.at.some(isNamespace) ? [hostCluster()] : [hostCluster(), ...members];
  const namespace = await freshNamespace(there, { prefix: "crash", labels, onFinished });
  const { histories, stop } = await watchPods(clients().host, namespace);
  onFinished(stop);
  const { trap } = gated();
  const arm = (): void => {
    for (const place of point.at) {
      const caught = (): Promise<void> => onCaught(place, namespace);
      trap(place.where, {
        ...when,
        namespace: trapFor(place, namespace),
        catches: isAt(place, namespace),
        onCaught: caught,
      });
    }
  };
  const { live, name = NAME, phases, proxies = 1, delegates } = point.of;
  await live({ clients: clients(), namespace, endsAfter: point.endsAfter, arm, trap, onFinished });
  const all = Object.values(clients());
  await Promise.all(all.map((client) => podGone(client, namespace, name, undefined, patient)));

  expect((await Promise.all(members.map((member) => podLives(member, namespace)))).flat()).toHaveLength(delegates);
  expect(histories.size).toBe(proxies);
  for (const history of histories.values()) {
    const seen = history.phases.map(({ phase }) => phase);
    expect(phases.filter((phase) => seen.includes(phase))).toEqual(seen);
    expect(history.misscheduled, "PodScheduled is True exactly when the proxy is bound").toBeUndefined();
  }
}

/** Returns the name of a trap, unique among those of other tests and writes. */
function trapFor({ method, path }: Place, namespace: string): string {
  return `${namespace} ${method} ${path}`;
}

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  test.each(points)("restarts and ends the life the same: $write, of a pod that $of.title", async (point) => {
    const { legation, release } = gated();
    const { controller } = legation;
    onTestFinished(release);
    let starting = Promise.resolve();
    const killedAt: Place[] = [];
    const kill = async (place: Place): Promise<void> => {
      // Recorded before the kill: after its last write a pod may be gone before the controller is.
      killedAt.push(place);
      const stopped = starting.then(() => controller.stop("SIGKILL"));
      starting = stopped.then(() => controller.start());
      // The error is thrown where the start is awaited.
      starting.catch(() => {});
      await stopped;
    };
    await liveThrough(point, { when, onFinished: onTestFinished }, kill);
    await starting;
    expect(new Set(killedAt)).toEqual(new Set(point.at));
  });
});

describe.concurrent("a write that an API server refuses once with a conflict", () => {
  const repeated = points.filter(({ once = false }) => !once);

  test.for(repeated)("is repeated soon: $write, of a pod that $of.title", async (point, context) => {
    const at = new Map<Place, number[]>();
    const note = async (place: Place, namespace: string): Promise<void> => {
      const times = at.get(place) ?? [];
      at.set(place, [...times, performance.now()]);
      if (times.length > 0) return;
      gated().trap(place.where, {
        namespace: trapFor(place, namespace),
        when: "late",
        catches: isAt(place, namespace),
        onCaught: () => note(place, namespace),
      });
    };
    const onFinished = context.onTestFinished;
    await liveThrough(point, { when: "refused", status: 409, onFinished }, note);
    for (const place of point.at) {
      // The retry of an event may come after the last write of the pod's life.
      const what = `${place.method} ${place.path} comes again`;
      const [refusedAt = 0, againAt = Number.POSITIVE_INFINITY] = await eventually(
        () => ((at.get(place)?.length ?? 0) > 1 ? at.get(place) : undefined),
        { timeoutMs: SOON_MS, what },
      );
      expect(againAt - refusedAt).toBeLessThan(SOON_MS);
    }
  });
});

describe("a member that is declared lost soon", () => {
  useQuickProbes();

  test("keeps a delegate that was created, and not seen before its member went silent, the only one", async () => {
    const { trap, release } = gated();
    const { host } = clients();
    const members = { west: memberCluster("west"), east: memberCluster("east") };
    const labels = { "legation.dev/delegation": "annotated" };
    const namespace = await freshNamespace([hostCluster(), ...Object.values(members)], { prefix: "unseen", labels });
    let silent: "west" | "east" | undefined;
    trap("member", {
      when: "unseen",
      catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
      onCaught: async (member) => {
        silent = member === "west" ? "west" : "east";
        await members[silent].apiServer.freeze();
      },
    });
    onTestFinished(async () => {
      if (silent !== undefined) await members[silent].apiServer.thaw();
      release();
    });
    await host.create(pods, delegatedPod(namespace, NAME));
    // The member is lost, and the pod belongs to its node.
    const lost = await podThat(host, namespace, NAME, isBound, patient);
    expect(lost.metadata.annotations).not.toHaveProperty(DELEGATE_UID_ANNOTATION);
    if (silent !== undefined) await members[silent].apiServer.thaw();
    release();
    const { spec } = await podThat(host, namespace, NAME, inPhase("Running"), patient);
    expect(spec?.nodeName).toBe(`legation-${silent}`);
    const delegates = await Promise.all(Object.values(members).map((member) => podLives(member, namespace)));
    expect(delegates.flat()).toHaveLength(1);
  });
});

test("has a workload replace at once a pod whose running delegate was deleted before the Binding", async () => {
  const { trap, release, legation } = gated();
  const { host, west } = clients();
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([hostCluster(), memberCluster("west")], { prefix: "unbound", labels });
  const bindings = new RegExp(`^/api/v1/namespaces/${namespace}/pods/[^/]+/binding$`);
  const killed = Promise.withResolvers<void>();
  trap("host", {
    when: "before",
    catches: ({ method, path }) => method === "POST" && bindings.test(path),
    onCaught: async () => {
      await legation.controller.stop("SIGKILL");
      killed.resolve();
    },
  });
  onTestFinished(release);
  const annotations = { "legation.dev/delegate": "true", "legation.dev/clusters": "west" };
  const template = { metadata: { labels: { app: NAME } }, spec: { containers: [{ name: "main", image: "work:1" }] } };
  const spec = { replicas: 1, selector: { matchLabels: { app: NAME } }, template };
  const metadata = { namespace, name: NAME, annotations };
  const replicaSet = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata, spec };
  await kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(replicaSet) });
  const first = await eventually(async () => (await podsOf(west, namespace)).find(inPhase("Running")), patient);
  // The Binding is held back until the delegate runs.
  await killed.promise;
  // A kubelet that no longer answers gives the same result.
  const { name } = first.metadata;
  const held = { metadata: { finalizers: ["example.com/kept"] } };
  await west.patch(pods, { namespace, name }, { type: "merge", body: held });
  onTestFinished(async () => {
    await west
      .patch(pods, { namespace, name }, { type: "merge", body: { metadata: { finalizers: null } } })
      .catch(() => {});
  });
  await west.delete(pods, { namespace, name });
  release();
  await legation.controller.start();
  const replaced = await eventually(
    async () => (await podsOf(host, namespace)).find((pod) => pod.metadata.name !== name && inPhase("Running")(pod)),
    patient,
  );
  expect(replaced.spec?.nodeName).toBe("legation-west");
  const proxy = await host.get(pods, { namespace, name });
  expect(proxy.spec?.nodeName).toBe("legation-west");
  expect(proxy.metadata.deletionTimestamp).toBeDefined();
});

test("creates no second delegate when the first create's response was lost and it fills the quota", async () => {
  const { trap, release, legation } = gated();
  const { host } = clients();
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([hostCluster(), ...Object.values(members)], { prefix: "quota", labels });
  const collection = `/api/v1/namespaces/${namespace}/resourcequotas`;
  for (const member of Object.values(members)) {
    const body = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "one" }, spec: { hard: { pods: "1" } } };
    expect((await apiRequest(member, "POST", collection, { body })).status).toBe(201);
    // The quota refuses nothing before it has been counted.
    await eventually(async () => (await apiRequest(member, "GET", `${collection}/one`)).text.includes('"used":{'));
  }
  let holder: string | undefined;
  trap("member", {
    when: "lost",
    catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
    onCaught: async (member) => {
      holder = member;
    },
  });
  onTestFinished(release);
  const seen = legation.controller.log().length;
  await host.create(pods, delegatedPod(namespace, NAME));
  const refused = (): Promise<AuditEvent[]> =>
    auditEvents(
      members[holder === "east" ? "east" : "west"],
      ({ verb, objectRef, responseStatus }) =>
        verb === "create" &&
        objectRef?.namespace === namespace &&
        objectRef.resource === "pods" &&
        responseStatus?.code === 403,
      [namespace],
    );
  await eventually(async () => holder !== undefined && (await refused()).length > 0, patient);
  // The log arrives a little later, from another thread.
  await eventually(() => legation.controller.log().slice(seen).includes("AnswerLost"));
  release();
  const { spec } = await podThat(host, namespace, NAME, inPhase("Running"), patient);
  expect(spec?.nodeName).toBe(`legation-${holder}`);
  const delegates = await Promise.all(Object.values(members).map((member) => podLives(member, namespace)));
  expect(delegates.flat()).toHaveLength(1);
});

describe("while a member answers its probes, and its pods take long to be listed", () => {
  test("a new leader keeps its node and its running pods Ready, and places new pods elsewhere", async () => {
    const { legation, release, trapReads } = gated();
    const { controller } = legation;
    const { host } = clients();
    onTestFinished(release);
    const labels = { "legation.dev/delegation": "annotated" };
    const namespace = await freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { labels });
    const west = { "legation.dev/clusters": "west" };
    await host.create(pods, delegatedPod(namespace, "running", { annotations: west }));
    await podThat(host, namespace, "running", isReady, patient);

    await controller.stop("SIGTERM");
    trapReads("west", { catches: (path) => path === "/api/v1/pods", lists: "held" });
    const startedAt = Date.now();
    await controller.start();
    const readyOf = async (): Promise<ClusterCondition | undefined> =>
      (await host.get(clusters, { name: "west" })).status?.conditions?.find(({ type }) => type === "Ready");
    await eventuallyPasses(async () => {
      const message = expect.stringMatching(/^its API server answers, but is slow: its pods are being listed since 20/);
      expect(await readyOf()).toMatchObject({ status: "True", reason: "Slow", message });
    }, patient);
    // The Lease expires after 40 s, and nothing but a probe tells that the member is there.
    const lease = await host.get(leases, { namespace: "kube-node-lease", name: "legation-west" });
    expect(Date.parse(lease.spec?.renewTime ?? "")).toBeGreaterThan(startedAt);
    const node = await host.get(nodes, { name: "legation-west" });
    expect(node.status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({
      status: "True",
      reason: "MemberSlow",
    });
    await host.create(pods, delegatedPod(namespace, "new"));
    const placed = await podThat(host, namespace, "new", isBound, patient);
    expect(placed.spec?.nodeName).toBe("legation-east");
    expect(isReady(await host.get(pods, { namespace, name: "running" }))).toBe(true);

    release();
    await eventuallyPasses(async () => expect(await readyOf()).toMatchObject({ reason: "ProbeSucceeded" }), patient);
    await host.create(pods, delegatedPod(namespace, "back", { annotations: west }));
    await podThat(host, namespace, "back", isBound, patient);
  });
});

function isReady(pod: Pod): boolean {
  return conditionOf(pod, "Ready")?.status === "True";
}
