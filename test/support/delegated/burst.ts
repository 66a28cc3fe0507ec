import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { overlaps, podLives } from "../harness/pod-lives.ts";
import { podsOf } from "../harness/pods-of.ts";
import { eventuallyPasses } from "../harness/wait.ts";
import { countPhases, delegatedPod } from "./pods.ts";
import { legationWrites } from "./writes.ts";

/** Authors that create pods one after the other until stopped. */
export interface Burst {
  /** Names of the pods that were created. */
  readonly created: readonly string[];
  /** Pods that could not be created, and why. */
  readonly failed: readonly string[];
  stop(): Promise<void>;
}

/** Creates bare delegated pods in so many lanes at once, each lane one after a pause. */
export function startBurst(
  host: ClusterClient,
  namespace: string,
  { lanes: count, pauseMs }: { readonly lanes: number; readonly pauseMs: number },
): Burst {
  const created: string[] = [];
  const failed: string[] = [];
  let stopped = false;
  const lane = async (lane: number): Promise<void> => {
    for (let number = 0; !stopped; number += 1) {
      const name = `pod-${lane}-${number}`;
      // Longer than all that admission may take together.
      await host.create(pods, delegatedPod(namespace, name), { timeoutMs: 60_000 }).then(
        () => created.push(name),
        (error: unknown) => failed.push(`${name}: ${error}`),
      );
      await sleep(pauseMs);
    }
  };
  const lanes = Array.from({ length: count }, (_, number) => lane(number));
  const stop = async (): Promise<void> => {
    stopped = true;
    await Promise.all(lanes);
  };
  return { created, failed, stop };
}

/** Every one of these pods runs, and no other; by one delegate, which was the only one it ever had; and was bound once. */
export async function expectAllRunOnce(
  client: ClusterClient,
  clusters: { readonly host: Cluster; readonly members: readonly Cluster[] },
  namespace: string,
  created: readonly string[],
): Promise<void> {
  await eventuallyPasses(
    async () => expect(countPhases(await podsOf(client, namespace))).toEqual({ Running: created.length }),
    { timeoutMs: 60_000, intervalMs: 500 },
  );
  const lives = (await Promise.all(clusters.members.map((member) => podLives(member, namespace)))).flat();
  expect(lives.map(({ name }) => name).sort()).toEqual([...created].sort());
  expect(overlaps(lives)).toEqual([]);
  const { pods: writes } = await legationWrites(clusters.host, namespace);
  for (const name of created) {
    const bound = (writes.get(name) ?? []).filter((write) => write === "create pods/binding");
    expect({ name, bound: bound.length }).toEqual({ name, bound: 1 });
  }
}
