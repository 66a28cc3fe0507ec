import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../src/api/json.ts";
import { addressChange, specOfType, withoutAllocated } from "../../../src/api/service-fields.ts";

/** As the host's API server has it. */
const allocated = {
  clusterIP: "10.0.0.1",
  clusterIPs: ["10.0.0.1"],
  ipFamilies: ["IPv4"],
  ipFamilyPolicy: "SingleStack",
};

/** Returns the spec of a Service as members are given it. */
function given(spec: JsonObject): JsonObject {
  return specOfType(withoutAllocated({ spec }).spec);
}

describe("a Service as members are given it", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["lacks addresses of the host", { type: "ClusterIP", ...allocated }, { type: "ClusterIP" }],
    [
      "stays headless",
      { type: "ClusterIP", ...allocated, clusterIP: "None" },
      { type: "ClusterIP", clusterIP: "None" },
    ],
    [
      "lacks node ports of the host",
      { type: "NodePort", ...allocated, ports: [{ port: 80, nodePort: 30_080 }], externalTrafficPolicy: "Local" },
      { type: "NodePort", ports: [{ port: 80 }], externalTrafficPolicy: "Local" },
    ],
    [
      "lacks the class that keeps load balancers of the host away",
      {
        type: "LoadBalancer",
        ...allocated,
        healthCheckNodePort: 30_081,
        loadBalancerClass: "legation.dev/whole",
        allocateLoadBalancerNodePorts: false,
      },
      { type: "LoadBalancer", allocateLoadBalancerNodePorts: false },
    ],
  ])("%s", (_, spec, expected) => {
    const { ipFamilyPolicy: __, ...fields } = given(spec);
    expect(fields).toEqual(expected);
  });

  test("lacks fields that do not fit the type of an override", () => {
    const spec = {
      type: "ClusterIP",
      externalTrafficPolicy: "Cluster",
      allocateLoadBalancerNodePorts: true,
      loadBalancerClass: "example.com/nlb",
      selector: { app: "web" },
    };
    expect(given(spec)).toEqual({ type: "ClusterIP", selector: { app: "web" } });
    expect(given({ type: "ClusterIP", externalIPs: ["192.0.2.1"] })).toEqual({
      type: "ClusterIP",
    });
    const named = { type: "ExternalName", externalName: "a.example", ipFamilyPolicy: "SingleStack" };
    expect(given(named)).toEqual({ type: "ExternalName", externalName: "a.example" });
  });
});

test.each([
  ["10.0.0.1", "10.0.0.2", "its cluster IP there is 10.0.0.2 now, and was 10.0.0.1"],
  ["10.0.0.1", "10.0.0.1", undefined],
  ["10.0.0.1", undefined, undefined],
  [undefined, "10.0.0.2", undefined],
])("users of a Service notice its address %s that became %s: %s", (was, is, notice) => {
  const change = addressChange({ spec: { clusterIP: was } }, { spec: { clusterIP: is } });
  expect(change?.startsWith(notice ?? "")).toBe(notice === undefined ? undefined : true);
});
