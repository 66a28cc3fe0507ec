import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { DELEGATE_FINALIZER, DELEGATE_UID_ANNOTATION, HOST_LABEL, OWNER_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { events, namespaces, pods, serviceAccounts } from "../../src/kube/resources.ts";
import { conditionOf, isDeleting } from "../../src/pods/pod-state.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { stopNow } from "../support/delegated/stop-now.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { overlaps, podLives } from "../support/harness/pod-lives.ts";
import { evict, inPhase, podGone, podOf, podsOf, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();

const members = ["west", "east"] as const;
const running = inPhase("Running");

function optedIn(onFinished: (cleanUp: () => Promise<void>) => void = onTestFinished): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  return freshNamespace(hostCluster(), { prefix: "deletion", labels, onFinished });
}

interface PodOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly graceSeconds?: number;
  readonly cpu?: string;
}

function aPod(namespace: string, name: string, { annotations = {}, graceSeconds, cpu }: PodOptions = {}): Pod {
  const resources = cpu === undefined ? {} : { resources: { requests: { cpu } } };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, annotations: { "legation.dev/delegate": "true", ...annotations } },
    spec: {
      containers: [{ name: "main", image: "main:1", ...resources }],
      ...(graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds }),
    },
  };
}

/** Creates the pod and waits until it runs. Returns the proxy and its delegate. */
async function runningPod(pod: Pod): Promise<{ proxy: Stored<Pod>; delegate: Stored<Pod>; member: "west" | "east" }> {
  const { namespace = "", name = "" } = pod.metadata ?? {};
  await clients().host.create(pods, pod);
  const proxy = await podThat(clients().host, namespace, name, running);
  const member = proxy.spec?.nodeName === "legation-west" ? "west" : "east";
  const delegate = await podThat(clients()[member], namespace, name, running);
  return { proxy, delegate, member };
}

async function nowhere(namespace: string, name: string): Promise<void> {
  await Promise.all(Object.values(clients()).map((client) => podGone(client, namespace, name)));
}

