import { beforeEach, describe, expect, test } from "vitest";
import { pods } from "../../src/kube/resources.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { countPhases, delegatedPod, numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();

const COUNT = 20;
const LAST = "last";
const labels = { "legation.dev/delegation": "annotated" };
const members = [memberCluster("west"), memberCluster("east")];
let namespace: string;

// A pod that mounts a token costs two writes more, which home-api.test.ts counts.
const spec = { automountServiceAccountToken: false };

async function createAll(names: readonly string[], annotations: Record<string, string> = {}): Promise<void> {
  await Promise.all(
    names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { annotations, spec }))),
  );
}

function allAre(phase: string): Promise<void> {
  return eventuallyPasses(
    async () => expect(countPhases(await podsOf(clients().host, namespace))).toEqual({ [phase]: COUNT }),
    { timeoutMs: 60_000 },
  );
}

async function deleteAll(names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => clients().host.delete(pods, { namespace, name })));
  await eventuallyPasses(async () => expect(await podsOf(clients().host, namespace)).toEqual([]));
}

/** Every write on a pod of these clusters, by the pod's name. */
async function podWrites(...clusters: Cluster[]): Promise<Map<string, readonly string[]>> {
  const all = await Promise.all(clusters.map((cluster) => legationWrites(cluster, namespace)));
  return new Map(all.flatMap((writes) => [...writes.pods]).filter(([name]) => name !== LAST));
}

/** Waits until `expected` holds, and looks again after another pod's whole life: a write too many may come late. */
async function holdsInTheEnd(expected: () => Promise<void>): Promise<void> {
  await eventuallyPasses(expected);
  await createAll([LAST]);
  await podThat(clients().host, namespace, LAST, inPhase("Running"));
  await clients().host.delete(pods, { namespace, name: LAST });
  await podGone(clients().host, namespace, LAST);
  await expected();
}

/** The same writes for every name. */
function each(names: readonly string[], writes: readonly string[]): Map<string, readonly string[]> {
  return new Map(names.map((name) => [name, writes]));
}

async function otherWrites(cluster: Cluster): Promise<readonly string[]> {
  return (await legationWrites(cluster, namespace)).others;
}

/** Writes of events on the host: no more than one for each thing that happened to a delegate. */
async function expectEvents(most: number): Promise<void> {
  const { events } = await legationWrites(hostCluster(), namespace);
  expect(new Set(events)).toEqual(new Set(["create events"]));
  expect(events.length).toBeLessThanOrEqual(most);
}

// kwok writes one status when a pod starts and one when it ends. A kubelet tells more between them (containers that are
// being created): each of those costs the host one write, as it costs the member one.
describe("Legation's writes, from the audit logs of all clusters", () => {
  beforeEach(async () => {
    // There already in the members: what pods share is not counted per pod.
    namespace = await freshNamespace([hostCluster(), ...members], { prefix: "budget", labels });
  });

  test("a pod that ends and is deleted costs the host four and one member two", async () => {
    const names = numbered("ends", COUNT);
    await createAll(names, { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "8s" });
    await allAre("Succeeded");
    await deleteAll(names);

    await holdsInTheEnd(async () => {
      expect(await podWrites(...members)).toEqual(each(names, ["create pods", "delete pods"]));
      expect(await podWrites(hostCluster())).toEqual(
        each(names, ["create pods/binding", "patch pods/status", "patch pods/status", "patch pods"]),
      );
      expect(await Promise.all([hostCluster(), ...members].map(otherWrites))).toEqual([[], [], []]);
      // kwok tells of nothing, and the member's scheduler of its choice: of these pods, and of the last.
      await expectEvents(COUNT + 1);
    });
  });

  test("a pod that is deleted while it runs costs the host five and one member two", async () => {
    const names = numbered("runs", COUNT);
    await createAll(names, { [KWOK_ANNOTATIONS.stopsAfter]: "1s" });
    await allAre("Running");
    await deleteAll(names);

    await holdsInTheEnd(async () => {
      expect(await podWrites(...members)).toEqual(each(names, ["create pods", "delete pods"]));
      expect(await podWrites(hostCluster())).toEqual(
        each(names, ["create pods/binding", "patch pods/status", "patch pods/status", "delete pods", "patch pods"]),
      );
      expect(await Promise.all([hostCluster(), ...members].map(otherWrites))).toEqual([[], [], []]);
    });
  });
});

test("the first pods of a namespace cost one write more in each member that lacks it, and none on the host", async () => {
  namespace = await freshNamespace(hostCluster(), { prefix: "budget", labels });
  const names = numbered("first", COUNT);
  await createAll(names);
  await allAre("Running");

  await holdsInTheEnd(async () => {
    expect(await Promise.all(members.map(otherWrites))).toEqual([["create namespaces"], ["create namespaces"]]);
    // Creations that came before the namespace, or before its default service account, were refused.
    const made = [...(await podWrites(...members))].map(([name, writes]) => [
      name,
      writes.filter((write) => write !== "create pods: 404" && write !== "create pods: 403"),
    ]);
    expect(made).toHaveLength(COUNT);
    expect(Object.fromEntries(made)).toEqual(Object.fromEntries(each(names, ["create pods"])));
    expect(await podWrites(hostCluster())).toEqual(each(names, ["create pods/binding", "patch pods/status"]));
    expect(await otherWrites(hostCluster())).toEqual([]);
  });
});
