import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { wantedStatus } from "../../../../src/controllers/cluster-profiles/decide-status.ts";
import { cluster, HOST_ADDRESS, ready } from "./profiles.ts";

describe("the conditions of a ClusterProfile", () => {
  const leaving = { metadata: { deletionTimestamp: "2026-02-03T00:00:00Z" } };
  test.each<[string, Stored<Cluster>, string, string]>([
    ["that has not been probed", cluster({ status: {} }), "Unknown NotProbed", "False NeverConnected"],
    ["that answers", cluster(), "True ProbeSucceeded", "True Joined"],
    ["whose Node the host refuses", cluster({ status: ready("NodeRefused") }), "True ProbeSucceeded", "True Joined"],
    ["that does not answer", cluster({ status: ready("ProbeFailed") }), "False ProbeFailed", "True Joined"],
    [
      "that has never answered",
      cluster({ status: ready("ProbeFailed", {}) }),
      "False ProbeFailed",
      "False NeverConnected",
    ],
    ["that joined twice", cluster({ status: ready("JoinedTwice") }), "Unknown NotProbed", "False JoinedTwice"],
    ["of another cluster", cluster({ status: ready("AnotherCluster") }), "Unknown NotProbed", "False AnotherCluster"],
    ["that leaves", cluster(leaving), "True ProbeSucceeded", "False Leaving"],
  ])("tell of a member %s", (_, of, healthy, joined) => {
    const { conditions } = wantedStatus(of, HOST_ADDRESS);
    expect(conditions.map(({ type, status, reason }) => `${type}: ${status} ${reason}`)).toEqual([
      `ControlPlaneHealthy: ${healthy}`,
      `Joined: ${joined}`,
    ]);
  });

  test("fit the schema of the definition", () => {
    for (const { reason, message } of wantedStatus(cluster(), HOST_ADDRESS).conditions) {
      expect(reason).toMatch(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/);
      expect(message).not.toBe("");
    }
  });
});

test("leaves out labels that no property can hold", () => {
  const labels = { region: "", [`${"a".repeat(253)}/b`]: "x", zone: "1" };
  const { properties } = wantedStatus(cluster({ metadata: { labels, annotations: {} } }), HOST_ADDRESS);
  expect(properties).toEqual([{ name: "zone", value: "1" }]);
});
