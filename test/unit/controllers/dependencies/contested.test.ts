import { beforeEach, expect, test } from "vitest";
import type { Json } from "../../../bench/scale/simulated-cluster.ts";
import { useFleet } from "../../../support/harness/fleet.ts";
import { eventually } from "../../../support/harness/wait.ts";

const NAMESPACE = "load";

const running = useFleet(1, 0);
/** Writes in the member, in order: `POST configmaps`. */
let writes: string[];

beforeEach(() => {
  writes = [];
});

// Pods and nodes. Copies are not watched before there are any.
const READ_IN_A_MEMBER = 2;
// By then every watch has delivered the member's answer.
const REACTS_AFTER_MS = 100;

/** Lets another client in the member answer each write on these objects of the namespace. */
function whenWritten(answer: (collection: string, name: string) => void): void {
  for (const member of running.fleet.members) {
    member.onWrite = (method, { collection, namespace, name }, object) => {
      if (namespace !== NAMESPACE || collection === "pods") return;
      writes.push(`${method} ${collection}`);
      const written = name ?? object?.metadata.name ?? "";
      if (method !== "DELETE") setTimeout(() => answer(collection, written), REACTS_AFTER_MS);
    };
  }
}

/** Returns a pod that mounts the ConfigMap and is the Service's endpoint. */
function user(name: string): Json {
  const pod = running.fleet.pod(name);
  const volumes = [{ name: "settings", configMap: { name: "settings" } }];
  return { ...pod, spec: { ...(pod.spec as object), volumes } };
}

async function start(): Promise<void> {
  running.fleet.host.put("configmaps", { metadata: { namespace: NAMESPACE, name: "settings" }, data: { a: "b" } });
  running.fleet.host.put("services", {
    metadata: { namespace: NAMESPACE, name: "web" },
    spec: { type: "ClusterIP", clusterIP: "10.0.0.1", selector: { app: "web" }, ports: [{ port: 80 }] },
  });
  await running.start();
}

function statusOf(pod: string): string {
  return JSON.stringify(running.fleet.host.get("pods", NAMESPACE, pod)?.status ?? {});
}

function made(collection: string): number {
  return writes.filter((write) => write === `POST ${collection}`).length;
}

test("creates copies that a client in the member deletes at once five times, and later pods report that", async () => {
  const [member] = running.fleet.members;
  whenWritten((collection, name) => member?.erase(collection, NAMESPACE, name));
  await start();
  // The pod comes to a member that is read.
  await eventually(() => (member?.openWatches ?? 0) >= READ_IN_A_MEMBER, { intervalMs: 20 });
  running.fleet.host.put("pods", user("web-0"));
  await eventually(() => made("configmaps") === 5 && made("services") === 5, { intervalMs: 20 });
  await eventually(() => member?.get("configmaps", NAMESPACE, "settings") === undefined, { intervalMs: 20 });
  running.fleet.host.put("pods", user("web-1"));
  await eventually(() => statusOf("web-1").includes("another client there keeps deleting ConfigMap settings"), {
    intervalMs: 20,
  });
  expect([made("configmaps"), made("services")]).toEqual([5, 5]);
});
