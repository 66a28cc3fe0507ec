import { describe, expect, test } from "vitest";
import type { ServiceObject } from "../../../../src/copies/services.ts";
import { host, type MemberParts, namespace } from "../simulation/host.ts";
import { deployment, division, plan, planWith, whyNot } from "./plan-with.ts";

describe("the place of a Deployment's replicas", () => {
  test("is in no member that refuses them, and names each reason", async () => {
    const members: Record<string, MemberParts> = {
      cordoned: { node: { unschedulable: true } },
      forbidden: { spec: { namespaceSelector: { matchLabels: { team: "gold" } } } },
      limited: { spec: { limits: { total: { cpu: "500m" } } } },
      lost: {
        status: {
          conditions: [{ type: "Ready", status: "False", reason: "R", message: "it hangs", lastTransitionTime: "x" }],
        },
      },
      nodeless: {
        status: {
          conditions: [
            { type: "Ready", status: "False", reason: "NodeRefused", message: "m", lastTransitionTime: "x" },
          ],
        },
      },
      unreadable: {
        status: {
          conditions: [
            {
              type: "Ready",
              status: "False",
              reason: "ProbeFailed",
              message: "its pods cannot be read: forbidden",
              lastTransitionTime: "x",
            },
          ],
        },
      },
      small: {
        status: { largestNode: { cpu: "500m", pods: "10" }, allocatable: { cpu: "4", pods: "10" }, nodeKinds: [] },
      },
      tainted: { spec: { taints: [{ key: "team", value: "gold", effect: "NoSchedule" }] } },
      unknown: { status: { conditions: [] } },
      west: {},
    };
    const planned = await plan(host(members), deployment(2));
    expect(planned.fits).toBe(true);
    const reasons = planned.workloads[0]?.clusters.map(({ cluster, whyNot: why }) => [cluster, why[0]?.message]);
    expect(Object.fromEntries(reasons ?? [])).toEqual({
      cordoned: "its virtual node is cordoned",
      forbidden: "its namespaceSelector does not admit namespace team",
      limited: "its limit of cpu: 1 requested, 500m of 500m left",
      lost: "it is not ready: it hangs",
      nodeless: "the host has no virtual node for it; if this lasts, its Cluster's condition Ready says why",
      small: "cpu: 1 requested, the largest node has 500m",
      tainted: "the pod does not tolerate its taint team=gold:NoSchedule",
      unknown: "no controller has reported on it: does `legation controller` run?",
      unreadable: "it is not ready: its pods cannot be read: forbidden",
      west: undefined,
    });
  });

  test("is none when no member may have them, in the words of their condition", async () => {
    const planned = await plan(host({ east: {} }), deployment(1, { "legation.dev/clusters": "west" }));
    expect(planned.workloads[0]?.pods).toEqual([
      {
        name: "web-planned-*0",
        reason: "NotPlaced",
        message: "east: not named by legation.dev/clusters; west: no Cluster of that name has joined",
      },
    ]);
    expect(whyNot(planned, "west")).toEqual(["no Cluster of that name has joined"]);
  });

  test("follows the namespace's annotations and PlacementDefaults", async () => {
    const defaults = [
      {
        metadata: { name: "default", uid: "d", resourceVersion: "1" },
        spec: { clusterSelector: { matchLabels: { tier: "gold" } } },
      },
    ];
    const members = { east: { labels: { tier: "gold" } }, west: {} };
    expect(division(await plan(host(members, { defaults }), deployment(2)))).toEqual({ east: 2, west: 0 });
    const namespaces = [
      namespace("team", {
        labels: { "legation.dev/delegation": "all" },
        annotations: { "legation.dev/cluster-selector": "tier!=gold" },
      }),
    ];
    expect(division(await plan(host(members, { defaults, namespaces }), deployment(2)))).toEqual({ east: 0, west: 2 });
  });
});

describe("a Service of divided replicas", () => {
  const EQUALLY = { "legation.dev/scheduling-preferences": '{"clusters":{"*":{"weight":1}}}' };
  const service = (
    name: string,
    metadata: object = {},
    spec: object = { selector: { app: "web" } },
  ): ServiceObject => ({
    metadata: { name, namespace: "team", ...metadata },
    spec,
  });

  async function notes(
    networks: readonly (string | undefined)[],
    services: readonly ServiceObject[],
  ): Promise<unknown> {
    const members = networks.map((network, index) => [`m${index}`, network === undefined ? {} : { spec: { network } }]);
    const state = host(Object.fromEntries(members));
    return (await planWith(state, [deployment(4, EQUALLY)], { found: { services } })).workloads[0]?.notes;
  }

  test("leads to a part of them where no network joins their members", async () => {
    const words = "leads to the pods of the same member or network only: m0, m1 are in no network together";
    for (const networks of [
      [undefined, undefined],
      ["corp", "lab"],
      ["corp", undefined],
    ]) {
      expect(await notes(networks, [service("web")])).toEqual([expect.stringContaining(`Service web ${words}`)]);
    }
    expect(await notes(["corp", "corp"], [service("web")])).toEqual([]);
  });

  test("is no matter where it selects other pods, or goes to members whole", async () => {
    const others = [
      service("db", {}, { selector: { app: "db" } }),
      service("elsewhere", { namespace: "other" }),
      service("open", {}, {}),
      service("whole", { annotations: { "legation.dev/whole": "true" } }),
    ];
    expect(await notes([undefined, undefined], others)).toEqual([]);
  });
});