describe.concurrent("a deleted proxy", () => {
  test.for([
    { how: "gracefully, with the pod's own period", args: [], graceSeconds: 17 },
    { how: "gracefully, with the caller's period", args: ["--grace-period=5"], graceSeconds: 5 },
    { how: "at once", args: ["--now"], graceSeconds: 1 },
  ])(
    "ends its delegate with the same period when it is deleted $how",
    async ({ args, graceSeconds }, { onTestFinished }) => {
      const namespace = await optedIn(onTestFinished);
      const stopsAfter = { [KWOK_ANNOTATIONS.stopsAfter]: "100s" };
      const { delegate, member } = await runningPod(
        aPod(namespace, "web", { annotations: stopsAfter, graceSeconds: 17 }),
      );
      const deleted = kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", ...args]);
      const ending = await podThat(
        clients()[member],
        namespace,
        "web",
        ({ metadata }) => metadata.deletionTimestamp !== undefined,
      );
      expect(ending.metadata.uid).toBe(delegate.metadata.uid);
      expect(ending.metadata.deletionGracePeriodSeconds).toBe(graceSeconds);
      // The proxy outlives its delegate, as a pod outlives its containers.
      expect(await podOf(clients().host, namespace, "web")).toBeDefined();
      await stopNow(clients()[member], namespace, "web");
      await deleted;
      await nowhere(namespace, "web");
    },
  );

  test("does not wait for the delegate's grace period when it is deleted by force", async ({ onTestFinished }) => {
    const namespace = await optedIn(onTestFinished);
    await runningPod(aPod(namespace, "web", { graceSeconds: 600 }));
    await kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", "--force", "--grace-period=0"]);
    await nowhere(namespace, "web");
  });

  test("shortens the delegate's period when it is deleted again with a shorter one", async ({ onTestFinished }) => {
    const namespace = await optedIn(onTestFinished);
    const annotations = { [KWOK_ANNOTATIONS.stopsAfter]: "100s" };
    const { member } = await runningPod(aPod(namespace, "web", { annotations, graceSeconds: 600 }));
    const ref = { namespace, name: "web" };
    const period = (seconds: number) => (pod: Stored<Pod>) => pod.metadata.deletionGracePeriodSeconds === seconds;
    await clients().host.delete(pods, ref);
    await podThat(clients()[member], namespace, "web", period(600));
    await clients().host.delete(pods, ref, { gracePeriodSeconds: 3 });
    await podThat(clients()[member], namespace, "web", period(3));
    await stopNow(clients()[member], namespace, "web");
    await nowhere(namespace, "web");
  });

  test("takes its delegate out of the member where it still waits for a node", async ({ onTestFinished }) => {
    const namespace = await optedIn(onTestFinished);
    const pod = aPod(namespace, "web");
    // Only the member's own scheduler evaluates this.
    const near = { labelSelector: { matchLabels: { app: "nowhere" } }, topologyKey: "kubernetes.io/hostname" };
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [near] } };
    const spec = { containers: [], ...pod.spec, affinity };
    await clients().host.create(pods, { ...pod, spec });
    const unscheduled = await eventually(async () => {
      const found = await Promise.all(members.map((member) => podOf(clients()[member], namespace, "web")));
      return found.find((delegate) => delegate !== undefined);
    });
    expect(unscheduled.spec?.nodeName).toBeUndefined();
    await clients().host.delete(pods, { namespace, name: "web" });
    await nowhere(namespace, "web");
  });

  test("leaves nothing if it is deleted right after its creation and fits no member", async ({ onTestFinished }) => {
    const namespace = await optedIn(onTestFinished);
    const annotations = { "legation.dev/cluster-selector": "region=nowhere" };
    await clients().host.create(pods, aPod(namespace, "web", { annotations }));
    await clients().host.delete(pods, { namespace, name: "web" });
    await nowhere(namespace, "web");
  });

  test("removes its finished delegate", async ({ onTestFinished }) => {
    const namespace = await optedIn(onTestFinished);
    const annotations = { [KWOK_ANNOTATIONS.outcome]: "succeeded" };
    await clients().host.create(pods, aPod(namespace, "web", { annotations }));
    await podThat(clients().host, namespace, "web", inPhase("Succeeded"));
    await clients().host.delete(pods, { namespace, name: "web" });
    await nowhere(namespace, "web");
  });
});

describe("a proxy that is deleted by force", () => {
  // Less than a request to a member may take.
  const soon = { timeoutMs: 5_000 };

  test("goes at once while its member holds up the deletion before, which leaves no delegate once it answers", async () => {
    const namespace = await optedIn();
    const { proxy, delegate, member } = await runningPod(aPod(namespace, "web"));
    const ref = { namespace, name: "web" };
    const { apiServer } = memberCluster(member);
    await apiServer.freeze();
    try {
      await clients().host.delete(pods, ref);
      // The deletion in the member is under way.
      await sleep(1_000);
      await clients().host.delete(pods, ref, { gracePeriodSeconds: 0 });
      await podGone(clients().host, namespace, "web", proxy.metadata.uid, soon);
    } finally {
      await apiServer.thaw();
    }
    await podGone(clients()[member], namespace, "web", delegate.metadata.uid);
  });

  test("has its name's next pod, in the same member, run in its place", async () => {
    const namespace = await optedIn();
    const annotations = { "legation.dev/clusters": "west" };
    const { proxy, delegate } = await runningPod(aPod(namespace, "web", { annotations, graceSeconds: 600 }));
    await clients().host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
    await podGone(clients().host, namespace, "web", proxy.metadata.uid, soon);
    const next = await runningPod(aPod(namespace, "web", { annotations }));
    expect(next.delegate.metadata.uid).not.toBe(delegate.metadata.uid);
    expect(overlaps(await podLives(memberCluster("west"), namespace))).toEqual([]);
  });
});

