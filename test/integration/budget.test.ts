import { describe, expect, type onTestFinished, test } from "vitest";
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

// A pod that mounts a token costs two writes more; home-api.test.ts counts them.
const spec = { automountServiceAccountToken: false };

interface Budget {
  createAll(names: readonly string[], annotations?: Record<string, string>): Promise<void>;
  allAre(phase: string): Promise<void>;
  deleteAll(names: readonly string[], options?: { readonly gracePeriodSeconds?: number }): Promise<void>;
  /** Writes on pods of these clusters, by the pod's name. */
  podWrites(...clusters: Cluster[]): Promise<Map<string, readonly string[]>>;
  otherWrites(cluster: Cluster): Promise<readonly string[]>;
  /** Expects at most `most` event writes on the host: one for each thing that happened to a delegate. */
  expectEvents(most: number): Promise<void>;
  /** Waits until `expected` holds, and checks again after another pod's whole life: a surplus write may come late. */
  holdsInTheEnd(expected: () => Promise<void>): Promise<void>;
}

/** Creates a namespace in these clusters and counts what its pods cost. */
async function makeBudget(clusters: readonly Cluster[], onFinished: typeof onTestFinished): Promise<Budget> {
  const { host } = clients();
  const namespace = await freshNamespace(clusters, { prefix: "budget", labels, onFinished });
  const budget: Budget = {
    createAll: async (names, annotations = {}) => {
      await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, { annotations, spec }))));
    },
    allAre: (phase) =>
      eventuallyPasses(async () => expect(countPhases(await podsOf(host, namespace))).toEqual({ [phase]: COUNT }), {
        timeoutMs: 60_000,
      }),
    deleteAll: async (names, options) => {
      await Promise.all(names.map((name) => host.delete(pods, { namespace, name }, options)));
      await eventuallyPasses(async () => expect(await podsOf(host, namespace)).toEqual([]));
    },
    podWrites: async (...of) => {
      const all = await Promise.all(of.map((cluster) => legationWrites(cluster, namespace)));
      return new Map(all.flatMap((writes) => [...writes.pods]).filter(([name]) => name !== LAST));
    },
    otherWrites: async (cluster) => (await legationWrites(cluster, namespace)).others,
    expectEvents: async (most) => {
      const { events } = await legationWrites(hostCluster(), namespace);
      expect(new Set(events)).toEqual(new Set(["create events"]));
      expect(events.length).toBeLessThanOrEqual(most);
    },
    holdsInTheEnd: async (expected) => {
      await eventuallyPasses(expected);
      await budget.createAll([LAST]);
      await podThat(host, namespace, LAST, inPhase("Running"));
      await host.delete(pods, { namespace, name: LAST });
      await podGone(host, namespace, LAST);
      await expected();
    },
  };
  return budget;
}

/** Returns the same writes for every name. */
function each(names: readonly string[], writes: readonly string[]): Map<string, readonly string[]> {
  return new Map(names.map((name) => [name, writes]));
}

// kwok writes one status when a pod starts and one when it ends. A kubelet writes more in between,
// each of which costs the host one write as well.
describe.concurrent("the writes that Legation's accounts make, from the audit logs of all clusters", () => {
  // The namespace exists in all members: shared objects do not count per pod.
  const everywhere = [hostCluster(), ...members];

  test("costs the host four writes and one member two for a pod that ends and is deleted", async ({
    onTestFinished,
  }) => {
    const { createAll, allAre, deleteAll, podWrites, otherWrites, expectEvents, holdsInTheEnd } = await makeBudget(
      everywhere,
      onTestFinished,
    );
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
      // kwok creates no events, and the member's scheduler one per pod: these pods and the last.
      await expectEvents(COUNT + 1);
    });
  });

  test("costs the host five writes and one member two for a pod that is deleted while it runs", async ({
    onTestFinished,
  }) => {
    const { createAll, allAre, deleteAll, podWrites, otherWrites, expectEvents, holdsInTheEnd } = await makeBudget(
      everywhere,
      onTestFinished,
    );
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
      await expectEvents(COUNT + 1);
    });
  });

  test("costs the host three writes and one member two for a pod that is deleted by force while it runs", async ({
    onTestFinished,
  }) => {
    const { createAll, allAre, deleteAll, podWrites, otherWrites, expectEvents, holdsInTheEnd } = await makeBudget(
      everywhere,
      onTestFinished,
    );
    const names = numbered("forced", COUNT);
    await createAll(names);
    await allAre("Running");
    await deleteAll(names, { gracePeriodSeconds: 0 });

    await holdsInTheEnd(async () => {
      expect(await podWrites(...members)).toEqual(each(names, ["create pods", "delete pods"]));
      expect(await podWrites(hostCluster())).toEqual(
        each(names, ["create pods/binding", "patch pods/status", "patch pods"]),
      );
      expect(await Promise.all([hostCluster(), ...members].map(otherWrites))).toEqual([[], [], []]);
      await expectEvents(COUNT + 1);
    });
  });

  test("costs one more write in each member that lacks the namespace, and none on the host, for its first pods", async ({
    onTestFinished,
  }) => {
    const { createAll, allAre, podWrites, otherWrites, expectEvents, holdsInTheEnd } = await makeBudget(
      [hostCluster()],
      onTestFinished,
    );
    const names = numbered("first", COUNT);
    await createAll(names);
    await allAre("Running");

    await holdsInTheEnd(async () => {
      expect(await Promise.all(members.map(otherWrites))).toEqual([["create namespaces"], ["create namespaces"]]);
      // The member refused creations that came before the namespace or its default service account.
      const made = [...(await podWrites(...members))].map(([name, writes]) => [
        name,
        writes.filter((write) => write !== "create pods: 404" && write !== "create pods: 403"),
      ]);
      expect(made).toHaveLength(COUNT);
      expect(Object.fromEntries(made)).toEqual(Object.fromEntries(each(names, ["create pods"])));
      expect(await podWrites(hostCluster())).toEqual(each(names, ["create pods/binding", "patch pods/status"]));
      expect(await otherWrites(hostCluster())).toEqual([]);
      await expectEvents(COUNT + 1);
    });
  });
});
