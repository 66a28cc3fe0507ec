import { expect, test } from "vitest";
import type { EndpointSlice, Pod, Service, Stored } from "../../../src/api/kubernetes.ts";
import { type MemberView, wrongIn } from "../../chaos/services/rules.ts";

const meta = (name: string, labels = {}): Stored<Pod>["metadata"] => ({
  name,
  uid: name,
  resourceVersion: "1",
  labels,
});

function service(spec: NonNullable<Service["spec"]> = {}): Stored<Service> {
  return {
    metadata: meta("web"),
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8000 }], ...spec },
  };
}

function pod(name: string, place: string, podIP: string, ready = true): Stored<Pod> {
  return {
    metadata: meta(name, { app: "web" }),
    spec: { containers: [], nodeName: place === "host" ? "node-1" : `legation-${place}` },
    status: { phase: "Running", podIP, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  };
}

function slice(addresses: readonly string[], port = 8000): Stored<EndpointSlice> {
  return {
    metadata: meta("web-1", { "kubernetes.io/service-name": "web" }),
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: "", port }],
  };
}

const [WEST, EAST, HOME] = [
  pod("one", "west", "10.2.0.1"),
  pod("two", "east", "10.3.0.1"),
  pod("home", "host", "10.1.0.1"),
];
const AT_REST: MemberView = {
  member: "west",
  networks: new Map([
    ["host", "corp"],
    ["west", "corp"],
    ["east", "lab"],
  ]),
  live: [WEST, EAST, HOME],
  copies: [service()],
  slices: [slice(["10.2.0.1"]), slice(["10.1.0.1"])],
};

test.each<[string, Partial<MemberView>, readonly string[]]>([
  ["all is as it should be", {}, []],
  [
    "an endpoint is missing",
    { slices: [slice(["10.2.0.1"])] },
    ["west: web leads to 10.2.0.1, not to 10.1.0.1,10.2.0.1"],
  ],
  [
    "a slice has the endpoint of another network",
    { slices: [...AT_REST.slices, slice(["10.3.0.1"])] },
    ["west: web leads to 10.1.0.1,10.2.0.1,10.3.0.1, not to 10.1.0.1,10.2.0.1"],
  ],
  [
    "two slices have one endpoint",
    { slices: [...AT_REST.slices, slice(["10.1.0.1"])] },
    ["west: web leads to 10.1.0.1,10.1.0.1,10.2.0.1, not to 10.1.0.1,10.2.0.1"],
  ],
  [
    "a pod is not ready",
    { live: [WEST, pod("home", "host", "10.1.0.1", false)] },
    ["west: web leads to 10.1.0.1,10.2.0.1, not to 10.2.0.1"],
  ],
  [
    "a slice has another port",
    { slices: [slice(["10.2.0.1"]), slice(["10.1.0.1"], 80)] },
    ["west: web has other ports at 10.1.0.1"],
  ],
  [
    "the member left its network",
    { networks: new Map([["host", "corp"]]) },
    ["west: web leads to 10.1.0.1,10.2.0.1, not to 10.2.0.1"],
  ],
  ["the copy is missing", { copies: [] }, ["west: there is no copy of web"]],
  ["the copy is headless", { copies: [service({ clusterIP: "None" })] }, ["west: web has another kind of address"]],
  ["the pods of the member are gone", { live: [EAST, HOME] }, ["west: web outlives its pods"]],
])("tells what is wrong with a Service in a member when %s", (_, difference, wrong) => {
  expect(wrongIn({ ...AT_REST, ...difference }, service())).toEqual(wrong);
});
