import { describe, expect, test } from "vitest";
import type { EndpointSlice, Service, Stored } from "../../../src/api/kubernetes.ts";
import { importedSlice } from "../../../src/copies/import-slices.ts";
import type { Networks } from "../../../src/copies/joined-slices.ts";
import { derivedServiceName, type ExportedService, mergeExports } from "../../../src/copies/service-imports.ts";

type Spec = NonNullable<Service["spec"]>;

const HTTP = { name: "http", port: 80, protocol: "TCP" };
const ADMIN = { name: "admin", port: 90, protocol: "TCP" };

/** The export of a cluster; those of later letters are younger. */
function exported(cluster: string | undefined, spec: Spec = { ports: [HTTP] }, ofExport: object = {}): ExportedService {
  const metadata = { name: "web", namespace: "team", uid: `of ${cluster}`, resourceVersion: "1" };
  const creationTimestamp = `2026-01-01T00:00:0${(cluster ?? "a").charCodeAt(0) - 97}Z`;
  return {
    cluster,
    exported: { metadata: { ...metadata, creationTimestamp }, spec: ofExport },
    service: { metadata, spec },
  };
}

describe("merged exports", () => {
  test("are none without an export", () => {
    expect(mergeExports([])).toBeUndefined();
  });

  test("have the fields of the oldest, whatever the order", () => {
    const [old, young] = [
      exported("a", { ports: [HTTP], sessionAffinity: "ClientIP" }),
      exported("b", { ports: [HTTP], sessionAffinity: "None" }),
    ];
    for (const exports of [
      [old, young],
      [young, old],
    ]) {
      expect(mergeExports(exports)).toMatchObject({
        spec: { type: "ClusterSetIP", sessionAffinity: "ClientIP" },
        conflicts: [{ reason: "SessionAffinityConflict", field: "sessionAffinity" }],
      });
    }
  });

  test("are of the first name where all are of one second", () => {
    const at = { creationTimestamp: "2026-01-01T00:00:00Z" };
    const [one, other] = ["west", "east"].map((cluster) => {
      const each = exported(cluster, { ports: [HTTP], clusterIP: cluster === "west" ? "None" : "10.0.0.1" });
      return { ...each, exported: { ...each.exported, metadata: { ...each.exported.metadata, ...at } } };
    });
    const merged = mergeExports([one, other].flatMap((each) => each ?? []));
    expect(merged?.spec.type).toBe("ClusterSetIP");
    expect(merged?.conflicts.map(({ reason }) => reason)).toEqual(["TypeConflict"]);
  });

  test.each<[string, Spec, Spec, readonly (readonly [string | undefined, number])[]]>([
    [
      "of others are added",
      { ports: [HTTP] },
      { ports: [HTTP, ADMIN] },
      [
        ["http", 80],
        ["admin", 90],
      ],
    ],
    ["of one name are the oldest's", { ports: [HTTP] }, { ports: [{ ...HTTP, port: 81 }] }, [["http", 80]]],
    ["of one number are the oldest's", { ports: [HTTP] }, { ports: [{ ...ADMIN, port: 80 }] }, [["http", 80]]],
    [
      "of one number and two protocols are two",
      { ports: [HTTP] },
      { ports: [{ ...ADMIN, port: 80, protocol: "UDP" }] },
      [
        ["http", 80],
        ["admin", 80],
      ],
    ],
    ["without a name are alone", { ports: [{ port: 80, protocol: "TCP" }] }, { ports: [ADMIN] }, [[undefined, 80]]],
    [
      "without a name are added to none",
      { ports: [ADMIN] },
      { ports: [{ port: 80, protocol: "TCP" }] },
      [["admin", 90]],
    ],
  ])("ports %s", (_, old, young, ports) => {
    const merged = mergeExports([exported("a", old), exported("b", young)]);
    expect(merged?.spec.ports.map(({ name, port }) => [name, port])).toEqual(ports);
    expect(merged?.conflicts.map(({ reason }) => reason)).toEqual(["PortConflict"]);
  });

  test("have no conflict where only the order of ports differs, and several where more does", () => {
    const same = mergeExports([exported("a", { ports: [HTTP, ADMIN] }), exported("b", { ports: [ADMIN, HTTP] })]);
    expect(same?.conflicts).toEqual([]);
    const more = mergeExports([
      exported("a", { ports: [HTTP], trafficDistribution: "PreferClose", ipFamilies: ["IPv4"] }),
      exported(
        "b",
        { ports: [HTTP], internalTrafficPolicy: "Local", ipFamilies: ["IPv4", "IPv6"] },
        { exportedLabels: { a: "1" } },
      ),
    ]);
    expect(more?.ipFamilies).toEqual(["IPv4", "IPv6"]);
    expect(more?.labels).toEqual({});
    expect(more?.conflicts.map(({ reason }) => reason)).toEqual([
      "InternalTrafficPolicyConflict",
      "TrafficDistributionConflict",
      "IPFamilyConflict",
      "LabelsConflict",
    ]);
  });
});

