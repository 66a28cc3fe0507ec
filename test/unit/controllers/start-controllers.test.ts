import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../src/api/keys.ts";
import { type RunningControllers, startControllers } from "../../../src/controllers/start-controllers.ts";
import { controllersOf } from "../../bench/scale/controllers.ts";
import { type Fleet, fleetOf } from "../../bench/scale/fleet.ts";
import type { Json } from "../../bench/scale/simulated-cluster.ts";
import { eventually } from "../../support/harness/wait.ts";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await fleetOf(2, 4);
});
afterEach(() => fleet.close());

/** Starts the controllers for the fleet, and stops them in the end. */
async function starting(signal = new AbortController().signal): Promise<RunningControllers> {
  const options = { ...controllersOf(fleet), homeApiServer: "https://10.0.0.1:6443" };
  try {
    const { registry, stop } = await startControllers(options, signal);
    return { registry, stop: () => stop().then(() => options.host.close()) };
  } catch (error) {
    await options.host.close();
    throw error;
  }
}

test("leaves no watch behind when it is stopped before the controllers have started", async () => {
  const ended = new AbortController();
  const watches = (): number => [fleet.host, ...fleet.members].reduce((sum, { openWatches }) => sum + openWatches, 0);
  fleet.host.silent.add("pods");
  const refused = expect(starting(ended.signal)).rejects.toThrow("the lease was lost");
  // Clusters, Secrets, nodes, and the resources of members.
  await eventually(() => watches() > 6, { intervalMs: 20 });
  ended.abort(new Error("the lease was lost"));
  await refused;
  await eventually(() => watches() === 0, { intervalMs: 20 });
});

test("wakes a pod in overflow mode that waits for the host's address when there is one", async () => {
  const written: string[] = [];
  fleet.host.onWrite = (_method, { collection, subresource = "" }, object) =>
    void written.push(`${collection} ${subresource} ${object?.message ?? ""}`);
  fleet.host.put("pods", overflowing(fleet.pod("late")));
  const running = await starting();
  onTestFinished(() => running.stop());
  await eventually(() => written.some((write) => /^events .*has no certificate/.test(write)), { intervalMs: 20 });
  const data = { "ca.crt": "-----BEGIN CERTIFICATE-----" };
  fleet.host.put("configmaps", { metadata: { namespace: "kube-system", name: "kube-root-ca.crt" }, data });
  await eventually(() => written.some((write) => write.startsWith("pods binding")), { intervalMs: 20 });
});

test("keeps a deleted Cluster while its member is asked about a pod in overflow mode", async () => {
  await fleet.close();
  fleet = await fleetOf(1, 0);
  const { host, members } = fleet;
  const data = { "ca.crt": "-----BEGIN CERTIFICATE-----" };
  host.put("configmaps", { metadata: { namespace: "kube-system", name: "kube-root-ca.crt" }, data });
  const running = await starting();
  onTestFinished(() => running.stop());
  const [west] = running.registry.members();
  await eventually(() => west?.candidate().closed === undefined, { intervalMs: 20 });
  // No dry-run is answered from now on.
  for (const member of members) member.silent.add("pods");
  host.put("pods", overflowing(fleet.pod("late")));
  await eventually(() => west?.requests.usedIn("load").pods === 1, { intervalMs: 20 });
  host.erase("clusters", "", "member-0");
  const conditions = (): string => JSON.stringify(host.get("clusters", "", "member-0")?.status ?? "gone");
  await eventually(() => /"Released".*being withdrawn: 1|gone/.test(conditions()), { intervalMs: 20 });
  expect(conditions()).toContain('"Released"');
});

/** Returns a pod without a node of the host, which needs the host's API server. */
function overflowing({ metadata, spec, ...pod }: Json): Json {
  const { finalizers: _finalizers, ...rest } = metadata;
  const annotations = { "legation.dev/api": "host" };
  const token = { projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes" };
  return {
    ...pod,
    metadata: { ...rest, labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE }, annotations },
    spec: {
      ...(spec as object),
      schedulerName: "default-scheduler",
      volumes: [{ name: "kube-api-access-1", ...token }],
    },
    status: { phase: "Pending", conditions: [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }] },
  };
}