describe("a deleted namespace", () => {
  test("ends with running, waiting, gated and finished proxies in it", async () => {
    const namespace = await optedIn();
    const { host } = clients();
    const kinds: Pod[] = [
      ...["run-0", "run-1", "run-2", "run-3"].map((name) => aPod(namespace, name)),
      aPod(namespace, "slow", { annotations: { [KWOK_ANNOTATIONS.stopsAfter]: "2s" } }),
      aPod(namespace, "ended", { annotations: { [KWOK_ANNOTATIONS.outcome]: "failed" } }),
      aPod(namespace, "refused", { annotations: { "legation.dev/clusters": "north" } }),
    ];
    const gated = aPod(namespace, "gated");
    const spec = { containers: [], ...gated.spec, schedulingGates: [{ name: "example.com/quota" }] };
    await Promise.all([...kinds, { ...gated, spec }].map((pod) => host.create(pods, pod)));
    await podThat(host, namespace, "slow", running);
    await podThat(host, namespace, "ended", inPhase("Failed"));
    const created = Array.from({ length: 10 }, (_, index) => host.create(pods, aPod(namespace, `late-${index}`)));
    await Promise.all(created);
    await host.delete(namespaces, { name: namespace });
    await eventually(async () => (await host.find(namespaces, { name: namespace })) === undefined, {
      timeoutMs: 60_000,
      what: `end of namespace ${namespace}`,
    });
    for (const member of members) {
      await eventually(async () => (await podsOf(clients()[member], namespace)).length === 0);
    }
  });
});

describe("a name that is used again", () => {
  test("never has two delegates and leaves one, 50 times in a row, at every moment of a pod's life", async () => {
    const namespace = await optedIn();
    const { host } = clients();
    const ref = { namespace, name: "again" };
    for (let round = 0; round < 50; round += 1) {
      // The name is free when the API server says so, and not before.
      const made = await eventually(async () => host.create(pods, aPod(namespace, "again")).catch(ifNameTaken), {
        timeoutMs: 60_000,
        intervalMs: 2,
        what: `round ${round}`,
      });
      const { uid } = made.metadata;
      const moments = [
        async () => undefined,
        () => podThat(host, namespace, "again", ({ spec }) => spec?.nodeName !== undefined, { intervalMs: 2 }),
        () => podThat(host, namespace, "again", running, { intervalMs: 2 }),
        () => eventually(async () => (await delegatesOf(namespace, "again")).length > 0, { intervalMs: 2 }),
      ];
      await moments[round % moments.length]?.();
      const force = round % 3 === 0 ? { gracePeriodSeconds: 0 } : {};
      await host.delete(pods, ref, { uid, ...force });
    }
    await eventually(async () => host.create(pods, aPod(namespace, "again")).catch(ifNameTaken), { intervalMs: 2 });
    const proxy = await podThat(host, namespace, "again", running);
    const left = await delegatesOf(namespace, "again");
    expect(left.map(({ metadata }) => ownerUid(metadata.annotations))).toEqual([proxy.metadata.uid]);

    await host.delete(pods, ref);
    await nowhere(namespace, "again");
    const lives = (await Promise.all(members.map((member) => podLives(memberCluster(member), namespace)))).flat();
    expect(lives.length).toBeGreaterThan(25);
    expect(overlaps(lives)).toEqual([]);
  });
});

