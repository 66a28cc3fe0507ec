import { expect, test } from "vitest";
import { labelsFromCluster } from "../../../src/api/virtual-node.ts";

test.each([
  ["a domain of the host's topology spread", "kubernetes.io/hostname"],
  ["what draws DaemonSets to it", "kubernetes.io/os"],
  ["the mark of the application that the Cluster belongs to", "app.kubernetes.io/instance"],
  ["the mark of the chart that made the Cluster", "helm.sh/chart"],
])("a virtual node does not get from its Cluster %s: %s", (_what, label) => {
  expect(labelsFromCluster({ [label]: "x", "topology.kubernetes.io/region": "eu" })).toEqual({
    "topology.kubernetes.io/region": "eu",
  });
});
