import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { ClusterProfileStatus, Stored } from "../../../../src/api/kubernetes.ts";
import { type Action, decide, type Observed } from "../../../../src/controllers/cluster-profiles/decide.ts";
import { wantedStatus, withTimes } from "../../../../src/controllers/cluster-profiles/decide-status.ts";
import { cluster, HOST_ADDRESS, NOW, profile, ready } from "./profiles.ts";

function observed(parts: Partial<Observed> = {}): Observed {
  const found = "cluster" in parts ? parts.cluster : cluster();
  return {
    namespace: "legation-system",
    name: "west",
    cluster: found,
    status: found && wantedStatus(found, HOST_ADDRESS),
    profile: undefined,
    heldUntil: {},
    ...parts,
  };
}

/** Returns the status of the Cluster as it was written a day ago. */
function written(of: Stored<Cluster> = cluster()): ClusterProfileStatus {
  return withTimes(wantedStatus(of, HOST_ADDRESS), undefined, NOW - 86_400_000);
}

function types(actions: readonly Action[]): string[] {
  return actions.map(({ type }) => type);
}

function managed(fields: object): object {
  return { manager: "legation", operation: "Apply", subresource: "status", fieldsV1: { "f:status": fields } };
}

describe("the ClusterProfile of a Cluster", () => {
  test("is created with the manager's label, and goes with its Cluster", () => {
    expect(decide(observed(), NOW).actions).toEqual([
      {
        type: "create",
        profile: {
          metadata: {
            namespace: "legation-system",
            name: "west",
            labels: { "x-k8s.io/cluster-manager": "legation" },
            ownerReferences: [
              { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", name: "west", uid: "cluster-uid" },
            ],
          },
          spec: { displayName: "west", clusterManager: { name: "legation" } },
        },
      },
    ]);
  });

  test("gets its status once it is there", () => {
    const { actions } = decide(observed({ profile: profile() }), NOW);
    expect(types(actions)).toEqual(["status"]);
    expect(actions[0]).toMatchObject({
      status: {
        version: { kubernetes: "v1.36.3" },
        properties: [
          { name: "legation.dev/member-uid", value: "member-uid" },
          { name: "region", value: "eu" },
        ],
        accessProviders: [
          {
            name: "legation",
            cluster: {
              server: "https://host:6443/apis/access.legation.dev/v1/clusters/west/proxy",
              "certificate-authority-data": "Q0E=",
              extensions: [{ name: "client.authentication.k8s.io/exec", extension: { clusterName: "west" } }],
            },
          },
        ],
        conditions: [
          { type: "ControlPlaneHealthy", status: "True", lastTransitionTime: "2026-02-03T00:00:00Z" },
          { type: "Joined", status: "True", reason: "Joined" },
        ],
      },
    });
  });

  test("is not written again while nothing of it changes", () => {
    const counted = cluster({ status: { ...ready("ProbeSucceeded"), pods: 12, nodes: 3, allocatable: { cpu: "7" } } });
    const kept = profile({
      spec: { displayName: "The West", clusterManager: { name: "legation" } },
      status: written(),
    });
    expect(decide(observed({ cluster: counted, profile: kept }), NOW)).toEqual({ actions: [], outcome: "InStep" });
  });

  test("is not written again for another error of the same probe", () => {
    const lost = cluster({ status: ready("ProbeFailed") });
    const status = written(lost);
    const conditions = lost.status?.conditions?.map((condition) => ({ ...condition, message: "connect ETIMEDOUT" }));
    const later = { ...ready("ProbeFailed"), conditions: conditions ?? [] };
    const now = cluster({ status: later });
    expect(decide(observed({ cluster: now, profile: profile({ status }) }), NOW).actions).toEqual([]);
  });

  test("keeps the time of a condition whose status stays", () => {
    const status = written();
    const changed = cluster({ metadata: { labels: { region: "us" } } });
    const { actions } = decide(observed({ cluster: changed, profile: profile({ status }) }), NOW);
    expect(actions).toMatchObject([
      {
        type: "status",
        status: { conditions: [{ lastTransitionTime: "2026-02-02T00:00:00Z" }, {}] },
      },
    ]);
  });

  test("has its access provider removed when the Cluster closes its door", () => {
    const metadata = { managedFields: [managed({ "f:accessProviders": { 'k:{"name":"legation"}': {} } })] };
    const closed: Stored<Cluster> = { ...cluster(), spec: { credentialsSecret: { name: "member-west" } } };
    const before = profile({ metadata, status: written() });
    const { actions } = decide(observed({ cluster: closed, profile: before }), NOW);
    expect(types(actions)).toEqual(["status"]);
    // The API server removes the fields that an apply leaves out.
    expect(actions[0]).not.toHaveProperty("status.accessProviders");
  });

  test("has no access provider until the host's authority is known", () => {
    const status = wantedStatus(cluster(), { ...HOST_ADDRESS, certificateAuthorityData: undefined });
    expect(status.accessProviders).toEqual([]);
  });

  test.each([
    ["of a list by name", { 'k:{"name":"zone"}': {} }, ["status"]],
    ["of an atomic list", {}, ["status"]],
    ["of another item", { 'k:{"name":"region"}': {} }, []],
  ])("loses an earlier property %s only if Legation set it", (_, fields, expected) => {
    const metadata = { managedFields: [managed({ "f:properties": fields })] };
    const status = written();
    const properties = [...(status.properties ?? []), { name: "zone", value: "eu-1" }];
    const before = profile({ metadata, status: { ...status, properties } });
    expect(types(decide(observed({ profile: before }), NOW).actions)).toEqual(expected);
  });

  test("keeps conditions and access providers of other managers", () => {
    const status = written();
    const other = { type: "AllNodesHealthy", status: "True", reason: "Fine", message: "" };
    const more: ClusterProfileStatus = {
      ...status,
      conditions: [other, ...(status.conditions ?? [])],
      accessProviders: [{ name: "google", cluster: { server: "https://gke" } }, ...(status.accessProviders ?? [])],
    };
    expect(decide(observed({ profile: profile({ status: more }) }), NOW).actions).toEqual([]);
  });

  test("gets its label back, and the owner of a Cluster that was made again", () => {
    const other = { apiVersion: "v1", kind: "ConfigMap", name: "west", uid: "other" };
    const old = { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", name: "west", uid: "old" };
    const before = profile({ metadata: { labels: {}, ownerReferences: [other, old] }, status: written() });
    expect(decide(observed({ profile: before }), NOW).actions).toMatchObject([
      {
        type: "patch",
        metadata: {
          labels: { "x-k8s.io/cluster-manager": "legation" },
          ownerReferences: [other, { kind: "Cluster", uid: "cluster-uid" }],
        },
      },
    ]);
  });

  test("is deleted when its Cluster is gone, or its namespace asks for none any more", () => {
    const found = profile();
    expect(decide(observed({ cluster: undefined, profile: found }), NOW).actions).toEqual([
      { type: "delete", profile: found },
    ]);
  });

  test("is left alone while it is being deleted", () => {
    const going = profile({ metadata: { deletionTimestamp: "2026-02-03T00:00:00Z" } });
    expect(decide(observed({ profile: going }), NOW).actions).toEqual([]);
    expect(decide(observed({ cluster: undefined, profile: going }), NOW).actions).toEqual([]);
  });

  test("waits with a write that is held, and not with the others", () => {
    const before = profile({ metadata: { labels: {} } });
    const heldUntil = { status: NOW + 1000, create: NOW + 5 };
    const { actions, requeueAt, outcome } = decide(observed({ profile: before, heldUntil }), NOW);
    expect(types(actions)).toEqual(["patch"]);
    expect({ requeueAt, outcome }).toEqual({ requeueAt: NOW + 1000, outcome: "Held" });
  });
});

describe("a ClusterProfile of another manager", () => {
  const foreign = profile({ spec: { clusterManager: { name: "fleet" } }, metadata: { labels: {} } });

  test("is never changed, and the operator is told", () => {
    const { actions } = decide(observed({ profile: foreign }), NOW);
    expect(types(actions)).toEqual(["tell"]);
    expect(actions[0]).toMatchObject({
      message: expect.stringMatching(/^ClusterProfile legation-system\/west .*spec\.clusterManager\.name is "fleet"/),
    });
  });

  test("stays when there is no such Cluster", () => {
    expect(decide(observed({ cluster: undefined, profile: foreign }), NOW).actions).toEqual([]);
  });
});
