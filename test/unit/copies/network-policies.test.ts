import { describe, expect, test } from "vitest";
import type { NetworkPolicy, Stored } from "../../../src/api/kubernetes.ts";
import { toCopy } from "../../../src/copies/kind.ts";
import { NETWORK_POLICY, policyCopyName, staysOnHost } from "../../../src/copies/network-policies.ts";
import { drift, patchOf, stored } from "./builders.ts";

const HOST = { id: "0f8fad5b-d9cb-469f-a165-70867728950e", name: "cern" };
const OURS = { "legation.dev/host": HOST.id };

function policy(spec: object, metadata: object = {}): Stored<NetworkPolicy> {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "web", namespace: "team", uid: "u", resourceVersion: "7", ...metadata },
    spec,
  };
}

describe("a copy of a NetworkPolicy", () => {
  test("selects the host's delegates alone", () => {
    const all = toCopy(NETWORK_POLICY, policy({ podSelector: {}, policyTypes: ["Ingress"] }), HOST);
    expect(all.spec).toEqual({ podSelector: { matchLabels: OURS }, policyTypes: ["Ingress"] });
    const expressions = [{ key: "tier", operator: "In", values: ["front"] }];
    const some = toCopy(
      NETWORK_POLICY,
      policy({ podSelector: { matchLabels: { app: "web" }, matchExpressions: expressions } }),
      HOST,
    );
    expect(some.spec?.podSelector).toEqual({ matchLabels: { app: "web", ...OURS }, matchExpressions: expressions });
  });

  test("restricts peers of its own namespace to delegates, and leaves others", () => {
    const dns = {
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } },
      podSelector: {},
    };
    const byName = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "team" } } };
    const block = { ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } };
    const ports = [{ port: 53, protocol: "UDP", endPort: 54 }];
    const { spec } = toCopy(
      NETWORK_POLICY,
      policy({
        podSelector: {},
        ingress: [{ from: [{ podSelector: { matchLabels: { app: "client" } } }, block] }, {}],
        egress: [{ to: [dns, { podSelector: {} }, byName], ports }, { ports }],
        policyTypes: ["Ingress", "Egress"],
      }),
      HOST,
    );
    expect(spec).toEqual({
      podSelector: { matchLabels: OURS },
      ingress: [{ from: [{ podSelector: { matchLabels: { app: "client", ...OURS } } }, block] }, {}],
      egress: [
        { to: [dns, { podSelector: { matchLabels: OURS } }, { ...byName, podSelector: { matchLabels: OURS } }], ports },
        { ports },
      ],
      policyTypes: ["Ingress", "Egress"],
    });
  });

  test("has a name of its own, also for a long source name", () => {
    const nameOf = (name: string) => policyCopyName(policy({}, { name }).metadata, HOST.id);
    expect(nameOf("web")).toBe("web.legation-0f8fad5b");
    expect(nameOf("a".repeat(235))).toHaveLength(253);
    expect(nameOf("a".repeat(236))).toBe("u.legation-0f8fad5b");
  });

  test("has no labels and annotations of its source", () => {
    const labels = { "app.kubernetes.io/instance": "shop" };
    const { metadata } = toCopy(NETWORK_POLICY, policy({}, { labels, annotations: { note: "kept" } }), HOST);
    expect(metadata?.labels).toEqual({ ...OURS, "legation.dev/copy": "true" });
    expect(Object.keys(metadata?.annotations ?? {}).sort()).toEqual(["legation.dev/forwarded", "legation.dev/owner"]);
  });

  test("equals its source until either changes, and again after the patch", () => {
    const source = policy({ podSelector: {}, policyTypes: ["Ingress"] });
    const copy = stored(toCopy(NETWORK_POLICY, source, HOST));
    const drifts = (a: Stored<NetworkPolicy>, b: Stored<NetworkPolicy>) => drift(NETWORK_POLICY, a, b, HOST);
    expect(drifts(copy, source)).toBe("none");
    const changed = policy({ podSelector: {}, policyTypes: ["Egress"] });
    expect(drifts(copy, changed)).toBe("content");
    expect(drifts({ ...copy, spec: { ...copy.spec, ingress: [{}] } }, source)).toBe("content");
    const unowned = { ...copy, metadata: { ...copy.metadata, annotations: {} } };
    expect(drifts(unowned, source)).toBe("metadata");
    expect(patchOf(NETWORK_POLICY, copy, changed, HOST)).toContainEqual({
      op: "add",
      path: "/spec",
      value: { podSelector: { matchLabels: OURS }, policyTypes: ["Egress"] },
    });
    const version = { op: "add", path: "/metadata/resourceVersion", value: "3" };
    expect(patchOf(NETWORK_POLICY, copy, changed, HOST)).toContainEqual(version);
  });
});

test("keeps a policy on the host only if its author says so", () => {
  const said = (value: string) => staysOnHost(policy({}, { annotations: { "legation.dev/copy": value } }));
  expect(said("false")).toBe(true);
  expect(["true", "False", "no", ""].map(said)).toEqual([false, false, false, false]);
  expect(staysOnHost(policy({}))).toBe(false);
});

test("does not copy another host's copy", () => {
  const theirs = toCopy(NETWORK_POLICY, policy({ podSelector: {} }), { id: "another-host", name: "fermi" });
  expect(staysOnHost(theirs)).toBe(true);
});
