import { describe, expect, test } from "vitest";
import { deployment, plan, whyNot } from "../plan/plan-with.ts";
import { host } from "./host.ts";

describe("the place of a Deployment's replicas", () => {
  test("needs a node that the pod selects", async () => {
    const ssd = await plan(host({ west: {} }), deployment(1, {}, { nodeSelector: { disk: "ssd" } }));
    expect(ssd.fits).toBe(true);
    const hdd = await plan(host({ west: {} }), deployment(1, {}, { nodeSelector: { disk: "hdd" } }));
    expect(whyNot(hdd, "west")).toEqual(["none of its 2 nodes is one that the pod selects"]);
    const named = await plan(
      host({ west: {} }),
      deployment(1, {}, { nodeSelector: { "kubernetes.io/hostname": "n1" } }),
    );
    expect(named).toMatchObject({
      fits: true,
      guesses: [{ cluster: "west", message: expect.stringContaining("label kubernetes.io/hostname of nodes") }],
    });
  });

  test("is a guess where the host does not know the nodes", async () => {
    const { guesses } = await plan(host({ west: { status: { nodeKinds: [] } } }), deployment(1));
    expect(guesses).toEqual([{ cluster: "west", message: expect.stringContaining("what its nodes are like") }]);
  });

  test("is a guess where a pod needs the host's API server and the Cluster has no homeAPI", async () => {
    const insisting = deployment(1, { "legation.dev/api": "host" });
    const { guesses } = await plan(host({ west: {} }), insisting);
    expect(guesses).toEqual([{ cluster: "west", message: expect.stringContaining("has no spec.homeAPI") }]);
    const told = { west: { spec: { homeAPI: { server: "https://10.0.0.1:6443" } } } };
    expect((await plan(host(told), insisting)).guesses).toEqual([]);
  });
});
