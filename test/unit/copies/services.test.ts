import { describe, expect, test } from "vitest";
import { EXPORTED_ANNOTATION } from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { mayBeCopied } from "../../../src/api/service-fields.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import {
  hasSelector,
  isExported,
  SERVICES,
  type ServiceObject,
  type ServiceSpec,
  selects,
  toExport,
} from "../../../src/copies/services.ts";
import { drift, host, stored as kept, patchOf } from "./builders.ts";

function service(spec: ServiceSpec, metadata: object = {}): Stored<ServiceObject> {
  return {
    metadata: { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata },
    spec,
  };
}

describe("the endpoints of a Service", () => {
  test.each<[string, ServiceSpec, Record<string, string>, boolean]>([
    ["are the pods with all of its labels", { selector: { a: "1", b: "2" } }, { a: "1", b: "2", c: "3" }, true],
    ["are no pods with some of them", { selector: { a: "1", b: "2" } }, { a: "1" }, false],
    ["are no pods with other values", { selector: { a: "1" } }, { a: "2" }, false],
    ["are no pods without a selector", {}, { a: "1" }, false],
    ["are no pods with an empty selector", { selector: {} }, { a: "1" }, false],
    ["are no pods for an external name", { type: "ExternalName", selector: { a: "1" } }, { a: "1" }, false],
  ])("%s", (_, spec, labels, expected) => {
    expect(selects(service(spec), labels)).toBe(expected);
  });

  test("come from a selector, except for an external name", () => {
    expect(hasSelector(service({ selector: { a: "1" } }))).toBe(true);
    expect(hasSelector(service({ type: "ExternalName", selector: { a: "1" } }))).toBe(false);
  });
});

test("does not copy the API server's Service", () => {
  expect(mayBeCopied(service({}, { name: "kubernetes", namespace: "default" }))).toBe(false);
  expect(mayBeCopied(service({}, { name: "kubernetes", namespace: "team" }))).toBe(true);
});

describe("an object of the Multi-Cluster Services API", () => {
  const importedBy = (kind: string): object => ({
    ownerReferences: [{ apiVersion: "multicluster.x-k8s.io/v1alpha1", kind, name: "web", uid: "u" }],
  });
  const label = "multicluster.kubernetes.io/service-name";

  test.each<[string, object, boolean]>([
    ["a Service of a ServiceImport is not copied", importedBy("ServiceImport"), false],
    ["a Service, or a slice, with the API's label is not copied", { labels: { [label]: "web" } }, false],
    ["a Service of something else is copied", importedBy("Broker"), true],
    ["a slice of an ordinary Service is copied", { labels: { "kubernetes.io/service-name": "web" } }, true],
  ])("copied or not: %s", (_, metadata, expected) => {
    expect(mayBeCopied(service({}, metadata))).toBe(expected);
  });
});

