import { expect, test } from "vitest";
import { clusterQueues, clusters, localQueues, resourceFlavors, workloads } from "../../../../src/api/resources.ts";
import { readQueuesView } from "../../../../src/cli/ui/queues-view.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { resourceOf } from "../../../../src/kube/optional-resource.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { storedFlavor, storedLocalQueue, storedQueue, storedWorkload } from "../../../support/builders/kueue.ts";
import { host as hostOf } from "../simulation/host.ts";
import { viewerOf } from "./viewer.ts";

const KUEUE = { apiVersion: "kueue.x-k8s.io/v1beta2" };
const [queues, flavors, locals, queued] = [
  resourceOf(clusterQueues, KUEUE),
  resourceOf(resourceFlavors, KUEUE),
  resourceOf(localQueues, KUEUE),
  resourceOf(workloads, KUEUE),
];

/** A host with a queue in which a Job waits. */
function cluster(): MemoryCluster {
  const made = new MemoryCluster("host", "host-1");
  for (const resource of [queues, flavors, locals, queued]) made.serve(resource, true);
  for (const each of hostOf({ west: {} }).clusters) made.put(clusters, each);
  made.put(flavors, storedFlavor("west"));
  made.put(queues, storedQueue("teams", { west: { used: "126", nominal: "128" } }));
  made.put(locals, storedLocalQueue("team", "teams"));
  made.put(queued, storedWorkload("team", "sweep"));
  return made;
}

test("shows each queue with its members, and what waits in it and for what", async () => {
  expect(await readQueuesView(viewerOf(cluster().client))).toMatchObject({
    queues: [
      {
        ...{ name: "teams", flavors: [{ name: "west", members: ["west"] }] },
        waiting: [{ name: "sweep", waitsFor: "waits for 4 cpu of flavor west: 126 of 128 are used by queue teams" }],
      },
    ],
  });
});

test("has no queues where the host does not serve Kueue", async () => {
  expect(await readQueuesView(viewerOf(new MemoryCluster("host", "host-1").client))).toEqual({});
});

test("says what the user may not read", async () => {
  const { client } = cluster();
  const list: ClusterClient["list"] = async (resource, options) => {
    if (resource.plural === "clusterqueues" || resource.plural === "clusters") throw kubeError("Forbidden");
    return client.list(resource, options);
  };
  expect(await readQueuesView(viewerOf({ ...client, list }))).toEqual({
    queues: [],
    hidden: expect.stringMatching(/Kueue's queues, which the ClusterRole legation-viewer lets you read/),
  });
});
