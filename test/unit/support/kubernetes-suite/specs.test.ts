import { expect, test } from "vitest";
import { batchesOf, selected } from "../../../support/kubernetes-suite/specs.ts";

const PODS = "[sig-node] Pods should be updated [NodeConformance] [Conformance]";
const VOLUMES = "[sig-storage] EmptyDir volumes should support (root,0644,tmpfs) [Conformance]";

test.each([
  ["a spec about pods", PODS],
  ["a Conformance spec", "[sig-api-machinery] Watchers should observe [Conformance]"],
  ["a spec about Services", "[sig-network] Services should be able to up and down services"],
  ["a serial spec", "[sig-apps] Daemon set [Serial] should run [Conformance]"],
  ["a volume that ends with its pod", VOLUMES],
  [
    "a Conformance spec that breaks nodes",
    "[sig-node] NoExecuteTaintManager [Serial] evicts [Disruptive] [Conformance]",
  ],
])("runs %s", (_kind, spec) => {
  expect(selected([spec], {})).toEqual([spec]);
});

test.each([
  ["a spec about provisioners", "[sig-storage] CSI Mock volume attach"],
  ["a spec of a feature that is to be set up", "[sig-node] Pods [Feature:Example] run"],
  ["a spec that breaks nodes", "[sig-node] Kubelet [Disruptive] restarts"],
  ["a spec that takes long", "[sig-apps] Job [Slow] ends"],
])("does not run %s", (_kind, spec) => {
  expect(selected([spec], {})).toEqual([]);
});

test("runs specs about Services where kube-proxy and CoreDNS run on the plain cluster, too", () => {
  const spec = "[sig-network] Services should serve a basic endpoint from pods [Conformance]";
  for (const side of ["plain", "delegated"] as const) expect(selected([spec], {}, side)).toEqual([spec]);
  for (const side of ["whole", "devices", "door", "kueue"] as const) expect(selected([spec], {}, side)).toEqual([]);
});

test("runs specs with a driver of devices where the member has the devices, in place of the delegated side", () => {
  const driven = "[sig-node] [DRA] control plane supports init containers";
  const stored = "[sig-node] [DRA] CRUD Tests resource.k8s.io/v1 ResourceClaim [Conformance]";
  expect(selected([PODS, driven, stored], {}, "devices")).toEqual([driven]);
  expect(selected([PODS, driven, stored], {}, "delegated")).toEqual([PODS, stored]);
  expect(selected([PODS, driven, stored], {}, "plain")).toEqual([PODS, driven, stored]);
});

test("runs all specs of Jobs, and no others, on the side of whole Jobs", () => {
  const gated = "[sig-apps] Job should allow updating pod resources [FeatureGate:MutableResources] [Beta]";
  const setUp = "[sig-apps] Job should create a Workload [FeatureGate:Workload] [Alpha] [Feature:OffByDefault]";
  expect(selected([PODS, gated, setUp], {}, "whole")).toEqual([gated]);
});

test("runs Kueue's specs of Jobs and pods, and none of what runs beside Kueue, on both sides that have Kueue", () => {
  const jobs = "Kueue when Creating a Job With Queueing Should unsuspend a job and set nodeSelectors";
  const group = "Pod groups when Single CQ should admit group that fits";
  const apart = ["Metrics when workload is admitted", "Kueue visibility server when There are pending workloads", PODS];
  expect(selected([jobs, group, ...apart], {}, "plain-kueue")).toEqual([jobs, group]);
  expect(selected([jobs, group, ...apart], {}, "kueue")).toEqual([jobs, group]);
});

test("keeps specs that match the focus, and leaves out those that match the skip", () => {
  expect(selected([PODS, VOLUMES], { focus: /EmptyDir/ })).toEqual([VOLUMES]);
  expect(selected([PODS, VOLUMES], { skip: /EmptyDir/ })).toEqual([PODS]);
});

test("puts every spec into one batch, and serial ones into separate batches", () => {
  const serial = "[sig-apps] Daemon set [Serial] should run";
  expect(batchesOf(["a", serial, "b", "c"], 2)).toEqual({ parallel: [["a", "b"], ["c"]], serial: [[serial]] });
});