describe("the copy of a Service", () => {
  test("labels its Endpoints so that no EndpointSlices mirror them, also a copy of an earlier version", () => {
    const source = service({ selector: { app: "web" } }, { labels: { tier: "front" } });
    const { metadata } = toCopy(SERVICES.Service, source, host);
    expect(metadata?.labels).toMatchObject({ tier: "front", "endpointslice.kubernetes.io/skip-mirror": "true" });
    const earlier = kept(toCopy({ ...SERVICES.Service, carried: (same) => same }, source, host));
    expect(drift(SERVICES.Service, earlier, source, host)).toBe("metadata");
  });

  test.each<[string, ServiceSpec, object]>([
    ["with an address has one of the member's", { clusterIP: "10.0.0.1" }, { type: "ClusterIP" }],
    ["without an address has none", { clusterIP: "None" }, { type: "ClusterIP", clusterIP: "None" }],
    ["with a node port has none", { type: "NodePort", clusterIP: "10.0.0.1" }, { type: "ClusterIP" }],
    ["of a load balancer is none", { type: "LoadBalancer", clusterIP: "10.0.0.1" }, { type: "ClusterIP" }],
    [
      "for an external name is one",
      { type: "ExternalName", externalName: "a.example" },
      { type: "ExternalName", externalName: "a.example" },
    ],
  ])("%s", (_, spec, expected) => {
    expect(JSON.parse(JSON.stringify(toCopy(SERVICES.Service, service(spec), host).spec))).toEqual(expected);
  });

  test.each<[string, Record<string, string>, Record<string, string>]>([
    [
      "beside other labels",
      { app: "web", "legation.dev/proxy": "true" },
      { app: "web", "legation.dev/host": "host-id" },
    ],
    ["alone", { "legation.dev/proxy": "true" }, { "legation.dev/host": "host-id" }],
    ["with a value that no proxy has", { "legation.dev/proxy": "overflow" }, { "legation.dev/proxy": "overflow" }],
  ])(
    "selects the host's delegates where its source selects proxies by Legation's label, %s",
    (_, selector, expected) => {
      const source = service({ selector });
      const copy = kept(toCopy(SERVICES.Service, source, host));
      expect(copy.spec?.selector).toEqual(expected);
      expect(drift(SERVICES.Service, copy, source, host)).toBe("none");
      const before = { ...copy, spec: { ...copy.spec, selector } };
      const change = { op: "add", path: "/spec/selector", value: expected };
      const changes = selector["legation.dev/proxy"] === "true" ? [change] : [];
      const patch = patchOf(SERVICES.Service, before, source, host).filter(
        (one) => "path" in one && one.path === change.path,
      );
      expect(patch).toEqual(changes);
    },
  );

  test("keeps ports and affinity, and drops the host's load balancer", () => {
    const spec = {
      selector: { a: "1" },
      ports: [{ name: "http", port: 80, targetPort: "http", protocol: "TCP", nodePort: 30_080 }],
      publishNotReadyAddresses: true,
      sessionAffinity: "ClientIP",
      externalIPs: ["192.0.2.7"],
      loadBalancerIP: "192.0.2.8",
    };
    const copy = toCopy(SERVICES.Service, service(spec), host);
    expect(JSON.parse(JSON.stringify(copy.spec))).toEqual({
      type: "ClusterIP",
      selector: { a: "1" },
      ports: [{ name: "http", port: 80, targetPort: "http", protocol: "TCP" }],
      publishNotReadyAddresses: true,
      sessionAffinity: "ClientIP",
    });
  });

  test.each<[string, string | undefined, string | undefined, string | undefined]>([
    ["one family where the host's has one", "SingleStack", undefined, "SingleStack"],
    [
      "both families where the host's prefers both and the member has them",
      "PreferDualStack",
      "PreferDualStack",
      "PreferDualStack",
    ],
    [
      "one family too, where the host's requires both and the member has one",
      "RequireDualStack",
      "PreferDualStack",
      "PreferDualStack",
    ],
    [
      "both families of a headless Service without selector, as both API servers say",
      "RequireDualStack",
      "PreferDualStack",
      "RequireDualStack",
    ],
  ])("has %s", (_, ofHost, wanted, there) => {
    const source = service({ selector: { a: "1" }, ipFamilyPolicy: ofHost });
    const copy = kept(toCopy(SERVICES.Service, source, host));
    expect(copy.spec?.ipFamilyPolicy).toBe(wanted);
    const filledIn = { ...copy, spec: { ...copy.spec, ipFamilyPolicy: there } };
    expect(drift(SERVICES.Service, filledIn, source, host)).toBe("none");
    expect(drift(SERVICES.Service, filledIn, service({ selector: { a: "1" } }), host)).toBe(
      wanted === undefined ? "none" : "content",
    );
  });

  test("equals its source whatever the member fills in, and is patched if the source changes", () => {
    const source = service({ selector: { a: "1" }, ports: [{ port: 80, targetPort: 80, nodePort: 30_080 }] });
    const copy = kept(toCopy(SERVICES.Service, source, host));
    const filledIn = { ...copy, spec: { ...copy.spec, clusterIP: "10.9.9.9", ipFamilies: ["IPv4"] } };
    expect(drift(SERVICES.Service, filledIn, source, host)).toBe("none");

    const changed = service({ selector: { a: "2" }, sessionAffinity: "ClientIP" }, { labels: { tier: "front" } });
    expect(drift(SERVICES.Service, filledIn, changed, host)).toBe("content");
    const patch = patchOf(SERVICES.Service, filledIn, changed, host);
    expect(patch).toEqual(
      expect.arrayContaining([
        { op: "add", path: "/metadata/uid", value: "copy-uid" },
        { op: "add", path: "/metadata/resourceVersion", value: "3" },
        { op: "add", path: "/metadata/labels", value: expect.objectContaining({ tier: "front" }) },
        { op: "add", path: "/spec/selector", value: { a: "2" } },
        { op: "add", path: "/spec/sessionAffinity", value: "ClientIP" },
        { op: "add", path: "/spec/ports", value: null },
      ]),
    );
    expect(JSON.stringify(patch)).not.toContain("clusterIP");
  });

  test("follows a source that was re-created", () => {
    const source = service({ selector: { a: "1" } });
    const copy = kept(toCopy(SERVICES.Service, source, host));
    expect(drift(SERVICES.Service, copy, service({ selector: { a: "1" } }, { uid: "other" }), host)).toBe("content");
  });

  test("keeps the mark of its ServiceExport when it changes", () => {
    const source = service({ selector: { a: "1" } });
    const copy = kept(toCopy(SERVICES.Service, source, host));
    const annotations = { ...copy.metadata.annotations, [EXPORTED_ANNOTATION]: "true" };
    const marked = { ...copy, metadata: { ...copy.metadata, annotations } };
    expect([isExported(copy), isExported(marked)]).toEqual([false, true]);
    expect(drift(SERVICES.Service, marked, source, host)).toBe("none");
    const patch = patchOf(SERVICES.Service, marked, service({ selector: { a: "2" } }), host);
    expect(JSON.stringify(patch)).toContain(EXPORTED_ANNOTATION);
    const exported = toExport(marked, source, host, "multicluster.x-k8s.io/v1alpha1");
    expect(exported).toMatchObject({
      apiVersion: "multicluster.x-k8s.io/v1alpha1",
      kind: "ServiceExport",
      metadata: {
        name: "web",
        namespace: "team",
        ownerReferences: [{ kind: "Service", name: "web", uid: "copy-uid" }],
      },
    });
    expect(exported.metadata?.annotations).not.toHaveProperty(EXPORTED_ANNOTATION);
  });
});

