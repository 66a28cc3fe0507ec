import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { clusterNamed, controllerOf } from "./agents-scene.ts";

describe("a new join of a Cluster with an agent", () => {
  test("begins anew after its Cluster has left, but not after a change of it", async () => {
    const { controller, events, forgotten } = await controllerOf([clusterNamed("west")]);
    await controller.start();
    events.emit("cluster", "west");
    events.emit("cluster", "east");
    expect(forgotten).toEqual(["east"]);
  });
});

describe("the way of pods to the home API through an agent", () => {
  test.each<[string, Partial<Cluster["spec"]>, boolean]>([
    ["is open where the Cluster says so", { agent: { homeAPI: true } }, true],
    ["is closed without that", { agent: {} }, false],
    ["is closed where pods use another address", { agent: { homeAPI: true }, homeAPI: { server: "https://h" } }, false],
    ["is closed without an agent", {}, false],
  ])("%s", async (_, spec, isOpen) => {
    const { controller } = await controllerOf([clusterNamed("west", spec)]);
    await controller.start();
    const refusal = controller.homeApiRefusal("west");
    if (isOpen) expect(refusal).toBeUndefined();
    else expect(refusal).toContain("run `legation join west --agent --home-api-through-agent` again");
    expect(controller.homeApiRefusal("north")).toContain("pods of Cluster north do not reach");
  });

  test("wakes pods that wait for it once for each address that the agent tells", async () => {
    const { controller, told, events } = await controllerOf([clusterNamed("west", { agent: { homeAPI: true } })]);
    await controller.start();
    const heard: string[] = [];
    events.on("homeApi", () => heard.push("homeApi"));
    events.on("agent", (name) => heard.push(name));
    controller.onFacts("west");
    told.homeAddress = "10.96.7.7";
    controller.onFacts("west");
    controller.onFacts("west");
    expect(heard).toEqual(["west", "west", "homeApi", "west"]);
  });

  test("is known to other shards by the Cluster's status, which wakes their pods once", async () => {
    const west = clusterNamed("west", { agent: { homeAPI: true } });
    const known = [west];
    const { controller, events } = await controllerOf(known, { shard: { index: 1, count: 2 } });
    let heard = 0;
    events.on("homeApi", () => (heard += 1));
    events.emit("clusterStatus", "west");
    expect([controller.homeAddress("west"), heard]).toEqual([undefined, 0]);
    const agent = { connectedSince: "2026-01-01T00:00:00Z", homeAddress: "10.96.7.7" };
    known[0] = { ...west, status: { agent } };
    for (let time = 0; time < 2; time += 1) events.emit("clusterStatus", "west");
    expect([controller.homeAddress("west"), heard]).toEqual(["10.96.7.7", 1]);
  });
});
