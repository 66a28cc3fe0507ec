import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../../src/api/cluster.ts";
import type { ClusterCondition } from "../../../../../src/api/cluster-status.ts";
import type { Lease, Stored } from "../../../../../src/api/kubernetes.ts";
import {
  endpointsFinding,
  importsFindings,
  networkFindings,
} from "../../../../../src/cli/explain/installation/joined-network.ts";
import { serving } from "../../../../support/builders/discovery.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { NOW, signal, stored } from "./given.ts";

function cluster(...conditions: Partial<ClusterCondition>[]): Stored<Cluster> {
  const made = conditions.map((parts) => ({
    ...{ type: "Ready", status: "True" as const, reason: "R", message: "why" },
    lastTransitionTime: "2026-11-27T11:55:00Z",
    ...parts,
  }));
  return {
    metadata: { name: "west", ...stored },
    spec: { credentialsSecret: { name: "member-west" }, network: "corp" },
    status: { conditions: made },
  };
}

function lease(renewTime: string): Stored<Lease> {
  return { metadata: { name: "legation-west", ...stored }, spec: { leaseDurationSeconds: 40, renewTime } };
}

const FRESH = lease("2026-11-27T11:59:50Z");
const EXPIRED = lease("2026-11-27T11:50:00Z");

describe("the endpoints of other clusters in a member", () => {
  test.each<[string, Stored<Cluster>, Stored<Lease> | undefined, string, string]>([
    ["follow their pods while it is reached", cluster({}), FRESH, "OK", "in network corp follow their pods"],
    ["are as old as its loss", cluster({ status: "False" }), FRESH, "WARN", "as they were 5m ago"],
    ["are as old as the silence of controllers", cluster({}), EXPIRED, "WARN", "as they were 10m ago"],
    ["are as old as the first of both", cluster({ status: "False" }), EXPIRED, "WARN", "as they were 10m ago"],
    ["are judged without a Lease", cluster({}), undefined, "OK", "follow their pods"],
    [
      "are not there if it is left out",
      cluster({}, { type: "NetworkJoined", status: "False", message: "its pods have addresses of 10.1.0.0/16" }),
      FRESH,
      "FAIL",
      "west: its pods have addresses of 10.1.0.0/16",
    ],
  ])("%s", (_, of, held, state, what) => {
    expect(endpointsFinding(of, held, NOW)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test("are nothing to check without a network", async () => {
    const host = fakeClient({ find: async () => EXPIRED });
    const at = { now: NOW, signal };
    const { network: _, ...spec } = cluster({}).spec;
    expect(await networkFindings(host, { ...cluster({}), spec }, at)).toEqual([]);
    expect(await networkFindings(host, cluster({}), at)).toMatchObject([{ state: "WARN" }]);
  });
});

test.each([
  ["are made where the member serves them", ["serviceimports"], [{ state: "OK" }]],
  ["are missing where it does not", [], [{ state: "WARN", what: expect.stringContaining("serves no ServiceImports") }]],
] as const)("imports of a network %s", async (_, plurals, findings) => {
  const raw = serving({ group: "multicluster.x-k8s.io", versions: { v1beta1: plurals } });
  expect(await importsFindings(fakeClient({ raw }), cluster({}), signal)).toMatchObject(findings);
  const { network: _network, ...spec } = cluster({}).spec;
  expect(await importsFindings(fakeClient({ raw }), { ...cluster({}), spec }, signal)).toEqual([]);
});
