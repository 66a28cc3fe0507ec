import { expect, test } from "vitest";
import { Metrics } from "../../../../src/telemetry/metrics.ts";
import { useFleet } from "../../../support/harness/fleet.ts";
import { eventually } from "../../../support/harness/wait.ts";

const MEMBERS = 3;
const OTHERS = 50;
// Services, their slices and policies come last.
const READ_ON_HOST = 12;
// Pods and nodes. Copies are not watched before there are any.
const READ_IN_A_MEMBER = 2;
const quickly = { intervalMs: 10 };

const running = useFleet(MEMBERS, MEMBERS);

function putService(namespace: string, name: string, port = 80): void {
  const spec = { type: "ClusterIP", clusterIP: "10.0.0.1", selector: { app: "web" }, ports: [{ port }] };
  running.fleet.host.put("services", { metadata: { namespace, name }, spec });
  const slice = { labels: { "endpointslice.kubernetes.io/managed-by": "me", "kubernetes.io/service-name": name } };
  running.fleet.host.put("endpointslices", {
    metadata: { namespace, name, ...slice },
    addressType: "IPv4",
    endpoints: [],
  });
}

function putPolicy(namespace: string, name: string): void {
  running.fleet.host.put("networkpolicies", { metadata: { namespace, name }, spec: { podSelector: {} } });
}

async function addsTo(metrics: Metrics, queue: string): Promise<number> {
  const line = (await metrics.registry.metrics())
    .split("\n")
    .find((one) => one.startsWith(`workqueue_adds_total{name="${queue}"`));
  return Number(line?.split(" ").at(-1));
}

/** Counts these objects in all members. */
function countCopies(collection: string): number {
  return running.fleet.members.reduce((sum, member) => sum + member.count(collection), 0);
}

/** Starts the controllers, and waits until they receive all events. */
async function start(metrics: Metrics): Promise<void> {
  await running.start({ metrics });
  const { host, members } = running.fleet;
  const isRead = (): boolean =>
    host.openWatches >= READ_ON_HOST && members.every(({ openWatches }) => openWatches >= READ_IN_A_MEMBER);
  await eventually(isRead, quickly);
}

test("reconciles no object of a namespace without pods in any member", async () => {
  for (let other = 0; other < OTHERS; other += 1) {
    putService(`other-${other}`, "web");
    putPolicy(`other-${other}`, "web");
  }
  const metrics = new Metrics();
  await start(metrics);
  for (let other = 0; other < OTHERS; other += 1) {
    putService(`other-${other}`, "api");
    putPolicy(`other-${other}`, "api");
  }
  // Once its copies exist, the controllers know the others.
  putService("load", "web");
  putPolicy("load", "web");
  await eventually(() => countCopies("services") === MEMBERS && countCopies("networkpolicies") === MEMBERS, quickly);
  expect(await addsTo(metrics, "services")).toBeLessThan(OTHERS);
  expect(await addsTo(metrics, "network-policies")).toBeLessThan(OTHERS);
});

test("deletes copies with their sources, also after the last pod has gone", async () => {
  await start(new Metrics());
  putService("load", "web");
  putPolicy("load", "web");
  await eventually(() => countCopies("services") === MEMBERS && countCopies("networkpolicies") === MEMBERS, quickly);
  for (let pod = 0; pod < MEMBERS; pod += 1) running.fleet.host.erase("pods", "load", `web-${pod}`);
  await eventually(() => running.fleet.members.every((member) => member.count("pods") === 0), quickly);
  running.fleet.host.erase("services", "load", "web");
  await eventually(() => countCopies("services") === 0, quickly);
});
