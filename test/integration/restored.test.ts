import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CLUSTERS_ANNOTATION, DELEGATE_UID_ANNOTATION, LEADERLESS_ANNOTATION } from "../../src/api/keys.ts";
import type { PersistentVolumeClaim, Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { configMaps, events, leases, persistentVolumeClaims, pods } from "../../src/kube/resources.ts";
import { isTerminal } from "../../src/pods/pod-state.ts";
import { backUp } from "../support/clusters/backup.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { ageLease } from "../support/harness/aged-lease.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podOf, podsOf, podThat } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation({ restart: false });
const clients = useClients();
useQuickProbes();

const LEASE = { namespace: "legation-system", name: "legation-controller" };
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "all" };
  namespace = await freshNamespace(hostCluster(), { prefix: "restored", labels });
});

/** Creates a bare pod of west. */
function create(name: string, parts: Parameters<typeof delegatedPod>[2] = {}): Promise<Stored<Pod>> {
  const annotations = { [CLUSTERS_ANNOTATION]: "west", ...parts.annotations };
  return clients().host.create(pods, delegatedPod(namespace, name, { ...parts, annotations }));
}

function inHost(name: string, holds: (pod: Stored<Pod>) => boolean = inPhase("Running")): Promise<Stored<Pod>> {
  return podThat(clients().host, namespace, name, holds);
}

function inWest(name: string, holds: (pod: Stored<Pod>) => boolean = inPhase("Running")): Promise<Stored<Pod>> {
  return podThat(clients().west, namespace, name, holds);
}

function label(client: ClusterClient, name: string, later: string | null): Promise<unknown> {
  return client.patch(pods, { namespace, name }, { type: "merge", body: { metadata: { labels: { later } } } });
}

async function setColor(color: string): Promise<void> {
  const ref = { namespace, name: "settings" };
  const { host } = clients();
  if ((await host.find(configMaps, ref)) === undefined) {
    await host.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: ref, data: { color } });
  } else await host.patch(configMaps, ref, { type: "merge", body: { data: { color } } });
}

/**
 * Makes a backup old: a real one is behind by more writes than a restored server does within a minute.
 * A server that catches up sooner looks like one that was only restarted.
 */
async function age(client: ClusterClient): Promise<void> {
  const clocks = Array.from({ length: 20 }, (_, number) => ({ namespace, name: `clock-${number}` }));
  const make = (metadata: object) => client.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
  await Promise.all(clocks.map(make));
  for (let at = 0; at < 50; at++) {
    const body = { data: { at: String(at) } };
    await Promise.all(clocks.map((clock) => client.patch(configMaps, clock, { type: "merge", body })));
  }
}

async function colorInWest(): Promise<string | undefined> {
  return (await clients().west.find(configMaps, { namespace, name: "settings" }))?.data?.color;
}

const withSettings = {
  spec: { containers: [{ name: "main", image: "work:1", envFrom: [{ configMapRef: { name: "settings" } }] }] },
};

/** Creates a claim without a volume, and a pod that waits for it in west. */
async function createClaimWithUser(): Promise<void> {
  const spec = {
    accessModes: ["ReadWriteOnce"],
    storageClassName: "none",
    resources: { requests: { storage: "1Gi" } },
  };
  await clients().host.create(persistentVolumeClaims, {
    metadata: { namespace, name: "data" },
    spec,
  } as PersistentVolumeClaim);
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  await create("waits", { spec: { containers: [{ name: "main", image: "work:1" }], volumes } });
}

/** Expects that every running proxy has the delegate that it records, and that the member has no others. */
async function expectTrue(): Promise<void> {
  const { host, west } = clients();
  await eventuallyPasses(async () => {
    const [proxies, delegates] = await Promise.all([podsOf(host, namespace), podsOf(west, namespace)]);
    const running = proxies.filter((pod) => !isTerminal(pod));
    const recorded = running.map(
      ({ metadata }) => `${metadata.name} ${metadata.annotations?.[DELEGATE_UID_ANNOTATION]}`,
    );
    expect(delegates.map(({ metadata }) => `${metadata.name} ${metadata.uid}`)).toEqual(recorded);
  });
}

const isEvicted = ({ status }: Pod): boolean =>
  status?.phase === "Failed" && status.conditions?.some(({ type }) => type === "DisruptionTarget") === true;

