import { expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { virtualNodeName, WHOLE_KEY } from "../../../../src/api/keys.ts";
import type { EndpointSlice, Pod, Service, Stored } from "../../../../src/api/kubernetes.ts";
import { type ServiceFacts, serviceStatus } from "../../../../src/cli/explain/service.ts";
import { serviceText } from "../../../../src/cli/status/whole-text.ts";
import { recordedSession } from "../session.ts";

const stored = (name: string): { uid: string; resourceVersion: string; name: string } => ({
  ...{ name, uid: `uid-${name}`, resourceVersion: "1" },
});

function cluster(name: string, network?: string): Stored<Cluster> {
  return {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: stored(name),
    spec: { credentialsSecret: { name }, ...(network === undefined ? {} : { network }) },
  };
}

function service(spec: Service["spec"] = {}, labels: Record<string, string> = {}): Stored<Service> {
  const selector = { app: "web" };
  return {
    metadata: { ...stored("web"), namespace: "shop", labels },
    spec: { selector, ports: [{ port: 80 }], ...spec },
  };
}

/** Endpoints by member, `""` for the host: whether each is ready, or ends and serves. */
function slice(
  addressType: string,
  there: Readonly<Record<string, readonly (boolean | "ending")[]>>,
): Stored<EndpointSlice> {
  const endpoints = Object.entries(there).flatMap(([member, all]) =>
    all.map((state, index) => ({
      addresses: ["192.0.2.1"],
      conditions: state === "ending" ? { ready: false, serving: true, terminating: true } : { ready: state },
      nodeName: member === "" ? "own-node" : virtualNodeName(member),
      targetRef: { kind: "Pod", name: `pod-${member}-${index}`, uid: `uid-${member}-${index}` },
    })),
  );
  return { metadata: stored("web-1"), addressType, ports: [], endpoints };
}

function pod(member: string): Stored<Pod> {
  return {
    metadata: { ...stored(`of-${member}`), namespace: "shop" },
    spec: { containers: [], nodeName: virtualNodeName(member) },
  };
}

function lines(facts: Partial<ServiceFacts>): string[] {
  const given: ServiceFacts = {
    ...{ service: service(), slices: [], targets: undefined, proxies: [], clusters: [], network: undefined, told: [] },
    ...facts,
  };
  return serviceText({ ...serviceStatus(given), hidden: undefined }, 0, recordedSession().terminal).split("\n");
}

const THERE = { "": [true], west: [true, false], east: [true] };

test("pods of one Service are reached in their own cluster and in those of the same network", () => {
  // A pod has an address of each family, and is one.
  const slices = [slice("IPv4", THERE), slice("IPv6", THERE)];
  const clusters = [
    cluster("west", "corp"),
    cluster("east", "corp"),
    cluster("north"),
    cluster("south", "corp"),
    cluster("far"),
  ];
  expect(lines({ slices, clusters, proxies: [pod("west"), pod("north"), pod("south")], network: "corp" })).toEqual([
    "Service shop/web: ClusterIP, 80/TCP; 3 of 4 endpoints ready",
    "FROM          NETWORK  READY  NOT READY  REACHES                                              NOT REACHED",
    "this cluster  corp     1      0          its own, east (joined), west (joined)",
    "east          corp     1      0          this cluster (joined), its own, west (joined)",
    "north         -        0      0          -                                                    this cluster, east, west: it has no pod of the Service and is in no network, so it has no Service of that name",
    "south         corp     0      0          this cluster (joined), east (joined), west (joined)",
    "west          corp     1      1          this cluster (joined), east (joined), its own",
  ]);
});

test("without a network each member has its own pods, and this cluster addresses that may lead nowhere", () => {
  const rows = lines({ slices: [slice("IPv4", THERE)], clusters: [cluster("west"), cluster("east")] });
  expect(rows.slice(2).map((row) => row.replaceAll(/ {2,}/g, " | "))).toEqual([
    "this cluster | - | 1 | 0 | its own | east, west: it has their addresses, which lead there only if the pod networks are joined",
    "east | - | 1 | 0 | its own | this cluster, west: the two are in no network together (spec.network)",
    "west | - | 1 | 1 | its own | this cluster, east: the two are in no network together (spec.network)",
  ]);
});

test("a member that is left out of its network has its own pods", () => {
  const condition = {
    ...{ type: "NetworkJoined", status: "False" as const, reason: "PodNetworksOverlap", message: "why" },
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const out = { ...cluster("east", "corp"), status: { conditions: [condition] } };
  const rows = lines({ slices: [slice("IPv4", THERE)], clusters: [cluster("west", "corp"), out], network: "corp" });
  expect(rows.slice(3).map((row) => row.replaceAll(/ {2,}/g, " | "))).toEqual([
    "east | - | 1 | 0 | its own | this cluster, west: the two are in no network together (spec.network)",
    "west | corp | 1 | 1 | this cluster (joined), its own | east: the two are in no network together (spec.network)",
  ]);
});

test("a whole Service has each cluster's own pods alone, and one without a selector the same endpoints everywhere", () => {
  const clusters = [cluster("west", "corp"), cluster("east", "corp")];
  const there = { west: [true], east: [true] };
  const whole = lines({
    service: service({}, { [WHOLE_KEY]: "true" }),
    slices: [slice("IPv4", there)],
    clusters,
    proxies: [pod("north")],
  });
  expect(whole[4]).toMatch(/^north .* - +east, west: of a whole Service, each cluster has its own pods alone$/);
  expect(whole[5]).toMatch(/^west .* its own +east: of a whole Service, each cluster has its own pods alone$/);
  const open = lines({
    service: service({ selector: {} }),
    slices: [slice("IPv4", { "": [true] })],
    proxies: [pod("west")],
  });
  expect(open[3]).toMatch(/^west +- +0 +0 +this cluster$/);
});

test("a relayed Service leads to its pods by the replicas of the relay, and from members by their own", () => {
  const { metadata, ...rest } = service({ selector: {} });
  const relayed = { ...rest, metadata: { ...metadata, annotations: { "legation.dev/relay": "db" } } };
  const shown = (slices: readonly Stored<EndpointSlice>[]): string[] =>
    lines({ service: relayed, slices, targets: [slice("IPv4", { west: [true, false] })] });
  const [first, , host, west] = shown([slice("IPv4", { "": [true, true] })]);
  expect(first).toBe(
    "Service shop/web: ClusterIP, 80/TCP, relayed to db by 2 replicas of legation relay; 1 of 2 endpoints ready",
  );
  expect(host).toMatch(/^this cluster +- +0 +0 +west \(relay\)$/);
  expect(west).toMatch(/^west +- +1 +1 +- +its own: no relay runs in it that is ready$/);
  const ofHost = slice("IPv4", { "": [true] });
  const relays = { west: [{ addresses: ["10.2.0.4"], conditions: { ready: true } }] };
  const annotations = { "legation.dev/relay-in-members": JSON.stringify(relays) };
  const withMember = { ...ofHost, metadata: { ...ofHost.metadata, annotations } };
  expect(shown([withMember])[3]).toMatch(/^west +- +1 +1 +its own \(relay\)$/);
  expect(shown([slice("IPv4", {})])[2]).toMatch(
    / - +west: no replica of legation relay is ready \(legation install --re/,
  );
});

test("pods that end take connections from where no other is reached", () => {
  const clusters = [cluster("west", "corp"), cluster("east", "corp"), cluster("north")];
  const slices = [slice("IPv4", { west: ["ending"], east: [true], north: ["ending"] })];
  const rows = lines({ slices, clusters, network: "corp" }).slice(3);
  expect(rows.map((row) => row.replaceAll(/ {2,}/g, " | "))).toEqual([
    "east | corp | 1 | 0 | its own | north: the two are in no network together (spec.network)",
    "north | - | 0 | 1 | its own | east, west: the two are in no network together (spec.network)",
    "west | corp | 0 | 1 | east (joined) | north: the two are in no network together (spec.network)",
  ]);
});

test("what was told of it is a trouble", () => {
  const told = [
    {
      metadata: { name: "e" },
      involvedObject: {},
      reason: "NotInMember",
      message: "west: there already",
      lastTimestamp: "2026-01-01T00:00:00Z",
    },
  ];
  expect(lines({ told }).at(-1)).toBe("trouble: NotInMember: west: there already (since 2026-01-01T00:00:00Z)");
});
