import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { withoutAllocated } from "../../../src/api/service-fields.ts";
import { copyMetadata } from "../../../src/copies/copy-metadata.ts";
import { driftOf, toCopy } from "../../../src/copies/kind.ts";
import type { MemberCopy } from "../../../src/copies/object-status.ts";
import { delegatedKind } from "../../../src/copies/objects.ts";
import { serviceStatusFrom } from "../../../src/copies/whole-services.ts";
import { services } from "../../../src/kube/resources.ts";
import { host, stored } from "./builders.ts";

const TYPE: DelegatedType = {
  metadata: { name: "services" },
  spec: { version: "v1", kind: "Service", plural: "services" },
};
const kind = delegatedKind(TYPE, (text) => text);

function service(spec: object, metadata: object = {}): Stored<AnyObject> {
  return { metadata: { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata }, spec };
}

/** As the host's API server has it. */
const allocated = {
  clusterIP: "10.0.0.1",
  clusterIPs: ["10.0.0.1"],
  ipFamilies: ["IPv4"],
  ipFamilyPolicy: "SingleStack",
};

function given(spec: object): Stored<AnyObject> {
  return withoutAllocated(service(spec));
}

test("the copy of a whole Service labels its Endpoints so that no EndpointSlices mirror them", () => {
  const source = given({ type: "ClusterIP" });
  const { metadata } = toCopy(kind, source, host);
  expect(metadata?.labels).toMatchObject({ "endpointslice.kubernetes.io/skip-mirror": "true" });
  const copy = stored({ ...toCopy(kind, source, host) });
  expect(kind.applied.isInStep(copy, source)).toBe(true);
  const { "endpointslice.kubernetes.io/skip-mirror": _, ...labels } = copy.metadata.labels ?? {};
  expect(kind.applied.isInStep({ ...copy, metadata: { ...copy.metadata, labels } }, source)).toBe(false);
});

function driftFrom(copy: Stored<AnyObject>, source: Stored<AnyObject>): string {
  const sameContent = kind.applied?.isInStep(copy, source) ?? false;
  return driftOf(kind, copy, { source, host, sameContent });
}

describe("the copy of a Service", () => {
  const balanced = { type: "LoadBalancer", ports: [{ port: 80, protocol: "TCP" }], ...allocated };

  test("is in step with what its member allocated", () => {
    const copy = stored(toCopy(kind, given(balanced), host));
    const ports = [{ port: 80, protocol: "TCP", nodePort: 31_000 }];
    const own = { clusterIP: "10.9.0.1", clusterIPs: ["10.9.0.1"], ipFamilies: ["IPv6"], healthCheckNodePort: 31_001 };
    const there = { ...copy, spec: { type: "LoadBalancer", ipFamilyPolicy: "SingleStack", ports, ...own } };
    expect(driftFrom(there, given(balanced))).toBe("none");
  });

  test.each<[string, object, object, string]>([
    ["another type with an address", { type: "NodePort" }, { type: "ClusterIP" }, "content"],
    ["an address in place of none", { clusterIP: "None" }, { clusterIP: "10.0.0.1" }, "immutable"],
    ["a name in place of an address", { clusterIP: "10.0.0.1" }, { type: "ExternalName" }, "immutable"],
  ])("with %s differs so that it is changed or replaced", (_, before, after, expected) => {
    const copy = stored(toCopy(kind, given(before), host));
    expect(driftFrom(copy, given(after))).toBe(expected);
  });

  test("is never replaced if it was the member's own", () => {
    const adopting = { annotations: { "legation.dev/on-conflict": "adopt" } };
    const source = service({ clusterIP: "None" }, adopting);
    const marks = kind.applied?.adoptionMarks(source);
    const { labels, annotations } = copyMetadata({ source, host, type: services });
    const metadata = {
      labels: { ...labels, ...marks?.labels },
      annotations: { ...annotations, ...marks?.annotations },
    };
    expect(driftFrom(stored(service({ clusterIP: "10.0.0.1" }), metadata), source)).toBe("content");
  });

  test("gives its node ports up with its type, and keeps the mark of its export", () => {
    const ports = [{ port: 80, protocol: "TCP", nodePort: 31_000 }];
    const made = toCopy(kind, given({ type: "NodePort", ports }), host);
    const annotations = { ...made.metadata?.annotations, "legation.dev/exported": "true" };
    const copy = stored({ ...made, spec: { type: "NodePort", ports } }, { annotations });
    const applied = (type: string) =>
      kind.applied?.object(copy, { source: given({ type, ports }), host, left: { givenUp: [], lost: [] } });
    expect(applied("ClusterIP")).toMatchObject({
      spec: { type: "ClusterIP", ports: [{ port: 80, protocol: "TCP", nodePort: 0 }] },
      metadata: { annotations: { "legation.dev/exported": "true" } },
    });
    expect(applied("LoadBalancer")?.spec).toEqual({ type: "LoadBalancer", ports: [{ port: 80, protocol: "TCP" }] });
  });
});

describe("the status of a Service", () => {
  const balanced = service({ type: "LoadBalancer" });

  function holder(member: string, ...ingress: object[]): MemberCopy {
    return { member, inStep: true, isLost: false, copy: { ...service({}), status: { loadBalancer: { ingress } } } };
  }

  test("has the addresses of all members' load balancers, each once", () => {
    const [one, two, three] = [{ ip: "192.0.2.1", ipMode: "VIP" }, { hostname: "a.example" }, { ip: "192.0.2.3" }];
    const holders = [
      holder("west", three, two),
      holder("east", one, two),
      { member: "north", inStep: false, isLost: false },
    ];
    expect(serviceStatusFrom(balanced, holders)).toEqual({ loadBalancer: { ingress: [one, two, three] } });
  });

  test("lacks the addresses of lost members", () => {
    const [west, east] = [holder("west", { ip: "192.0.2.1" }), holder("east", { ip: "192.0.2.2" })];
    const of = (holders: MemberCopy[]): unknown => serviceStatusFrom(balanced, holders)?.loadBalancer;
    expect(of([{ ...west, isLost: true }, east])).toEqual({ ingress: [{ ip: "192.0.2.2" }] });
    expect(of([{ ...west, isLost: true }])).toEqual({});
  });

  test("is one member's as it is there", () => {
    const ingress = [{ hostname: "a.example", ports: [{ port: 80, protocol: "TCP" }] }];
    const conditions = [{ type: "Ready", status: "True" }];
    const copy = { ...service({}), status: { loadBalancer: { ingress }, conditions } };
    const status = serviceStatusFrom(balanced, [{ member: "west", inStep: true, isLost: false, copy }]);
    expect(status).toEqual({ loadBalancer: { ingress }, conditions });
  });

  test("has no addresses when the host's Service is of another type, and is unknown while no member has a copy", () => {
    const internal = service({ type: "ClusterIP" });
    expect(serviceStatusFrom(internal, [holder("west", { ip: "192.0.2.1" })])).toEqual({ loadBalancer: {} });
    expect(serviceStatusFrom(balanced, [{ member: "west", inStep: false, isLost: false }])).toBeUndefined();
  });
});