test("the derived Service's name follows from the import's, and is a DNS label", () => {
  expect(derivedServiceName("web")).toBe("clusterset-web");
  expect(derivedServiceName("w".repeat(52))).toHaveLength(63);
  expect(derivedServiceName("w".repeat(53))).toMatch(/^clusterset-[0-9a-z]{1,10}$/);
});

describe("an imported slice", () => {
  const networks: Networks = {
    host: "corp",
    members: new Map([
      ["west", "corp"],
      ["east", "corp"],
      ["north", "lab"],
    ]),
  };
  const endpoint = (ip: string, nodeName: string): NonNullable<EndpointSlice["endpoints"]>[number] => {
    return { addresses: [ip], nodeName, zone: "a", conditions: { ready: true }, hints: { forZones: [{ name: "a" }] } };
  };
  const slice: Stored<EndpointSlice> = {
    metadata: { name: "web-abc", namespace: "team", uid: "u", resourceVersion: "1" },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: [
      endpoint("10.0.0.1", "node-1"),
      endpoint("10.1.0.1", "legation-west"),
      endpoint("10.2.0.1", "legation-east"),
      endpoint("10.3.0.1", "legation-north"),
    ],
  };
  const given = (to: string | undefined, one = exported(undefined), ports = [HTTP]): ReturnType<typeof importedSlice> =>
    importedSlice(slice, one, { ports }, { to, networks });

  test.each([
    ["the host", undefined, ["10.0.0.1", "10.1.0.1", "10.2.0.1"]],
    ["a member", "west", ["10.0.0.1", "10.1.0.1", "10.2.0.1"]],
    ["a member of another network", "north", ["10.3.0.1"]],
  ] as const)("has the pods that clients in %s reach", (_, to, addresses) => {
    expect(given(to)?.endpoints?.flatMap((one) => one.addresses)).toEqual(addresses);
  });

  test("has nodes of its own cluster alone", () => {
    const nodes = (to: string | undefined) => given(to)?.endpoints?.map(({ nodeName }) => nodeName);
    expect(nodes(undefined)).toEqual(["node-1", undefined, undefined]);
    expect(nodes("west")).toEqual([undefined, undefined, undefined]);
    expect(given(undefined)?.endpoints?.[0]).toEqual(slice.endpoints?.[0]);
  });

  test("has no ports on which the exports conflict, and is none without ports", () => {
    expect(given("west", exported(undefined, { ports: [{ ...HTTP, port: 81 }] }))).toBeUndefined();
    expect(given("west", exported(undefined), [ADMIN])).toBeUndefined();
  });

  test("of a member has that member's pods, by whatever nodes", () => {
    const addresses = (to: string | undefined) => given(to, exported("west"))?.endpoints?.length;
    expect(addresses("east")).toBe(4);
    expect(addresses("north")).toBeUndefined();
  });
});
