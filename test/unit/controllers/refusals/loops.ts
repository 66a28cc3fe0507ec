import { CLUSTER_FINALIZER, EXPORTED_ANNOTATION } from "../../../../src/api/keys.ts";
import type { ServiceExport, Stored } from "../../../../src/api/kubernetes.ts";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES } from "../../../../src/api/shards.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { ExportController } from "../../../../src/controllers/services/exports/controller.ts";
import { ExportStatus } from "../../../../src/controllers/services/exports/status.ts";
import { VirtualNodeController } from "../../../../src/controllers/virtual-node/controller.ts";
import { toExport } from "../../../../src/copies/services.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { writing } from "../../../support/builders/answers.ts";
import { servingExports } from "../../../support/builders/discovery.ts";
import { cluster, member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { registryOf, surroundings } from "../fleet.ts";
import { homeApiOf, memberWith, podWithTokens } from "../home-api/with-tokens.ts";
import { quietClient } from "../quiet-client.ts";
import { HOST, log, type Outcome, type Site } from "./sites.ts";

/** Lets a controller try and retry, and returns what it has made of the error. */
async function outcomeOf(
  clock: FakeClock,
  controller: { stop(): Promise<void> },
  { attempts, isRefused }: { readonly attempts: () => number; readonly isRefused: () => boolean },
): Promise<Outcome> {
  // Less than any hold, and more than the first pauses.
  for (let step = 0; step < 10; step += 1) await clock.advance(100);
  await controller.stop();
  if (attempts() === 0) throw new Error("nothing was written");
  if (isRefused()) return "refused";
  return attempts() > 1 ? "tried again" : "settled";
}

/** A ServiceExport that is created beside a copy. */
export const aNewExport: Site = async (error) => {
  const clock = new FakeClock();
  const ref = { namespace: "team", name: "web" };
  const exported = { metadata: { ...ref, uid: "uid-1", resourceVersion: "1" } };
  const copy = { metadata: { ...exported.metadata, annotations: { [EXPORTED_ANNOTATION]: "true" } } };
  let attempts = 0;
  const fail = async () => {
    attempts += 1;
    throw error;
  };
  const told: unknown[] = [];
  const raw = servingExports("v1beta1");
  const controller = new ExportController({
    ...surroundings([member("west", fakeClient({ create: fail, raw }))], clock),
    host: quietClient([exported], { raw }),
    recorder: { record: (_about, news) => told.push(news) },
    proxies: new Store(),
    counts: () => true,
    exportsItself: () => false,
    copier: {
      copies: { of: () => copy, in: () => [{ kind: "Service", ...ref }] },
      standing: () => ({ exists: true, stays: true, ofSource: true, keptForOthers: false }),
      sources: { of: () => ({ state: "present", object: exported }) },
    },
  });
  controller.need();
  return outcomeOf(clock, controller, { attempts: () => attempts, isRefused: () => told.length > 0 });
};

/** The conditions of members' ServiceExports on the host's. */
export const anExportsStatus: Site = async (error) => {
  const clock = new FakeClock();
  const conditions = [{ type: "Valid", status: "True", reason: "Fine", message: "it is" }];
  const exported: Stored<ServiceExport> = {
    metadata: { namespace: "team", name: "web", uid: "uid-1", resourceVersion: "1" },
  };
  const copy = { metadata: { ...exported.metadata, uid: "copy" } };
  const made = { ...toExport(copy, exported, HOST, "multicluster.x-k8s.io/v1beta1"), status: { conditions } };
  let attempts = 0;
  const fail = async () => {
    attempts += 1;
    throw error;
  };
  const status = new ExportStatus({
    host: fakeClient({ patch: fail }),
    hostId: HOST.id,
    exportOf: () => ({ state: "present", object: exported }),
    counts: () => true,
    clock,
    log,
  });
  const there = { ...made, metadata: { ...made.metadata, uid: "export", resourceVersion: "1" } };
  status.listenTo(member("west", quietClient([there], { raw: servingExports("v1beta1") })));
  return outcomeOf(clock, status, { attempts: () => attempts, isRefused: () => false });
};

/** The Secret with a delegate's tokens, in its member. */
export const aSecretOfTokens: Site = async (error) => {
  const clock = new FakeClock();
  const { proxy, delegate } = podWithTokens(HOST);
  let attempts = 0;
  const fail = async () => {
    attempts += 1;
    throw error;
  };
  const west = memberWith(delegate, quietClient([], { create: fail }));
  const told: string[] = [];
  const token = { token: "t", expirationTimestamp: "2030-01-01T00:00:00Z" };
  const host = fakeClient({
    createSubresource: async () => ({ spec: { expirationSeconds: 3600 }, status: token }),
  });
  const events = new Events<ControllerEvents>();
  const controller = homeApiOf({
    events,
    host,
    identity: HOST,
    west,
    proxy,
    tell: ({ reason }) => told.push(reason),
    clock,
    log,
  });
  events.emit("cluster", "west");
  await clock.advance(0);
  events.emit("bound", "west", objectKey(proxy.metadata));
  return outcomeOf(clock, controller, { attempts: () => attempts, isRefused: () => told.includes("NoToken") });
};

/** The virtual node of a member, which is created. */
export const aVirtualNode: Site = async (error) => {
  const clock = new FakeClock();
  const joined = cluster("west", { metadata: { generation: 1, finalizers: [CLUSTER_FINALIZER] } });
  const west = member("west", fakeClient({}), {
    cluster: joined,
    syncing: false,
    nodesRead: true,
    probed: { reachable: true },
    unreadable: {},
    nodeTotals: { nodes: 0, capacity: {}, allocatable: {}, largestNode: {}, features: [] },
    setVirtualNode: () => false,
  });
  let attempts = 0;
  const told: string[] = [];
  const host = quietClient([], {
    ...writing(({ verb, body }) => {
      if (verb === "create") {
        attempts += 1;
        throw error;
      }
      told.push(JSON.stringify(body));
      return joined;
    }),
  });
  const controller = new VirtualNodeController({
    host,
    registry: registryOf([west]),
    events: new Events(),
    proxies: { synced: true, countByIndex: () => 0 },
    shard: ALL_NAMESPACES,
    waitingIn: () => 0,
    kept: { countIn: () => 0 },
    networkProblem: () => undefined,
    clock,
    log,
  });
  const started = controller.start(new AbortController().signal);
  await clock.advance(0);
  await started;
  const isRefused = (): boolean => told.some((body) => body.includes("NodeRefused") && body.includes(error.detail));
  return outcomeOf(clock, controller, { attempts: () => attempts, isRefused });
};
