import { describe, expect, test } from "vitest";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { JoinedSlices, type Networks } from "../../../src/copies/joined-slices.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { SERVICES, type ServiceObject } from "../../../src/copies/services.ts";
import { drift, host, stored } from "./builders.ts";

const ENDPOINTS = [
  { addresses: ["192.0.2.1"], nodeName: "legation-west", conditions: { ready: true } },
  {
    addresses: ["192.0.2.2"],
    nodeName: "legation-east",
    hostname: "web-1",
    conditions: { ready: false, serving: true },
  },
  { addresses: ["192.0.2.3"], nodeName: "legation-north" },
  { addresses: ["192.0.2.4"], nodeName: "host-node" },
  { addresses: ["192.0.2.5"] },
];

function slice(manager = "endpointslice-controller.k8s.io"): Stored<ServiceObject> {
  const labels = { "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": manager };
  const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z" };
  const metadata = { name: "web-x1", namespace: "team", uid: "slice", resourceVersion: "1", labels, annotations };
  return { metadata, addressType: "IPv4", endpoints: ENDPOINTS, ports: [] };
}

function networks(members: Record<string, string>, ofHost?: string): Networks {
  return { host: ofHost, members: new Map(Object.entries(members)) };
}

function addressesIn(one: Stored<ServiceObject>, member: string, all: Networks): string[] {
  const given = new JoinedSlices().of(one, member, all, undefined);
  return given.state === "present" ? (given.object.endpoints ?? []).flatMap(({ addresses }) => addresses) : [];
}

const CORP = { west: "corp", east: "corp", north: "lab" };

test.each<[string, string, Networks, string[]]>([
  ["the pods of the other members of its network", "west", networks(CORP), ["192.0.2.2"]],
  ["never its own", "east", networks(CORP), ["192.0.2.1"]],
  ["those of the host in its network, too", "west", networks(CORP, "corp"), ["192.0.2.2", "192.0.2.4", "192.0.2.5"]],
  ["nothing if it is alone in its network", "north", networks(CORP, "corp"), []],
  ["nothing without a network", "south", networks(CORP, "corp"), []],
])("a member gets %s", (_, member, all, addresses) => {
  expect(addressesIn(slice(), member, all)).toEqual(addresses);
});

test("slices of other controllers lead to no other cluster", () => {
  expect(addressesIn(slice("mesh"), "west", networks(CORP))).toEqual([]);
});

test("a slice is given as the same object until a network changes", () => {
  const [joined, one, all] = [new JoinedSlices(), slice(), networks(CORP)];
  expect(joined.of(one, "west", all, undefined)).toBe(joined.of(one, "west", all, undefined));
  expect(joined.of(one, "west", networks({ west: "corp" }), undefined)).toEqual({ state: "missing" });
});

test("a copy has conditions and host names, and no node, trigger time or manager of the host", () => {
  const given = new JoinedSlices().of(slice(), "west", networks(CORP), undefined);
  const copy = given.state === "present" ? toCopy(SERVICES.EndpointSlice, given.object, host) : undefined;
  expect(copy?.endpoints).toEqual([
    { addresses: ["192.0.2.2"], hostname: "web-1", conditions: { ready: false, serving: true } },
  ]);
  expect(copy?.metadata?.labels).toMatchObject({
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "legation.dev",
  });
  expect(Object.keys(copy?.metadata?.annotations ?? {})).not.toContain(
    "endpoints.kubernetes.io/last-change-trigger-time",
  );
});

describe("hints of endpoints in other clusters", () => {
  const elsewhere = [{ name: "another-cluster" }];
  test.each<[string, string | undefined, object, object | undefined]>([
    ["are none without a trafficDistribution", undefined, { zone: "z" }, undefined],
    ["name no zone of the member where none is known", "PreferSameZone", {}, { forZones: elsewhere }],
    [
      "name the zone that the operator gave the other cluster",
      "PreferClose",
      { zone: "z" },
      { forZones: [{ name: "z" }] },
    ],
    ["name no node of the member", "PreferSameNode", {}, { forZones: elsewhere, forNodes: elsewhere }],
    ["replace those of the host", "PreferSameZone", { hints: { forZones: [{ name: "h" }] } }, { forZones: elsewhere }],
    ["go with the trafficDistribution", undefined, { hints: { forZones: [{ name: "h" }] } }, undefined],
    ["are for ready endpoints", "PreferSameZone", { conditions: { ready: false } }, undefined],
  ])("%s", (_, distribution, parts, hints) => {
    const endpoints = [{ addresses: ["192.0.2.1"], nodeName: "legation-east", ...parts }];
    const given = new JoinedSlices().of({ ...slice(), endpoints }, "west", networks(CORP), distribution);
    const copy = given.state === "present" ? toCopy(SERVICES.EndpointSlice, given.object, host) : undefined;
    expect(copy?.endpoints?.[0]?.hints).toEqual(hints);
    if (given.state !== "present" || copy === undefined) throw new Error("no copy");
    expect(drift(SERVICES.EndpointSlice, stored(copy), given.object, host)).toBe("none");
  });

  test("of a Service without a selector are left out", () => {
    const endpoints = [{ addresses: ["192.0.2.1"], hints: { forZones: [{ name: "h" }] } }];
    expect(toCopy(SERVICES.EndpointSlice, { ...slice("people"), endpoints }, host).endpoints).toEqual([
      { addresses: ["192.0.2.1"] },
    ]);
  });

  test("change with the trafficDistribution of the Service", () => {
    const [joined, one, all] = [new JoinedSlices(), slice(), networks(CORP)];
    expect(joined.of(one, "east", all, "PreferSameZone")).not.toEqual(joined.of(one, "east", all, undefined));
  });
});
