import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../src/api/keys.ts";
import { type RunningControllers, startControllers } from "../../../src/controllers/main.ts";
import { controllersOf } from "../../bench/scale/controllers.ts";
import type { Json } from "../../bench/scale/fake-cluster.ts";
import { type Fleet, fleetOf } from "../../bench/scale/fleet.ts";
import { eventually } from "../../support/harness/wait.ts";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await fleetOf(2, 4);
});
afterEach(() => fleet.close());

/** The controllers as they start for the fleet, with an end for what they hold. */
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

test("controllers that are told to end before they have started leave no watch behind", async () => {
  const ended = new AbortController();
  const watches = (): number => [fleet.host, ...fleet.members].reduce((sum, { openWatches }) => sum + openWatches, 0);
  fleet.host.silent.add("pods");
  const refused = expect(starting(ended.signal)).rejects.toThrow("the lease was lost");
  // Clusters, Secrets, nodes and what is read in members.
  await eventually(() => watches() > 6, { intervalMs: 20 });
  ended.abort(new Error("the lease was lost"));
  await refused;
  await eventually(() => watches() === 0, { intervalMs: 20 });
});

test("a pod in overflow mode that waits for a way from members to the host is looked at again when there is one", async () => {
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

test("a Cluster that is deleted stays while its member is asked about a pod in overflow mode", async () => {
  await fleet.close();
  fleet = await fleetOf(1, 0);
  const { host, members } = fleet;
  const data = { "ca.crt": "-----BEGIN CERTIFICATE-----" };
  host.put("configmaps", { metadata: { namespace: "kube-system", name: "kube-root-ca.crt" }, data });
  const running = await starting();
  onTestFinished(() => running.stop());
  const [west] = running.registry.members();
  await eventually(() => west?.candidate().closed === undefined, { intervalMs: 20 });
  // No dry run is answered from now on.
  for (const member of members) member.silent.add("pods");
  host.put("pods", overflowing(fleet.pod("late")));
  await eventually(() => west?.load.usedIn("load").pods === 1, { intervalMs: 20 });
  host.erase("clusters", "", "member-0");
  const conditions = (): string => JSON.stringify(host.get("clusters", "", "member-0")?.status ?? "gone");
  await eventually(() => /"Released".*being withdrawn: 1|gone/.test(conditions()), { intervalMs: 20 });
  expect(conditions()).toContain('"Released"');
});

/** The pod as one that the host's scheduler has had no node for, and that needs the host's API server. */
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