describe("the copy of an EndpointSlice", () => {
  const labels = {
    "kubernetes.io/service-name": "web",
    "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
  };
  const source: Stored<ServiceObject> = {
    metadata: { name: "web-1", namespace: "team", uid: "source-uid", resourceVersion: "7", labels },
    addressType: "IPv6",
    endpoints: [{ addresses: ["2001:db8::1"], conditions: { ready: true }, hostname: "a" }],
    ports: [{ port: 80 }],
  };

  test("has the addresses, and Legation as its manager", () => {
    const copy = toCopy(SERVICES.EndpointSlice, source, host);
    expect(copy).toMatchObject({ addressType: "IPv6", endpoints: source.endpoints, ports: [{ port: 80 }] });
    expect(copy.metadata?.labels).toMatchObject({
      "kubernetes.io/service-name": "web",
      "endpointslice.kubernetes.io/managed-by": "legation.dev",
    });
    expect(drift(SERVICES.EndpointSlice, kept(copy), source, host)).toBe("none");
  });

  test("names no node, zone or pod of the host", () => {
    const endpoint = { addresses: ["192.0.2.1"], nodeName: "n", zone: "z", targetRef: { kind: "Pod", name: "p" } };
    const copy = toCopy(SERVICES.EndpointSlice, { ...source, endpoints: [endpoint] }, host);
    expect(copy.endpoints).toEqual([{ addresses: ["192.0.2.1"] }]);
  });

  test("equals a slice whose API server writes null endpoints", () => {
    const empty = { ...source, endpoints: null };
    const copy = kept(toCopy(SERVICES.EndpointSlice, empty, host));
    expect(drift(SERVICES.EndpointSlice, { ...copy, endpoints: null }, empty, host)).toBe("none");
    expect(drift(SERVICES.EndpointSlice, { ...copy, addressType: "IPv4" }, empty, host)).toBe("immutable");
  });
});