describe("a host that is restored from a backup of etcd", () => {
  test("adopts the delegates that it remembers, and keeps unknown ones until the operator decides", async () => {
    const { host, west } = clients();
    const { controller } = legation();
    onTestFinished(() => hostCluster().mend());
    await setColor("before");
    await Promise.all([create("stays", withSettings), create("deleted"), create("relabelled")]);
    const gates = [{ name: "example.com/quota" }];
    await create("gated", { spec: { schedulingGates: gates } });
    const [stays] = await Promise.all(["stays", "deleted", "relabelled"].map((name) => inHost(name)));
    const delegate = await inWest("stays");

    // The backup is an hour old when it is restored, and no controller leads while it is made.
    await controller.stop();
    await ageLease(host);
    using backup = await backUp(hostCluster());
    await age(host);
    await controller.start();

    await host.delete(pods, { namespace, name: "deleted" });
    await create("created");
    await createClaimWithUser();
    await label(host, "relabelled", "yes");
    await setColor("after");
    await host.patch(
      pods,
      { namespace, name: "gated" },
      { type: "json", body: [{ op: "remove", path: "/spec/schedulingGates/0" }] },
    );
    await Promise.all([inHost("created"), inHost("gated"), podGone(host, namespace, "deleted")]);
    const claim = await eventually(() => west.find(persistentVolumeClaims, { namespace, name: "data" }));
    const [created, gated] = await Promise.all([inWest("created"), inWest("gated")]);
    await inWest("relabelled", ({ metadata }) => metadata?.labels?.later === "yes");
    await eventuallyPasses(async () => expect(await colorInWest()).toBe("after"));

    // The leader keeps running: it knows of a time that the restored host does not.
    await backup.restore();
    await controller.whenEnded();
    expect(controller.log()).toContain("lost the lease");
    await controller.start();
    await eventually(() => controller.log().includes("kept a delegate without a proxy"));

    await inHost("deleted", isEvicted);
    await eventuallyPasses(async () => expect(await colorInWest()).toBe("before"));
    await inWest("relabelled", ({ metadata }) => metadata?.labels?.later === undefined);
    expect((await inHost("stays")).metadata.uid).toBe(stays?.metadata.uid);
    expect((await inWest("stays")).metadata.uid).toBe(delegate.metadata.uid);
    const kept = await podOf(west, namespace, "created");
    expect([kept?.metadata.uid, kept?.metadata.deletionTimestamp]).toEqual([created.metadata.uid, undefined]);
    expect(await podOf(host, namespace, "created")).toBeUndefined();
    // The claim may hold data.
    await eventually(() => controller.log().includes("kept a claim that the host does not know"));
    expect(await host.find(persistentVolumeClaims, { namespace, name: "data" })).toBeUndefined();
    const keptClaim = await west.find(persistentVolumeClaims, { namespace, name: "data" });
    expect([keptClaim?.metadata.uid, keptClaim?.metadata.deletionTimestamp]).toEqual([claim.metadata.uid, undefined]);
    // The proxy has gates again. When they are removed, the proxy adopts the delegate.
    await host.patch(
      pods,
      { namespace, name: "gated" },
      { type: "json", body: [{ op: "remove", path: "/spec/schedulingGates/0" }] },
    );
    await inHost("gated");
    expect((await inWest("gated")).metadata.uid).toBe(gated.metadata.uid);

    await controller.stop();
    const annotations = { [LEADERLESS_ANNOTATION]: null };
    await host.patch(leases, LEASE, { type: "merge", body: { metadata: { annotations } } });
    await controller.start();
    await podGone(west, namespace, "created");
    await eventually(async () => (await west.find(persistentVolumeClaims, { namespace, name: "data" })) === undefined);
    await expectTrue();
  });
});

describe("a member that is restored from a backup of etcd", () => {
  test("replaces the delegates that it lost, removes those that are over, and leaves no pod with a wrong status", async () => {
    const { host, west } = clients();
    onTestFinished(() => memberCluster("west").mend());
    await setColor("before");
    await Promise.all([create("stays", withSettings), create("deleted"), create("ends", lasting)]);
    await Promise.all(["stays", "deleted", "ends"].map((name) => inHost(name)));
    const delegate = await inWest("stays");
    using backup = await backUp(memberCluster("west"));
    await age(west);
    const ended = { metadata: { annotations: { [KWOK_ANNOTATIONS.outcome]: "succeeded" } } };
    await host.patch(pods, { namespace, name: "ends" }, { type: "merge", body: ended });

    await host.delete(pods, { namespace, name: "deleted" });
    await create("created");
    await create("starting", { annotations: { [KWOK_ANNOTATIONS.outcome]: "pending" } });
    await setColor("after");
    await kubectl(hostCluster(), ["-n", namespace, "create", "-f", "-"], { input: JSON.stringify(deployment()) });
    await kubectl(hostCluster(), ["-n", namespace, "rollout", "status", "deployment", "web"]);
    await Promise.all([inHost("created"), podGone(host, namespace, "deleted"), inHost("ends", inPhase("Succeeded"))]);
    const starting = await inWest("starting", ({ spec }) => spec?.nodeName !== undefined);
    await inHost("starting", ({ spec }) => spec?.nodeName === "legation-west");
    await eventuallyPasses(async () => expect(await colorInWest()).toBe("after"));

    await backup.restore();

    await inHost("created", isEvicted);
    expect(await podOf(west, namespace, "created")).toBeUndefined();
    await podGone(west, namespace, "deleted");
    // The pod had not started, and has no controller.
    await inWest(
      "starting",
      ({ metadata, spec }) => metadata.uid !== starting.metadata.uid && spec?.nodeName !== undefined,
    );
    await eventuallyPasses(async () => expect(await colorInWest()).toBe("after"));
    await kubectl(hostCluster(), ["-n", namespace, "rollout", "status", "deployment", "web"]);
    expect((await inWest("stays")).metadata.uid).toBe(delegate.metadata.uid);
    // A pod that has ended does not run again.
    await podGone(west, namespace, "ends");
    expect((await podOf(host, namespace, "ends"))?.status?.phase).toBe("Succeeded");
    await expectTrue();
    // The watches work again on both sides.
    await create("later");
    await eventuallyPasses(async () => {
      const fieldSelector = "involvedObject.name=later,reason=Scheduled";
      expect((await host.list(events, { namespace, fieldSelector })).items).toHaveLength(1);
    });
    await label(host, "stays", "yes");
    await inWest("stays", ({ metadata }) => metadata?.labels?.later === "yes");
    await host.delete(pods, { namespace, name: "stays" });
    await Promise.all([podGone(host, namespace, "stays"), podGone(west, namespace, "stays")]);
  });
});

// Until the test ends it.
const lasting = { annotations: { [KWOK_ANNOTATIONS.outcome]: "running" } };

/** Returns a Deployment of two pods in west. */
function deployment(): object {
  const labels = { app: "web" };
  const annotations = { [CLUSTERS_ANNOTATION]: "west" };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "work:1" }] } },
    },
  };
}