describe("a delegate that is deleted in its member", () => {
  test("fails a bare pod with DisruptionTarget", async () => {
    const namespace = await optedIn();
    const { member } = await runningPod(aPod(namespace, "web"));
    await clients()[member].delete(pods, { namespace, name: "web" });
    const failed = await podThat(clients().host, namespace, "web", inPhase("Failed"));
    expect(conditionOf(failed, "DisruptionTarget")).toMatchObject({ status: "True", reason: "DeletedInMember" });
    expect(conditionOf(failed, "Ready")).toMatchObject({ status: "False" });
    expect(failed.status?.message).toContain(`Cluster ${member}`);
    await eventually(async () => (await delegatesOf(namespace, "web")).length === 0);
  });

  test("fails the pod with the eviction's own reason if it was evicted there", async () => {
    const namespace = await optedIn();
    const { member } = await runningPod(aPod(namespace, "web"));
    await evict(clients()[member], namespace, "web");
    const failed = await podThat(clients().host, namespace, "web", inPhase("Failed"));
    expect(conditionOf(failed, "DisruptionTarget")).toMatchObject({ status: "True", reason: "EvictionByEvictionAPI" });
  });

  describe("before it started", () => {
    const pending = { annotations: { [KWOK_ANNOTATIONS.outcome]: "pending" } };

    async function boundPod(namespace: string): Promise<{ proxy: Stored<Pod>; member: "west" | "east" }> {
      await clients().host.create(pods, aPod(namespace, "web", { ...pending, graceSeconds: 1 }));
      const proxy = await podThat(clients().host, namespace, "web", ({ spec }) => spec?.nodeName !== undefined);
      return { proxy, member: proxy.spec?.nodeName === "legation-west" ? "west" : "east" };
    }

    test("is created again, and the proxy follows the new one", async () => {
      const namespace = await optedIn();
      const { proxy, member } = await boundPod(namespace);
      await clients()[member].delete(pods, { namespace, name: "web" });
      const again = await podThat(clients().host, namespace, "web", (pod) => recorded(pod) !== recorded(proxy));
      expect(again.metadata.uid).toBe(proxy.metadata.uid);
      expect((await podOf(clients()[member], namespace, "web"))?.metadata.uid).toBe(recorded(again));
      const lives = (await Promise.all(members.map((name) => podLives(memberCluster(name), namespace)))).flat();
      expect(lives.map(({ cluster }) => cluster)).toEqual([member, member]);
      expect(overlaps(lives)).toEqual([]);
    });

    test("is created again once its namespace, deleted with it, has ended there", async () => {
      const namespace = await optedIn();
      const { proxy, member } = await boundPod(namespace);
      await clients()[member].delete(namespaces, { name: namespace });
      await podGone(clients()[member], namespace, "web", recorded(proxy));
      const again = await podThat(
        clients().host,
        namespace,
        "web",
        (pod) => recorded(pod) !== recorded(proxy) || inPhase("Failed")(pod),
        { timeoutMs: 60_000 },
      );
      expect(again.status?.phase).toBe("Pending");
      expect(again.metadata.uid).toBe(proxy.metadata.uid);
      expect((await podOf(clients()[member], namespace, "web"))?.metadata.uid).toBe(recorded(again));
    });

    test("fails the pod if a foreign pod has taken its name there", async () => {
      const namespace = await optedIn();
      const { proxy, member } = await boundPod(namespace);
      // Prevents a new delegate while the controller stands still.
      await legation().controller.freeze();
      const foreign = aPod(namespace, "web");
      try {
        await clients()[member].delete(pods, { namespace, name: "web" });
        await podGone(clients()[member], namespace, "web", recorded(proxy));
        await clients()[member].create(pods, foreign);
        onTestFinished(async () => void (await clients()[member].delete(pods, { namespace, name: "web" })));
      } finally {
        legation().controller.thaw();
      }
      const failed = await podThat(clients().host, namespace, "web", inPhase("Failed"));
      expect(failed.status?.message).toContain("a pod of that name, not made by Legation for this host, is there");
      expect((await podOf(clients()[member], namespace, "web"))?.metadata.deletionTimestamp).toBeUndefined();
    });
  });

  test("is replaced at once, long before its containers end, if a ReplicaSet owns the pod", async () => {
    const namespace = await optedIn();
    const labels = { app: "web" };
    const replicaSet = {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { name: "web", namespace, annotations: { "legation.dev/delegate": "true" } },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations: { [KWOK_ANNOTATIONS.stopsAfter]: "100s" } },
          spec: { containers: [{ name: "main", image: "main:1" }], terminationGracePeriodSeconds: 60 },
        },
      },
    };
    await kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(replicaSet) });
    const two = async (): Promise<Stored<Pod>[] | undefined> => {
      const found = (await podsOf(clients().host, namespace)).filter((pod) => running(pod) && !isDeleting(pod));
      return found.length === 2 ? found : undefined;
    };
    const [victim, other] = await eventually(two, { timeoutMs: 60_000 });
    if (victim === undefined || other === undefined) throw new Error("there are two");
    const { name } = victim.metadata;
    const member = victim.spec?.nodeName === "legation-west" ? "west" : "east";
    await clients()[member].delete(pods, { namespace, name });
    const [first, second] = await eventually(
      async () => {
        const found = await two();
        return found?.every((pod) => pod.metadata.name !== name) === true ? found : undefined;
      },
      { timeoutMs: 60_000 },
    );
    expect([first?.metadata.name, second?.metadata.name]).toContain(other.metadata.name);
    // A pod of a drained node, too, ends with the grace period of its deletion there.
    const ending = await podOf(clients()[member], namespace, name);
    expect(ending?.metadata.deletionTimestamp).toBeDefined();
    const proxy = await podOf(clients().host, namespace, name);
    expect(proxy?.metadata).toMatchObject({ uid: victim.metadata.uid, deletionGracePeriodSeconds: 60 });
    await stopNow(clients()[member], namespace, name);
    await Promise.all(
      [clients().host, clients()[member]].map((client) =>
        podGone(client, namespace, name, undefined, { timeoutMs: 60_000 }),
      ),
    );
  });
});

