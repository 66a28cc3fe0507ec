import { describe, expect, test } from "vitest";
import { endedStatus, proxyPod } from "../../../support/builders/pod.ts";
import { deployment, division, plan, whyNot } from "../plan/plan-with.ts";
import { host } from "./host.ts";

const preferences = (clusters: object): Record<string, string> => ({
  "legation.dev/scheduling-preferences": JSON.stringify({ clusters }),
});

describe("the place of a Deployment's replicas", () => {
  test("is divided evenly by the members' size", async () => {
    const planned = await plan(host({ east: {}, west: {} }), deployment(4));
    expect(planned).toMatchObject({ fits: true, guesses: [] });
    expect(planned.workloads[0]).toMatchObject({ kind: "Deployment", namespace: "team", name: "web", outcome: "fits" });
    expect(division(planned)).toEqual({ east: 2, west: 2 });
    expect(planned.workloads[0]?.pods.map(({ name, cluster }) => [name, cluster])).toEqual([
      ["web-planned-*0", "east"],
      ["web-planned-*1", "west"],
      ["web-planned-*2", "east"],
      ["web-planned-*3", "west"],
    ]);
  });

  test("follows the scheduling preferences", async () => {
    const annotations = preferences({ west: { weight: 3 }, "*": { weight: 1, maxReplicas: 2 } });
    const planned = await plan(host({ east: {}, west: {}, north: {} }), deployment(10, annotations));
    expect(division(planned)).toEqual({ east: 2, north: 2, west: 6 });
    expect(whyNot(planned, "east")).toContain("west is better by legation.dev/scheduling-preferences");
  });

  test("follows a spread over a label up to its maxSkew", async () => {
    const spread = JSON.stringify([{ topologyKey: "region" }]);
    const members = {
      east: { labels: { region: "us" } },
      west: { labels: { region: "eu" }, status: { allocatable: { cpu: "1", pods: "220", memory: "64Gi" } } },
    };
    const planned = await plan(host(members), deployment(4, { "legation.dev/cluster-spread": spread }));
    expect(planned.fits).toBe(false);
    expect(division(planned)).toEqual({ east: 2, west: 1 });
    expect(planned.workloads[0]).toMatchObject({ outcome: "waits" });
    expect(planned.workloads[0]?.pods[3]).toMatchObject({
      waitsIn: "west",
      reason: "NotPlaced",
      message:
        "east: one more pod would be too many: region=us has 2, the fewest is 1, and maxSkew is 1; west: cpu: 1 requested, 0 left",
    });
  });

  test("names the override that fails", async () => {
    const overrides = [{ clusters: ["west"], patch: [{ op: "remove", path: "/spec/priorityClassName" }] }];
    const planned = await plan(
      host({ east: {}, west: {} }),
      deployment(2, { "legation.dev/overrides": JSON.stringify(overrides) }),
    );
    expect(division(planned)).toEqual({ east: 2, west: 0 });
    expect(whyNot(planned, "west")).toEqual([
      "legation.dev/overrides: [0].patch[0]: remove /spec/priorityClassName: the pod has nothing there",
    ]);
  });

  test("is in no member whose override changes the host's tokens", async () => {
    const volume = (name: string, audience: string): object => ({
      name,
      projected: { sources: [{ serviceAccountToken: { path: "token", audience } }] },
    });
    const patch = [{ op: "add", path: "/spec/volumes/0", value: volume("vault", "vault") }];
    const overrides = { "legation.dev/overrides": JSON.stringify([{ clusters: ["west"], patch }]) };
    const spec = { volumes: [volume("api", "")] };
    const planned = await plan(host({ east: {}, west: {} }), deployment(2, overrides, spec));
    expect(whyNot(planned, "west")).toEqual([
      "legation.dev/overrides: a patch changes the service account tokens that the pod mounts, which are the host's",
    ]);
    const own = deployment(2, { ...overrides, "legation.dev/api": "member" }, spec);
    expect(division(await plan(host({ east: {}, west: {} }), own))).toEqual({ east: 1, west: 1 });
  });

  test("counts running and waiting pods, and no finished ones", async () => {
    const spec = { containers: [{ name: "main", resources: { requests: { cpu: "7" } } }] };
    const proxies = [
      proxyPod({ name: "a", uid: "a", spec: { ...spec, nodeName: "legation-east" } }),
      proxyPod({ name: "b", uid: "b", spec: { ...spec, nodeName: "legation-west" }, status: endedStatus(0) }),
      proxyPod({ name: "c", uid: "c", spec, metadata: { annotations: { "legation.dev/clusters": "east" } } }),
    ];
    const planned = await plan(host({ east: {}, west: {} }, { proxies }), deployment(8));
    expect(division(planned)).toEqual({ east: 0, west: 8 });
    expect(whyNot(planned, "east")).toEqual([
      "west has more room: with the pod it would be 50 % full, and this member 94 %",
    ]);
  });

  test("is one member for a whole group", async () => {
    const grouped = { "legation.dev/group": "flow" };
    const other = { ...deployment(1, grouped), metadata: { ...deployment(1, grouped).metadata, name: "other" } };
    const planned = await plan(host({ east: {}, west: {} }), deployment(3, grouped), other);
    expect(planned.workloads.flatMap(({ pods }) => pods.map(({ cluster }) => cluster))).toEqual(Array(4).fill("east"));
    expect(whyNot(planned, "west")).toContain("group flow runs in east");
  });
});
