import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/virtual-node/decide.ts";
import { desiredStatus } from "../../../../src/controllers/virtual-node/decide-node.ts";
import { clusterStatus } from "../../../../src/controllers/virtual-node/decide-status.ts";
import type { Observed } from "../../../../src/controllers/virtual-node/model.ts";
import { cluster, facts, now, observed, ready, stored, types } from "./observed.ts";

describe("the status of a Cluster", () => {
  test("is Ready and says what takes long in a member that is slow, as does its node", () => {
    const slow = "its pods are being listed since 2026-01-01T00:00:00Z";
    const seen = observed({ node: stored(), facts: facts({ slow, nodesRead: false }) });
    expect(desiredStatus(seen, stored(), now).conditions).toMatchObject([
      { status: "True", reason: "MemberSlow", message: `the API server of Cluster west answers, but ${slow}` },
    ]);
    const [condition] = (clusterStatus(seen, now)?.body as { conditions: unknown[] } | undefined)?.conditions ?? [];
    const message = `its API server answers, but is slow: ${slow}`;
    expect(condition).toMatchObject({ type: "Ready", status: "True", reason: "Slow", message });
  });

  test("says how its member is reached, with the agent as it last connected", () => {
    const { metadata, spec } = cluster();
    const behindAgent = { metadata, spec: { ...spec, agent: {} } };
    const homeAddress = "10.96.7.7";
    const agent = {
      version: "1.2.3",
      connectedSince: "2026-02-03T04:04:06Z",
      certificateExpires: "2026-02-03T04:06:06Z",
      homeAddress,
    };
    const statusOf = (parts: Partial<Observed>): object | undefined =>
      decide(observed({ node: stored(), reportedAt: 0, ...parts }), now).actions.flatMap((action) =>
        action.type === "patchClusterStatus" ? action.status : [],
      )[0];
    expect(statusOf({ cluster: cluster() })).toMatchObject({ connection: "Direct" });
    expect(statusOf({ cluster: behindAgent, facts: facts({ agent }) })).toMatchObject({
      connection: "Agent",
      agent,
    });
    const reported = { ...ready, connection: "Agent" as const, agent };
    const known = { ...behindAgent, status: reported };
    expect(statusOf({ cluster: known, facts: facts({ agent }) })).toBeUndefined();
    const renewed = { ...agent, certificateExpires: "2026-02-03T04:07:06Z" };
    expect(statusOf({ cluster: known, facts: facts({ agent: renewed }) })).toMatchObject({
      agent: { certificateExpires: "2026-02-03T04:07:06Z" },
    });
    const { homeAddress: _, ...direct } = agent;
    expect(statusOf({ cluster: known, facts: facts({ agent: direct }) })).toMatchObject({
      agent: { homeAddress: null },
    });
    // The agent's version stays while no agent is connected, and goes with a join without one.
    expect(statusOf({ cluster: known })).toBeUndefined();
    expect(statusOf({ cluster: { ...known, spec } })).toMatchObject({ connection: "Direct", agent: null });
  });
});

test("a Cluster says why it is left out of its network, as long as it is", () => {
  const reason = "PodNetworksOverlap";
  const conditionsOf = (parts: Parameters<typeof observed>[0]): unknown =>
    (clusterStatus(observed({ node: stored(), ...parts }), now)?.body as { conditions?: object[] } | undefined)
      ?.conditions;
  const left = { type: "NetworkJoined", status: "False", reason, message: "its pods have addresses of 10.1.0.0/16" };
  expect(conditionsOf({ facts: facts({ networkProblem: left.message }) })).toMatchObject([{ type: "Ready" }, left]);
  const { metadata, spec } = cluster();
  const known = { metadata, spec, status: { ...ready, conditions: [...(ready.conditions ?? []), left] } } as Cluster;
  expect(
    conditionsOf({ cluster: known as Stored<Cluster>, facts: facts({ networkProblem: left.message }) }),
  ).toBeUndefined();
  expect(conditionsOf({ cluster: known as Stored<Cluster> })).toMatchObject([{ type: "Ready" }]);
});

test("the status of a Cluster has what this host's pods in the member request, and how many run", () => {
  const used = facts({ proxies: 3, unfinished: 2, running: 1, requested: { cpu: 1.5, pods: 2 } });
  const { actions } = decide(observed({ cluster: cluster(), node: stored(), facts: used }), now);
  expect(actions.find((action) => action.type === "patchClusterStatus")?.status).toMatchObject({
    pods: 3,
    unfinishedPods: 2,
    runningPods: 1,
    requested: { cpu: "1500m", pods: "2" },
  });
});

describe("the status of a Cluster that is being deleted", () => {
  const going = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z" });

  test.each([
    ["that answers", true, 500, "are being withdrawn"],
    ["that does not answer", false, 10_000, "`legation unjoin west --force` gives them up"],
  ])("tells of delegates without a node in a member %s", (_which, reachable, afterMs, message) => {
    const waiting = observed({ cluster: going, node: stored(), facts: facts({ waiting: 2, reachable }) });
    const { actions, outcome, requeueAt } = decide(waiting, now);
    expect({ outcome, requeueAt }).toEqual({ outcome: "Draining", requeueAt: now + afterMs });
    expect(types(actions)).not.toContain("removeFinalizer");
    expect(types(actions)).not.toContain("deleteNode");
    const written = actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).toMatchObject({
      conditions: [
        { type: "Ready" },
        { type: "Released", status: "False", reason: "PodsRemain", message: expect.stringContaining(message) },
      ],
    });
  });

  test("tells which pods on its node are waited for", () => {
    const draining = observed({ cluster: going, node: stored(), facts: facts({ proxies: 1 }) });
    const written = decide(draining, now).actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).toMatchObject({
      conditions: [{ type: "Ready" }, { type: "Released", message: "1 pod is bound to Node legation-west" }],
    });
  });

  test("keeps its earlier counts while the host's pods have not been read", () => {
    const told = cluster({ deletionTimestamp: "2026-02-03T04:05:00Z" }, { pods: 7, heldDelegates: 2 });
    const { proxies: _, ...rest } = facts();
    const unread = observed({ cluster: told, node: stored(), facts: { ...rest, proxies: undefined } });
    const { actions, outcome } = decide(unread, now);
    expect(outcome).toBe("Draining");
    expect(types(actions)).not.toContain("deleteNode");
    const written = actions.find((action) => action.type === "patchClusterStatus");
    expect(written?.status).not.toHaveProperty("pods");
    expect(written?.status).not.toHaveProperty("heldDelegates");
  });
});