describe("a delegate whose marks are removed in its member", () => {
  test.for([
    { what: "the label", metadata: { labels: { [HOST_LABEL]: null } } },
    { what: "the owner annotation", metadata: { annotations: { [OWNER_ANNOTATION]: null } } },
    { what: "both", metadata: { labels: null, annotations: null } },
  ])("gets $what back, and the pod goes on unchanged", async ({ metadata }) => {
    const namespace = await optedIn();
    const { proxy, delegate, member } = await runningPod(aPod(namespace, "web"));
    const ref = { namespace, name: "web" };
    await clients()[member].patch(pods, ref, { type: "merge", body: { metadata } });
    const marks = ({ labels, annotations }: Stored<Pod>["metadata"]): (string | undefined)[] => [
      labels?.[HOST_LABEL],
      annotations?.[OWNER_ANNOTATION],
    ];
    const again = await podThat(clients()[member], namespace, "web", (pod) =>
      marks(pod.metadata).every((mark) => mark !== undefined),
    );
    expect(marks(again.metadata)).toEqual(marks(delegate.metadata));
    expect(again.metadata.uid).toBe(delegate.metadata.uid);
    // Later changes reach the host again.
    const ready = { type: "example.com/seen", status: "True" };
    await clients()[member].patch(
      pods,
      ref,
      { type: "strategic", body: { status: { conditions: [ready] } } },
      { subresource: "status" },
    );
    const told = await podThat(clients().host, namespace, "web", (pod) => conditionOf(pod, ready.type) !== undefined);
    expect(told.status?.phase).toBe("Running");
    expect(told.metadata.uid).toBe(proxy.metadata.uid);
    await clients().host.delete(pods, ref);
    await nowhere(namespace, "web");
  });

  test("is removed if its proxy is deleted before the controller has seen the removal", async () => {
    const namespace = await optedIn();
    const { member } = await runningPod(aPod(namespace, "web"));
    const ref = { namespace, name: "web" };
    const body = { metadata: { labels: { [HOST_LABEL]: null } } };
    await legation().controller.freeze();
    try {
      await clients()[member].patch(pods, ref, { type: "merge", body });
      await clients().host.delete(pods, ref);
    } finally {
      legation().controller.thaw();
    }
    await nowhere(namespace, "web");
  });
});

