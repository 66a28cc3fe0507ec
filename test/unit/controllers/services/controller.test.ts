import { describe, expect, onTestFinished, test } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { ServiceController } from "../../../../src/controllers/services/controller.ts";
import { JoinedNetworks } from "../../../../src/controllers/services/joined-networks.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { SERVICES, type ServiceObject } from "../../../../src/copies/services.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { listing, writing } from "../../../support/builders/answers.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { serving, servingExports } from "../../../support/builders/discovery.ts";
import { delegates, member } from "../../../support/builders/member.ts";
import { endedStatus, proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { puttingInto, surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

type Objects = readonly Stored<ServiceObject>[];

interface Clusters {
  readonly services?: Objects;
  readonly slices?: Objects;
  /** Copies of Services in `west`. */
  readonly copies?: Objects;
  /** Copies of EndpointSlices in `west`. */
  readonly sliceCopies?: Objects;
  /** The host's ServiceExports. */
  readonly exports?: Objects;
  /** How long the host takes to list Services; ms. */
  readonly listMs?: number;
  /** No pod of the namespace is on the host. */
  readonly withoutPods?: boolean;
  /** Live delegates of the namespace in `west`. */
  readonly live?: number;
  /** The host's pods are known. */
  readonly synced?: boolean;
}

const web = service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
const db = service("db", { ports: [{ port: 5432 }] });
const slice = sliceOf("db");

function service(name: string, spec: ServiceObject["spec"] = {}, namespace = "team"): Stored<ServiceObject> {
  return { metadata: { name, namespace, uid: `uid of ${name}`, resourceVersion: "7" }, spec };
}

function sliceOf(name: string): Stored<ServiceObject> {
  const labels = { "kubernetes.io/service-name": name };
  const metadata = { name: `${name}-1`, namespace: "team", uid: `slice of ${name}`, resourceVersion: "7", labels };
  return { metadata, addressType: "IPv4", endpoints: [{ addresses: ["192.0.2.7"] }], ports: [] };
}

function copyOf(source: Stored<ServiceObject>, metadata: object = {}) {
  const copy = toCopy(SERVICES.Service, source, HOST);
  const { name } = source.metadata;
  return { ...copy, metadata: { ...copy.metadata, name, uid: `copy of ${name}`, resourceVersion: "3", ...metadata } };
}

/** Returns a pod of `web` that is to go to `west`, and the writes there. */
async function going({
  services = [],
  slices = [],
  copies = [],
  sliceCopies = [],
  exports = [],
  listMs = 0,
  withoutPods = false,
  live = 0,
  synced = true,
}: Clusters) {
  const clock = new FakeClock();
  const writes: string[] = [];
  const clientWith = (objects: Readonly<Record<string, Objects>>, servicesMs = 0): ClusterClient => {
    const list = listing((plural) => objects[plural] ?? [], "7");
    return quietClient([], {
      list: async (resource, options) => {
        const isSlow = resource.plural === "services" && servicesMs > 0;
        if (isSlow) await new Promise((end) => clock.after(servicesMs, () => end({})));
        return list(resource, options);
      },
      raw: exports.length > 0 ? servingExports("v1beta1") : serving(),
      ...writing(({ verb, plural, name }) => {
        writes.push(`${verb} ${plural} ${name}`);
        return { metadata: { uid: "new-uid", resourceVersion: "8" } };
      }),
    });
  };
  const proxies = new Store<Pod>();
  proxies.synced = synced;
  const of = member("west", clientWith({ services: copies, endpointslices: sliceCopies }), {
    candidate: () => candidateNamed("west"),
    delegates: delegates({ list: () => [], liveIn: () => live }),
  });
  const host = clientWith({ services, endpointslices: slices, serviceexports: exports }, listMs);
  const around = { ...surroundings([of], clock), host };
  const networks = new JoinedNetworks({ ...around, network: undefined });
  const controller = new ServiceController({
    ...around,
    recorder: { record: () => {} },
    proxies,
    networks,
    mcs: false,
  });
  onTestFinished(() => controller.stop());
  controller.onMembers();
  const put = puttingInto(proxies, controller, clock);
  const proxy = proxyPod({ metadata: { namespace: "team", labels: { app: "web" } } });
  if (withoutPods) await clock.advance(30_000);
  else await put(proxy);
  return {
    clock,
    writes,
    proxy,
    put,
    prepare: async (uid = proxy.metadata.uid): Promise<boolean> => {
      const isThere = controller.prepare(objectKey(proxy.metadata), uid, "west");
      await clock.advance(10);
      return isThere;
    },
  };
}

describe("a member that gets a pod", () => {
  const imported = { ownerReferences: [{ apiVersion: "v1", kind: "ServiceImport", name: "x", uid: "x" }] };
  const other = service("other", { selector: { app: "other" } });
  test.each<[string, Clusters, string[]]>([
    [
      "gets the Services that have it as an endpoint, and those without a selector",
      { services: [web, other, db] },
      ["web", "db"],
    ],
    [
      "gets no Service that was imported from another cluster",
      { services: [{ ...db, metadata: { ...db.metadata, ...imported } }] },
      [],
    ],
  ])("%s", async (_, clusters, expected) => {
    const { writes, prepare } = await going(clusters);
    await prepare();
    expect(writes).toEqual(expected.map((name) => `create services ${name}`));
  });

  test.each<[string, Clusters, string[]]>([
    [
      "gets endpoints of the host where it has the Service's copy",
      { copies: [copyOf(db)] },
      ["create endpointslices db-1"],
    ],
    ["gets no endpoints for its own Service", { copies: [service("db")] }, ["create services db"]],
    ["gets no endpoints before the Service", {}, ["create services db"]],
  ])("%s", async (_, clusters, expected) => {
    const { writes, prepare } = await going({ services: [db], slices: [slice], ...clusters });
    await prepare();
    expect(writes).toEqual(expected);
  });

  test("gets no endpoints for a Service whose endpoints are pods", async () => {
    const { writes, prepare } = await going({ services: [web], slices: [sliceOf("web")], copies: [copyOf(web)] });
    await prepare();
    expect(writes).toEqual([]);
  });

  test("gets nothing for an earlier pod of that name", async () => {
    const { writes, prepare } = await going({ services: [web] });
    expect(await prepare("earlier")).toBe(true);
    expect(writes).toEqual([]);
  });
});

describe("a pod", () => {
  test.each<[string, Objects, boolean]>([
    ["starts with its Services", [copyOf(web)], true],
    ["does not start before they are there", [], false],
    [
      "does not start with one that is being deleted",
      [copyOf(web, { deletionTimestamp: "2024-01-01T00:00:00Z" })],
      false,
    ],
  ])("%s", async (_, copies, expected) => {
    const { prepare } = await going({ services: [web], copies });
    expect(await prepare()).toBe(expected);
  });

  test("starts without them after five seconds", async () => {
    const { clock, prepare } = await going({ services: [web] });
    expect(await prepare()).toBe(false);
    await clock.advance(5_000);
    expect(await prepare()).toBe(true);
  });
});

describe("a Service's copy", () => {
  const given = { services: [web], copies: [copyOf(web)] };
  test.each<[string, Clusters, string[]]>([
    ["is deleted some time after the last pod has ended", given, ["delete services web"]],
    ["stays while a delegate runs there", { ...given, live: 1 }, []],
    ["stays before the pods there are known", { ...given, synced: false }, []],
  ])("%s", async (_, clusters, expected) => {
    const { clock, writes, proxy, put, prepare } = await going(clusters);
    expect(await prepare()).toBe(true);
    await put({ ...proxy, status: endedStatus(0) });
    await clock.advance(30_000);
    expect([...new Set(writes)]).toEqual(expected);
  });
});

describe("a whole Service", () => {
  const label = { "legation.dev/whole": "true" };
  const deleted = { deletionTimestamp: "2024-01-01T00:00:00Z", finalizers: ["legation.dev/whole"] };
  const whole = { ...db, metadata: { ...db.metadata, labels: label } };
  const ending = { ...whole, metadata: { ...whole.metadata, ...deleted } };
  const copy = copyOf(whole);
  const wholeCopy = { ...copy, metadata: { ...copy.metadata, labels: { ...copy.metadata.labels, ...label } } };
  const sliceCopy = { ...toCopy(SERVICES.EndpointSlice, slice, HOST), ...copyMetadataOf(slice) };

  test.each<[string, Clusters, string[]]>([
    [
      "has its endpoints in the member without any pod",
      { services: [whole], slices: [slice], copies: [wholeCopy] },
      ["create endpointslices db-1"],
    ],
    ["has none there without a copy", { services: [whole], slices: [slice] }, []],
    [
      "keeps its endpoints while it is being deleted, since its copy may stay",
      { services: [ending], slices: [slice], copies: [wholeCopy], sliceCopies: [sliceCopy] },
      [],
    ],
    ["gets no further ones then", { services: [ending], slices: [slice], copies: [wholeCopy] }, []],
    [
      "leaves no endpoints behind in a member without its copy",
      { services: [], slices: [slice], sliceCopies: [sliceCopy] },
      ["delete endpointslices db-1"],
    ],
  ])("%s", async (_, clusters, expected) => {
    const { writes } = await going({ ...clusters, withoutPods: true });
    expect([...new Set(writes)]).toEqual(expected);
  });

  test.each([0, 5_000])(
    "is exported from its members without any pod, if the host lists Services within %d ms",
    async (listMs) => {
      const exports = [{ metadata: { ...db.metadata, uid: "uid of the export" } }];
      const { writes } = await going({ services: [whole], copies: [wholeCopy], exports, listMs, withoutPods: true });
      expect(writes).toEqual(["patch services db", "create serviceexports db"]);
    },
  );

  test("is not copied for pods any more while it is being deleted", async () => {
    const { writes, prepare } = await going({ services: [ending] });
    await prepare();
    expect(writes).toEqual([]);
  });
});

/** Returns the metadata of a copied slice in the member. */
function copyMetadataOf(source: Stored<ServiceObject>): Stored<ServiceObject> {
  const { metadata = {} } = toCopy(SERVICES.EndpointSlice, source, HOST);
  return { metadata: { ...metadata, name: source.metadata.name, uid: "slice copy", resourceVersion: "3" } };
}
