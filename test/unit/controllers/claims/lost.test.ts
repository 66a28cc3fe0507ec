import { expect, test } from "vitest";
import type { Json, SimulatedCluster } from "../../../bench/scale/simulated-cluster.ts";
import { useFleet } from "../../../support/harness/fleet.ts";
import { eventually } from "../../../support/harness/wait.ts";

const NAMESPACE = "load";
const CLAIMS = "persistentvolumeclaims";
const soon = { intervalMs: 20 };

const running = useFleet(1, 0);

/** Creates a host's claim that was seen in the member, and a pod that names it. */
async function start(): Promise<void> {
  const annotations = {
    "legation.dev/cluster": "member-0",
    "legation.dev/claim-status": JSON.stringify({ uid: "seen", phase: "Bound" }),
  };
  running.fleet.host.put(CLAIMS, {
    metadata: { namespace: NAMESPACE, name: "data", uid: "host-uid", annotations },
    spec: {},
  });
  const pod = running.fleet.pod("web-0");
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  running.fleet.host.put("pods", { ...pod, spec: { ...(pod.spec as object), volumes } });
  await running.start();
}

function member(): SimulatedCluster {
  const [only] = running.fleet.members;
  if (only === undefined) throw new Error("a fleet of one has a member");
  return only;
}

function inMember(uid: string, labels: Record<string, string> = {}): void {
  member().put(CLAIMS, { metadata: { namespace: NAMESPACE, name: "data", uid, labels }, spec: {} });
}

function pod(): Json | undefined {
  return running.fleet.host.get("pods", NAMESPACE, "web-0");
}

test.each<[string, () => void, string]>([
  ["gone", () => {}, "was deleted there, and its data with it; delete it on the host, too, and make it anew"],
  ["there without its labels", () => inMember("seen"), "is there, with its data, but without Legation's labels"],
  ["another's", () => inMember("other"), "and another one that is not Legation's has its name"],
])("reports on a pod that its claim is %s in the member", async (_case, prepare, words) => {
  prepare();
  await start();
  await eventually(() => JSON.stringify(pod()?.status ?? {}).includes(words), soon);
  expect(pod()?.spec).not.toHaveProperty("nodeName");
});

test("restores the owner annotation of a claim in a member, and its pods run", async () => {
  const hostId = String(running.fleet.host.get("namespaces", "", "kube-system")?.metadata.uid);
  inMember("seen", { "legation.dev/host": hostId, "legation.dev/copy": "true" });
  await start();
  await eventually(() => JSON.stringify(pod()?.spec).includes("legation-member-0"), soon);
  expect(member().get(CLAIMS, NAMESPACE, "data")?.metadata.annotations).toEqual({
    "legation.dev/owner": JSON.stringify({
      cluster: "host",
      kind: "PersistentVolumeClaim",
      namespace: NAMESPACE,
      name: "data",
      uid: "host-uid",
    }),
  });
});