describe("pods in members without a proxy", () => {
  test("are swept if they bear this host's label and the mark of a proxy that does not exist", async () => {
    const namespace = await optedIn();
    const { delegate, member } = await runningPod(aPod(namespace, "web"));
    const owner = { cluster: "host", namespace, name: "forged", uid: "00000000-0000-4000-8000-000000000000" };
    const forged: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        namespace,
        name: "forged",
        labels: { [HOST_LABEL]: delegate.metadata.labels?.[HOST_LABEL] ?? "" },
        annotations: { [OWNER_ANNOTATION]: JSON.stringify(owner) },
      },
      spec: { containers: [{ name: "main", image: "main:1" }] },
    };
    await clients()[member].create(pods, forged);
    await podGone(clients()[member], namespace, "forged");
  });

  test("are swept if their proxy lost its finalizer and is gone", async () => {
    const namespace = await optedIn();
    const { member, delegate, proxy } = await runningPod(aPod(namespace, "web"));
    const finalizers = proxy.metadata.finalizers?.filter((name) => name !== DELEGATE_FINALIZER) ?? [];
    const strip = (...as: string[]): Promise<string> =>
      kubectl(hostCluster(), [
        ...["-n", namespace, "patch", "pod", "web", "--type=merge"],
        ...["-p", JSON.stringify({ metadata: { finalizers } })],
        ...as,
      ]);
    // The policy denies this even to administrators; only Legation's account may, or whoever removes the policy.
    await strip();
    expect((await podOf(clients().host, namespace, "web"))?.metadata.finalizers).toEqual(proxy.metadata.finalizers);
    await strip("--as=system:serviceaccount:legation-system:legation-controller");
    await clients().host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
    await podGone(clients()[member], namespace, "web", delegate.metadata.uid);
  });

  test("are left alone if they are foreign, and a proxy of the same name goes to the other member, with an event", async () => {
    const namespace = await optedIn();
    await freshMemberNamespace(namespace);
    // Cores in use in the east make the west the first choice, whatever earlier tests have left.
    const member = "west";
    await runningPod(aPod(namespace, "ballast", { annotations: { "legation.dev/clusters": "east" }, cpu: "40" }));
    const foreign: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace, name: "web" },
      spec: { containers: [{ name: "main", image: "foreign:1" }] },
    };
    const before = await clients()[member].create(pods, foreign);
    const { member: chosen } = await runningPod(aPod(namespace, "web", { cpu: "1" }));
    expect(chosen).not.toBe(member);
    const told = await eventually(async () => {
      const { items } = await clients().host.list(events, { namespace });
      return items.find(({ involvedObject, message }) => involvedObject.name === "web" && message?.includes(member));
    });
    expect(told.message).toContain("a pod of that name, not made by Legation for this host, is there");

    await clients().host.delete(pods, { namespace, name: "web" });
    await podGone(clients().host, namespace, "web");
    const after = await podOf(clients()[member], namespace, "web");
    expect(after?.metadata.uid).toBe(before.metadata.uid);
    expect(after?.metadata.deletionTimestamp).toBeUndefined();
    expect(after?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });
});

async function delegatesOf(namespace: string, name: string): Promise<Stored<Pod>[]> {
  const found = await Promise.all(members.map((member) => podOf(clients()[member], namespace, name)));
  return found.filter((pod) => pod !== undefined);
}

function recorded({ metadata }: Pod): string | undefined {
  return metadata?.annotations?.[DELEGATE_UID_ANNOTATION];
}

function ownerUid(annotations: Readonly<Record<string, string>> | undefined): string {
  const owner: unknown = JSON.parse(annotations?.[OWNER_ANNOTATION] ?? "null");
  return typeof owner === "object" && owner !== null && "uid" in owner ? String(owner.uid) : "";
}

function ifNameTaken(error: unknown): undefined {
  if (isKubeError(error, "AlreadyExists")) return undefined;
  throw error;
}

/** Creates the namespace in both members with a service account, so that the test can create a pod there. */
async function freshMemberNamespace(name: string): Promise<void> {
  onTestFinished(async () => {
    await Promise.all(members.map((member) => clients()[member].delete(namespaces, { name })));
  });
  await Promise.all(
    members.map(async (member) => {
      const body = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
      await clients()[member].create(namespaces, body);
      const account = { namespace: name, name: "default" };
      await eventually(async () => clients()[member].find(serviceAccounts, account));
    }),
  );
}
