import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { clear, createPods, makeNamespace, removeNamespace } from "./bursts.ts";
import { PodWatch } from "./pod-watch.ts";

const COUNT = 50;
// One pod is deleted at a time, so that none waits for another.
const PAUSE_MS = 100;

/** Returns the milliseconds from the answer to the forced deletion of each of 50 running pods until it is gone, with `beside` pods created a second meanwhile. */
export async function forcedEnds(
  host: ClusterClient,
  members: readonly ClusterClient[],
  beside: number,
): Promise<number[]> {
  const namespaces = await Promise.all([makeNamespace(host, true), makeNamespace(host, true)]);
  const [namespace, other] = namespaces;
  const [watch, load] = [new PodWatch(host, namespace), new PodWatch(host, other)];
  await Promise.all([watch.start(), load.start()]);
  await createPods(host, namespace, COUNT, "delegated");
  await watch.untilRunning(COUNT);
  const loading = createPods(host, other, (beside * COUNT * PAUSE_MS) / 1000, "delegated", beside);
  const answered = new Map<string, number>();
  for (const name of watch.seen.keys()) {
    await host.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 });
    answered.set(name, performance.now());
    await sleep(PAUSE_MS);
  }
  await watch.untilEmpty();
  await loading;
  await watch.stop();
  await clear(host, other, load);
  await Promise.all(namespaces.map((name) => removeNamespace([host, ...members], name)));
  return [...answered].map(([name, at]) => Math.max(0, (watch.gone.get(name) ?? Number.NaN) - at));
}
