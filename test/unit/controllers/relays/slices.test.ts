import { expect, test } from "vitest";
import type { EndpointSlice, Service, Stored } from "../../../../src/api/kubernetes.ts";
import { relaysInMembers } from "../../../../src/api/relay.ts";
import { decide, type ObservedRelay } from "../../../../src/controllers/relays/decide.ts";
import {
  recordedPorts,
  relayedPorts,
  relaysByMember,
  replicasOf,
  slicesOf,
} from "../../../../src/controllers/relays/slices.ts";
import { RelayedSlices } from "../../../../src/copies/relayed-slices.ts";

function service(spec: NonNullable<Service["spec"]>, relay: string | null = "web"): Stored<Service> {
  const annotations = relay === null ? {} : { "legation.dev/relay": relay };
  return {
    metadata: { name: "far-web", namespace: "team", uid: "service-uid", resourceVersion: "1", annotations },
    spec,
  };
}

function stored(slice: EndpointSlice): Stored<EndpointSlice> {
  const { name = "" } = slice.metadata ?? {};
  return { ...slice, metadata: { ...slice.metadata, name, uid: `${name}-uid`, resourceVersion: "7" } };
}

const PORTS = [{ name: "http", port: 80, protocol: "TCP" }];
const relayed = service({ ports: PORTS, ipFamilies: ["IPv4", "IPv6"] });
const recorded = new Map([["http", 20_001]]);
const replicas = replicasOf([
  stored({
    metadata: { name: "legation-relay-x" },
    addressType: "IPv4",
    endpoints: [
      { addresses: ["10.0.0.2"], conditions: { ready: true }, zone: "b", targetRef: { kind: "Pod", name: "relay-b" } },
      { addresses: ["10.0.0.1"], conditions: { ready: false, serving: true, terminating: true } },
    ],
  }),
]);

const memberSlices = [
  stored({
    metadata: { name: "legation-relay-members-x" },
    addressType: "IPv4",
    endpoints: [
      { addresses: ["10.1.0.3"], conditions: { ready: true, serving: false }, nodeName: "legation-west" },
      { addresses: ["10.1.0.2"], conditions: { ready: true, serving: true }, nodeName: "legation-west" },
      { addresses: ["10.2.0.2"], conditions: { ready: true, serving: true }, nodeName: "legation-east" },
      { addresses: ["10.0.0.9"], conditions: { ready: true, serving: true }, nodeName: "node-1" },
    ],
  }),
];
const inMembers = (addressType: string) => relaysByMember(memberSlices, addressType, (cluster) => cluster === "west");

test("records the relays of members with pods of the namespace, which alone are given them", () => {
  const [ipv4, ipv6] = slicesOf(relayed, recorded, replicas, inMembers).map(stored);
  expect(relaysInMembers(ipv4 ?? {})).toEqual({
    west: [
      { addresses: ["10.1.0.2"], conditions: { ready: true } },
      { addresses: ["10.1.0.3"], conditions: { ready: false } },
    ],
  });
  expect(relaysInMembers(ipv6 ?? {})).toEqual({});
  const copies = new RelayedSlices();
  const west = copies.of(ipv4 as Stored<EndpointSlice>, "west");
  expect(west).toMatchObject({
    state: "present",
    object: { ports: ipv4?.ports, endpoints: [{ addresses: ["10.1.0.2"] }, { addresses: ["10.1.0.3"] }] },
  });
  expect(copies.of(ipv4 as Stored<EndpointSlice>, "west")).toBe(west);
  expect(copies.of(ipv4 as Stored<EndpointSlice>, "east")).toEqual({ state: "missing" });
});

test("makes a slice per address family, owned by the Service, with the recorded ports and the replicas", () => {
  const slices = slicesOf(relayed, recorded, replicas, inMembers);
  expect(slices.map(({ metadata, addressType }) => [metadata?.name, addressType])).toEqual([
    ["far-web-relay-ipv4", "IPv4"],
    ["far-web-relay-ipv6", "IPv6"],
  ]);
  expect(slices[0]).toMatchObject({
    metadata: {
      labels: {
        "kubernetes.io/service-name": "far-web",
        "endpointslice.kubernetes.io/managed-by": "relay.legation.dev",
      },
      ownerReferences: [{ kind: "Service", uid: "service-uid" }],
    },
    ports: [{ name: "http", port: 20_001, protocol: "TCP" }],
    endpoints: [
      { addresses: ["10.0.0.1"], conditions: { ready: false, serving: true, terminating: true } },
      { addresses: ["10.0.0.2"], conditions: { ready: true }, zone: "b" },
    ],
  });
  expect(slices[1]?.endpoints).toEqual([]);
  expect(recordedPorts(slices.map(stored))).toEqual(recorded);
});

test.each<[string, Stored<Service>]>([
  ["without the annotation", service({ ports: PORTS }, null)],
  ["with a selector", service({ ports: PORTS, selector: { app: "web" } })],
  ["without an address", service({ ports: PORTS, clusterIP: "None" })],
  ["of type ExternalName", service({ ports: PORTS, type: "ExternalName", externalName: "example.org" })],
  ["without a port of TCP", service({ ports: [{ port: 53, protocol: "UDP" }] })],
])("relays no Service %s", (_, one) => {
  expect(relayedPorts(one)).toEqual([]);
});

function observed(changed: Partial<ObservedRelay> = {}): ObservedRelay {
  const wanted = slicesOf(relayed, recorded, replicas, inMembers);
  return {
    service: relayed,
    wanted,
    slices: wanted.map(stored),
    problem: undefined,
    heldUntil: undefined,
    ...changed,
  };
}

test.each<[string, Partial<ObservedRelay>, readonly string[]]>([
  ["writes nothing while all is as wanted", {}, []],
  ["creates what is missing", { slices: [] }, ["create", "create"]],
  ["deletes what is left", { service: undefined, wanted: [] }, ["delete", "delete"]],
  [
    "replaces slices whose members have changed",
    {
      slices: slicesOf(relayed, recorded, replicas, () => ({}))
        .slice(0, 1)
        .map(stored),
    },
    ["replace", "create"],
  ],
  ["holds a refused write", { slices: [], heldUntil: 5 }, []],
  ["tells the author why the Service leads nowhere", { problem: "no Service" }, ["tell"]],
])("%s", (_, changed, types) => {
  expect(decide(observed(changed)).actions.map(({ type }) => type)).toEqual(types);
});

test("replaces a slice whose replicas have changed, unless it has changed meanwhile", () => {
  const slices = slicesOf(relayed, recorded, new Map(), inMembers).map(stored);
  expect(decide(observed({ slices })).actions).toMatchObject([
    { type: "replace", slice: { metadata: { name: "far-web-relay-ipv4", resourceVersion: "7" } } },
  ]);
});
