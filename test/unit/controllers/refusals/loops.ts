import { CLUSTER_FINALIZER } from "../../../../src/api/keys.ts";
import type { KubeObject, ServiceExport, Stored } from "../../../../src/api/kubernetes.ts";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { HomeApiController } from "../../../../src/controllers/home-api/controller.ts";
import { ExportStatus } from "../../../../src/controllers/services/export-status.ts";
import { VirtualNodeController } from "../../../../src/controllers/virtual-node/controller.ts";
import { toExport } from "../../../../src/copies/services.ts";
import type { ClusterClient, WatchOptions } from "../../../../src/kube/client.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";
import { HOST, log, type Outcome, type Site } from "./sites.ts";

/** A client whose watches tell nothing, and whose lists find these. */
function quietClient(items: readonly KubeObject[], writes: Partial<ClusterClient>): ClusterClient {
  return fakeClient({
    list: (async () => ({ items, resourceVersion: "1", size: 0 })) as never,
    watch: async function* (_resource: unknown, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } as never,
    ...writes,
  });
}

/** Lets a controller try, and try again if it will, and says what it has made of the error. */
async function outcomeOf(
  clock: FakeClock,
  controller: { stop(): Promise<void> },
  { attempts, isRefused }: { readonly attempts: () => number; readonly isRefused: () => boolean },
): Promise<Outcome> {
  // Less than anything waits for that is left alone, and more than the first few pauses.
  for (let step = 0; step < 10; step += 1) await clock.advance(100);
  await controller.stop();
  if (attempts() === 0) throw new Error("nothing was written");
  if (isRefused()) return "refused";
  return attempts() > 1 ? "tried again" : "settled";
}

/** What members say of an export, told on the host's. */
export const anExportsStatus: Site = async (error) => {
  const clock = new FakeClock();
  const conditions = [{ type: "Valid", status: "True", reason: "Fine", message: "it is" }];
  const exported: Stored<ServiceExport> = {
    metadata: { namespace: "team", name: "web", uid: "uid-1", resourceVersion: "1" },
  };
  const copy = { metadata: { ...exported.metadata, uid: "copy" } };
  const made = { ...toExport(copy, exported, HOST), status: { conditions } };
  let attempts = 0;
  const fail = (async () => {
    attempts += 1;
    throw error;
  }) as never;
  const status = new ExportStatus({
    host: fakeClient({ patch: fail }),
    hostId: HOST.id,
    exportOf: () => ({ state: "present", object: exported }),
    hasPods: () => true,
    clock,
    log,
  });
  const there = { ...made, metadata: { ...made.metadata, uid: "export", resourceVersion: "1" } };
  const west = { name: "west", client: quietClient([there], {}), memory: new ByteBudget(1e6), watches: new Set() };
  status.listenTo(west as never);
  return outcomeOf(clock, status, { attempts: () => attempts, isRefused: () => false });
};

/** The Secret with a delegate's tokens, in its member. */
export const aSecretOfTokens: Site = async (error) => {
  const clock = new FakeClock();
  const projected = { sources: [{ serviceAccountToken: { path: "token" } }] };
  const proxy = proxyPod({ spec: { nodeName: "legation-west", volumes: [{ name: "kube-api-access-1", projected }] } });
  const access = { mode: "host", address: { host: "10.0.0.1", port: "443" } } as const;
  const { metadata, spec } = toDelegate(proxy, HOST, access);
  const delegate = pod({ uid: "delegate-uid", metadata: { ...metadata, name: "web-0" }, ...(spec && { spec }) });
  let attempts = 0;
  const fail = (async () => {
    attempts += 1;
    throw error;
  }) as never;
  const west = {
    name: "west",
    client: quietClient([], { create: fail }),
    memory: new ByteBudget(1e6),
    watches: new Set(),
    probed: { reachable: true },
    delegates: { list: () => [delegate], get: () => delegate },
    noteFailure: () => {},
  };
  const told: string[] = [];
  const token = { token: "t", expirationTimestamp: "2030-01-01T00:00:00Z" };
  const host = fakeClient({
    createSubresource: async () => ({ spec: { expirationSeconds: 3600 }, status: token }),
  });
  const authority = Buffer.from("-----BEGIN CERTIFICATE-----").toString("base64");
  const homeAPI = { server: "https://10.0.0.1:443", certificateAuthorityData: authority };
  const controller = new HomeApiController({
    host,
    identity: HOST,
    registry: {
      members: () => [west],
      member: () => west,
      holders: () => [west],
      cluster: () => ({ metadata: { name: "west" }, spec: { homeAPI } }),
    },
    authorEvents: { tell: (_about: object, { reason }: { reason: string }) => told.push(reason) },
    server: undefined,
    proxies: () => ({ get: () => proxy }),
    modeOf: () => undefined,
    onChange: () => {},
    clock,
    log,
  } as never);
  controller.onMembers();
  await clock.advance(0);
  controller.enqueue(objectKey(proxy.metadata));
  return outcomeOf(clock, controller, { attempts: () => attempts, isRefused: () => told.includes("NoToken") });
};

/** The virtual node of a member, which is made. */
export const aVirtualNode: Site = async (error) => {
  const clock = new FakeClock();
  const cluster = {
    metadata: { name: "west", uid: "uid-1", resourceVersion: "1", generation: 1, finalizers: [CLUSTER_FINALIZER] },
    spec: { credentialsSecret: { name: "west" } },
  };
  const west = {
    name: "west",
    settling: false,
    read: true,
    nodesRead: true,
    probed: { reachable: true },
    unreadable: {},
    capacity: { nodes: 0, capacity: {}, allocatable: {}, features: [] },
    setVirtualNode: () => false,
  };
  let attempts = 0;
  const told: string[] = [];
  const host = quietClient([], {
    create: (async () => {
      attempts += 1;
      throw error;
    }) as never,
    patch: (async (_resource: object, _ref: object, { body }: { body: object }) => {
      told.push(JSON.stringify(body));
      return cluster;
    }) as never,
  });
  const controller = new VirtualNodeController({
    host,
    registry: {
      member: () => west,
      members: () => [west],
      cluster: () => cluster,
      clusters: () => [cluster],
      problem: () => undefined,
      server: () => undefined,
    },
    boundTo: () => 0,
    waitingIn: () => 0,
    heldIn: () => 0,
    onNodeSpec: () => {},
    onReady: () => {},
    clock,
    log,
  } as never);
  const started = controller.start(new AbortController().signal);
  await clock.advance(0);
  await started;
  const isRefused = (): boolean => told.some((body) => body.includes("NodeRefused") && body.includes(error.detail));
  return outcomeOf(clock, controller, { attempts: () => attempts, isRefused });
};
