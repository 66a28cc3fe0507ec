import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VIRTUAL_NODE_LABEL } from "../../../../src/api/keys.ts";
import { type KubeNode, objectKey, type Pod } from "../../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES } from "../../../../src/api/shards.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { VirtualNodeController } from "../../../../src/controllers/virtual-node/controller.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { connect } from "../../../support/fault-server/connect.ts";
import { FaultServer } from "../../../support/fault-server/fault-server.ts";
import { registryOf } from "../fleet.ts";

let server: FaultServer;
let client: ClusterClient;
let woken: string[];
let controller: VirtualNodeController;
let events: Events<ControllerEvents>;
let clock: FakeClock;
let observed: number;

beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server);
  woken = [];
  // Not read yet: its node needs no write.
  const west = member("west", client, { syncing: true, read: false, setVirtualNode: () => false });
  events = new Events();
  clock = new FakeClock();
  observed = 0;
  events.on("nodeReadiness", (cluster) => woken.push(cluster));
  controller = new VirtualNodeController({
    host: client,
    registry: registryOf([], { member: () => west }),
    proxies: new Store<Pod>(),
    shard: ALL_NAMESPACES,
    waitingIn: () => 0,
    kept: { countIn: () => 0 },
    networkProblem: () => {
      observed += 1;
      return undefined;
    },
    clock,
    log: createLogger({ level: "silent" }),
    events,
  });
});
afterEach(async () => {
  await controller.stop();
  await client.close();
  await server.stop();
});

function put({ spec, status }: Pick<KubeNode, "spec" | "status">): void {
  server.world.put({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "legation-west", labels: { [VIRTUAL_NODE_LABEL]: "west" } },
    ...(spec === undefined ? {} : { spec }),
    ...(status === undefined ? {} : { status }),
  } as KubeNode);
}

test("wakes proxies when their node's readiness or taints change, and not for its heartbeats", async () => {
  const ready = { type: "Ready", status: "True" };
  put({ status: { conditions: [ready] } });
  await controller.start(new AbortController().signal);
  expect(woken.splice(0)).toEqual(["west"]);

  put({ status: { conditions: [ready], phase: "Running" } });
  put({
    spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] },
    status: { conditions: [ready] },
  });
  await expect.poll(() => controller.nodes.list()[0]?.spec?.taints).toHaveLength(1);
  expect(woken.splice(0)).toEqual(["west"]);

  put({ status: { conditions: [ready] } });
  await expect.poll(() => controller.nodes.list()[0]?.spec?.taints).toBeUndefined();
  expect(woken.splice(0)).toEqual(["west"]);

  put({ status: { conditions: [{ ...ready, status: "False" }] } });
  await expect.poll(() => woken.splice(0)).toEqual(["west"]);
});

test("counts the proxies that were bound to a node one after the other together", async () => {
  put({});
  await controller.start(new AbortController().signal);
  await expect.poll(() => observed).toBeGreaterThan(0);
  observed = 0;
  for (let index = 0; index < 50; index += 1) {
    events.emit("bound", "west", objectKey({ namespace: "default", name: `pod-${index}` }));
    await setImmediate();
  }
  await clock.advance(200);
  await expect.poll(() => observed).toBe(1);
});
