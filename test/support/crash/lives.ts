import { CLUSTERS_ANNOTATION, DELEGATE_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { events, pods } from "../../../src/kube/resources.ts";
import { conditionOf, unschedulableMessage } from "../../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { replicated, template } from "../builders/workload.ts";
import { apiRequest } from "../clusters/api-request.ts";
import { createKwokNodes } from "../clusters/nodes.ts";
import { KWOK_ANNOTATIONS } from "../clusters/stages.ts";
import { type DelegatedPodParts, delegatedPod } from "../delegated/pods.ts";
import type { Clients } from "../harness/clients.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { kubectl } from "../harness/kubectl.ts";
import { inPhase, podOf, podThat } from "../harness/pods-of.ts";
import { forbidPods } from "../harness/refusals.ts";
import { scheduleTimeout } from "../harness/schedule-timeout.ts";
import { eventually } from "../harness/wait.ts";
import { createIn, deleteFrom } from "../harness/workloads.ts";
import type { GatedLegation } from "../write-gate/gated-legation.ts";

/** Name of the pod that lives. */
export const NAME = "one";
/** Deadline of a life, with restarts of the controller in between. */
export const patient = { timeoutMs: 150_000 };

/** The place of a pod. */
export interface Scene {
  readonly clients: Clients;
  readonly namespace: string;
  /** Duration after which the delegate ends, such as `5s`. */
  readonly endsAfter?: string | undefined;
  /** A write that is awaited from now on counts. */
  readonly arm: () => void;
  readonly trap: GatedLegation["trap"];
  readonly onFinished: (cleanUp: () => Promise<void>) => void;
}

/** Plays the pod's author and member until its deletion is requested. */
export interface Life {
  /** Name of the life in the test's name. */
  readonly title: string;
  readonly live: (scene: Scene) => Promise<void>;
  /** Name of the pod; default `NAME`. */
  readonly name?: string;
  /** Every phase that it may be seen in, in this order. */
  readonly phases: readonly string[];
  /** The number of consecutive pods of the name on the host; default 1. */
  readonly proxies?: number;
  readonly delegates: number;
}

// A controller that has just begun does not know which delegates wait for room, and gives a member's scheduler its time.
const SCHEDULE_SECONDS = 2;

type MemberName = "west" | "east";

const LARGE = { resources: { requests: { cpu: "500" } } };
const GATE = "example.com/ready";
const STOPS_SLOWLY = { [KWOK_ANNOTATIONS.stopsAfter]: "2500ms" };
const running = inPhase("Running");

/** A pod that ends by itself and is deleted. */
export const endsByItself: Life = {
  title: "ends by itself and is deleted",
  live: async (scene) => {
    scene.arm();
    const { endsAfter = "500ms" } = scene;
    await create(scene, {
      annotations: { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: endsAfter },
    });
    await proxyThat(
      scene,
      (proxy) => inPhase("Succeeded")(proxy) && proxy.status?.containerStatuses?.[0]?.state?.terminated?.exitCode === 0,
    );
    await remove(scene);
  },
  phases: ["Pending", "Running", "Succeeded"],
  delegates: 1,
};

/** A pod that is deleted while it runs. */
export const isDeleted: Life = {
  title: "is deleted while it runs",
  live: async (scene) => {
    scene.arm();
    await create(scene, { annotations: { [KWOK_ANNOTATIONS.stopsAfter]: "500ms" } });
    await proxyThat(scene, running);
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 1,
};

/** A pod that finds no member and is deleted. */
export const findsNoMember: Life = {
  title: "finds no member and is deleted",
  live: async (scene) => {
    scene.arm();
    await create(scene, { annotations: { [CLUSTERS_ANNOTATION]: "atlantis" } });
    await proxyThat(scene, (proxy) => whyNotPlaced(proxy) !== undefined);
    await eventually(() => isTold(scene, "NotPlaced"), patient);
    await remove(scene);
  },
  // The pod garbage collector of Kubernetes fails what is being deleted and has no node.
  phases: ["Pending", "Failed"],
  delegates: 0,
};

/** A pod that moves to a member that has a node. */
export const moves: Life = {
  title: "moves to a member that has a node",
  live: async (scene) => {
    scene.onFinished(await scheduleTimeout(scene.clients.host, SCHEDULE_SECONDS));
    scene.arm();
    await create(scene, { spec: { containers: [{ name: "main", image: "work:1", ...LARGE }] } });
    const holder = await holderOf(scene, (delegate) => unschedulableMessage(delegate) !== undefined);
    const other = memberCluster(holder === "west" ? "east" : "west");
    await createKwokNodes(other, scene.namespace, [{ count: 1, cpu: "1000" }]);
    scene.onFinished(async () => {
      await apiRequest(other, "DELETE", `/api/v1/nodes/${scene.namespace}-node-1`);
    });
    await proxyThat(scene, (proxy) => running(proxy) && proxy.spec?.nodeName === `legation-${other.name}`);
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 2,
};

/** A pod that is refused by the first member. */
export const isRefused: Life = {
  title: "is refused by the first member",
  live: async (scene) => {
    const { namespace, trap } = scene;
    scene.arm();
    trap("member", {
      when: "late",
      namespace: `${namespace} quota`,
      catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
      onCaught: (member) => forbidPods(memberCluster(member === "west" ? "west" : "east"), namespace),
    });
    await create(scene);
    await proxyThat(scene, running);
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 1,
};

/** A pod that goes from its member before it starts. */
export const isMadeAnew: Life = {
  title: "goes from its member before it starts",
  live: async (scene) => {
    const { clients, namespace } = scene;
    await create(scene, { annotations: { [KWOK_ANNOTATIONS.outcome]: "pending" } });
    const holder = await holderOf(scene, ({ spec }) => spec?.nodeName !== undefined);
    const first = recordedBy(await proxyThat(scene, (proxy) => recordedBy(proxy) !== undefined));
    scene.arm();
    await clients[holder].delete(pods, { namespace, name: NAME }, { gracePeriodSeconds: 0 });
    await proxyThat(scene, (proxy) => recordedBy(proxy) !== first);
    await change(scene, { metadata: { annotations: { [KWOK_ANNOTATIONS.outcome]: "running" } } });
    await proxyThat(scene, running);
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 2,
};

/** A pod that is changed in every way while it runs. */
export const isChanged: Life = {
  title: "is changed in every way while it runs",
  live: async (scene) => {
    const { clients, namespace } = scene;
    const amounts = (cpu: string) => ({ resources: { requests: { cpu }, limits: { cpu } } });
    const containers = [{ name: "main", image: "work:1", ...amounts("100m") }];
    await create(scene, { spec: { containers, readinessGates: [{ conditionType: GATE }] } });
    const holder = await holderOf(scene, running);
    const [shown] = (await proxyThat(scene, running)).status?.containerStatuses ?? [];
    // The status of a kubelet that supports resize.
    const body = { status: { containerStatuses: [{ ...shown, ...amounts("100m") }] } };
    const subresource = { subresource: "status" };
    await clients[holder].patch(pods, { namespace, name: NAME }, { type: "strategic", body }, subresource);
    await proxyThat(scene, ({ status }) => status?.containerStatuses?.[0]?.resources?.limits?.cpu === "100m");
    scene.arm();
    // kwok has opened it, too, maybe in the same second.
    const gate = { type: GATE, status: "True", reason: "Registered", lastTransitionTime: new Date().toISOString() };
    await change(scene, { status: { conditions: [gate] } }, "status");
    await change(scene, { spec: { containers: [{ name: "main", ...amounts("200m") }] } }, "resize");
    await change(scene, { spec: { ephemeralContainers: [{ name: "debug", image: "tool:1" }] } }, "ephemeralcontainers");
    await change(scene, { metadata: { labels: { changed: "yes" } } });
    await podThat(
      clients[holder],
      namespace,
      NAME,
      (delegate) =>
        conditionOf(delegate, GATE)?.reason === "Registered" &&
        delegate.spec?.containers[0]?.resources?.limits?.cpu === "200m" &&
        delegate.spec.ephemeralContainers?.[0]?.name === "debug" &&
        delegate.metadata.labels?.changed === "yes",
      patient,
    );
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 1,
};

/** A pod that is lost in its member. */
export const isLost: Life = {
  title: "is lost in its member",
  live: async (scene) => {
    const { clients, namespace } = scene;
    await create(scene);
    const holder = await holderOf(scene, running);
    await proxyThat(scene, running);
    scene.arm();
    await clients[holder].delete(pods, { namespace, name: NAME }, { gracePeriodSeconds: 0 });
    await proxyThat(
      scene,
      (proxy) => inPhase("Failed")(proxy) && conditionOf(proxy, "DisruptionTarget")?.status === "True",
    );
    await remove(scene);
  },
  phases: ["Pending", "Running", "Failed"],
  delegates: 1,
};

/** A pod that goes from its member and is replaced. */
export const isEvicted: Life = {
  title: "goes from its member and is replaced",
  live: async (scene) => {
    const { clients, namespace } = scene;
    const { host } = clients;
    const annotations = { [DELEGATE_ANNOTATION]: "true", ...STOPS_SLOWLY };
    const set = [replicated("StatefulSet", 1, { serviceName: "web", template: template({}, annotations) })];
    const [name, soon] = ["web-0", { gracePeriodSeconds: 0 }];
    await createIn(host, namespace, set);
    const holder = await holderOf(scene, running, name);
    const first = await podThat(host, namespace, name, running, patient);
    scene.arm();
    await clients[holder].delete(pods, { namespace, name });
    const isNext = (proxy: Stored<Pod>): boolean => proxy.metadata.uid !== first.metadata.uid && running(proxy);
    await podThat(host, namespace, name, isNext, patient);
    await deleteFrom(host, namespace, set);
    await host.delete(pods, { namespace, name }, soon);
  },
  name: "web-0",
  phases: ["Pending", "Running", "Failed"],
  proxies: 2,
  delegates: 2,
};

/** A pod that is deleted by force while it runs. */
export const isForced: Life = {
  title: "is deleted by force while it runs",
  live: async (scene) => {
    const { clients, namespace } = scene;
    await create(scene);
    await proxyThat(scene, running);
    scene.arm();
    await clients.host.delete(pods, { namespace, name: NAME }, { gracePeriodSeconds: 0 });
  },
  phases: ["Pending", "Running"],
  delegates: 1,
};

/** A pod that loses its finalizer and is deleted by force, which leaves its delegate behind. */
export const leavesItsDelegate: Life = {
  title: "loses its finalizer and is deleted by force",
  live: async (scene) => {
    const { clients, namespace } = scene;
    await create(scene);
    await proxyThat(scene, running);
    // Only this account may remove the finalizer (policy legation-marks).
    const controller = "--as=system:serviceaccount:legation-system:legation-controller";
    const patch = ["patch", "pod", NAME, "--type=merge", "-p", JSON.stringify({ metadata: { finalizers: null } })];
    await kubectl(hostCluster(), ["-n", namespace, ...patch, controller]);
    scene.arm();
    await clients.host.delete(pods, { namespace, name: NAME }, { gracePeriodSeconds: 0 });
  },
  phases: ["Pending", "Running"],
  delegates: 1,
};

async function create({ clients: { host }, namespace }: Scene, parts: DelegatedPodParts = {}): Promise<void> {
  await host.create(pods, delegatedPod(namespace, NAME, parts));
}

async function change({ clients: { host }, namespace }: Scene, body: object, subresource?: string): Promise<void> {
  const options = subresource === undefined ? {} : { subresource };
  await host.patch(pods, { namespace, name: NAME }, { type: "strategic", body }, options);
}

async function remove({ clients: { host }, namespace }: Scene): Promise<void> {
  await host.delete(pods, { namespace, name: NAME });
}

function proxyThat({ clients, namespace }: Scene, holds: (proxy: Stored<Pod>) => boolean): Promise<Stored<Pod>> {
  return podThat(clients.host, namespace, NAME, holds, patient);
}

/** Waits for a delegate that meets `holds`, and returns its owner. */
function holderOf(
  { clients, namespace }: Scene,
  holds: (delegate: Stored<Pod>) => boolean,
  name: string = NAME,
): Promise<MemberName> {
  return eventually(
    async () => {
      for (const member of ["west", "east"] as const) {
        const delegate = await podOf(clients[member], namespace, name);
        if (delegate !== undefined && holds(delegate)) return member;
      }
      return undefined;
    },
    { ...patient, what: "a delegate" },
  );
}

function recordedBy({ metadata }: Pod): string | undefined {
  return metadata?.annotations?.[DELEGATE_UID_ANNOTATION];
}

async function isTold({ clients, namespace }: Scene, wanted: string): Promise<boolean> {
  const { items } = await clients.host.list(events, { namespace });
  return items.some(({ involvedObject, reason }) => involvedObject.name === NAME && reason === wanted);
}
