import { beforeEach, describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { pods } from "../../src/kube/resources.ts";
import { isDeleting } from "../../src/pods/pod-state.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podsOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();
const patient = { timeoutMs: 60_000, intervalMs: 200 };
let namespace: string;

function makeNamespace(annotations: Record<string, string> = {}, mode = "annotated"): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { prefix: "groups", labels: { "legation.dev/delegation": mode }, annotations });
}

beforeEach(async () => {
  namespace = await makeNamespace();
});

async function create(names: readonly string[], annotations: Record<string, string> = {}): Promise<void> {
  await Promise.all(names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { annotations }))));
}

/** Returns the nodes of the namespace's pods, once there are so many and all have one. */
async function nodesOf(count: number): Promise<Set<string | undefined>> {
  let nodes = new Set<string | undefined>();
  await eventuallyPasses(async () => {
    const found = (await podsOf(clients().host, namespace)).filter((pod) => !isDeleting(pod));
    expect(found.filter(({ spec }) => spec?.nodeName !== undefined)).toHaveLength(count);
    nodes = new Set(found.map(({ spec }) => spec?.nodeName));
  }, patient);
  return nodes;
}

describe("pods of one group", () => {
  test("run in one member, however many are created at the same moment", async () => {
    for (const group of ["one", "two", "three"]) {
      namespace = await makeNamespace();
      await create(numbered("step", 10), { "legation.dev/group": group });
      expect(await nodesOf(10)).toHaveLength(1);
    }
  });

  test("stay together when the controller is killed while it places them", async () => {
    await create(numbered("early", 10), { "legation.dev/group": "flow" });
    await legation().controller.stop("SIGKILL");
    await create(numbered("late", 10), { "legation.dev/group": "flow" });
    await legation().controller.start();
    expect(await nodesOf(20)).toHaveLength(1);
  });

  test("wait with a reason while their member is cordoned, and follow when it is uncordoned", async () => {
    await create(["first"], { "legation.dev/group": "flow" });
    const [home = ""] = await nodesOf(1);
    const cluster = home.replace("legation-", "");
    const other = cluster === "west" ? "east" : "west";
    await kubectl(hostCluster(), ["cordon", home]);
    try {
      await create(["second"], { "legation.dev/group": "flow" });
      const message = await waitingFor(clients().host, namespace, "second", "group flow");
      expect(message).toContain(`${other}: group flow runs in ${cluster}`);
      expect(message).toContain(`${cluster}: its virtual node is cordoned`);
    } finally {
      await kubectl(hostCluster(), ["uncordon", home]);
    }
    expect(await nodesOf(2)).toEqual(new Set([home]));
  });

  test("wait for the first of them, which may try every member", async () => {
    const selector = { "no-such": "node" };
    const annotations = { "legation.dev/group": "flow" };
    const { host } = clients();
    await host.create(pods, delegatedPod(namespace, "first", { annotations, spec: { nodeSelector: selector } }));
    await waitingFor(clients().host, namespace, "first", "none of its");
    await create(["second"], annotations);
    // A pod that fits nowhere holds up no other.
    await podThat(host, namespace, "second", inPhase("Running"));
  });
});

describe("the annotation group-by of a namespace", () => {
  test("groups the pods of each controller", async () => {
    namespace = await makeNamespace({ "legation.dev/group-by": "owner" });
    const job = {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "work", annotations: { "legation.dev/delegate": "true" } },
      spec: {
        completions: 8,
        parallelism: 8,
        template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "work:1" }] } },
      },
    };
    await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: JSON.stringify(job) });
    expect(await nodesOf(8)).toHaveLength(1);
  });

  test("groups a pod and the pods that it owns, as a Spark driver and its executors", async () => {
    namespace = await makeNamespace({ "legation.dev/group-by": "owner" }, "all");
    const { host } = clients();
    const plain = (name: string): Pod => ({ ...delegatedPod(namespace, name), metadata: { namespace, name } });
    const driver: Stored<Pod> = await host.create(pods, plain("driver"));
    const { uid } = driver.metadata;
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "driver", uid, controller: true }];
    await Promise.all(
      numbered("exec", 6).map((name) =>
        host.create(pods, { ...plain(name), metadata: { namespace, name, ownerReferences } }),
      ),
    );
    expect(await nodesOf(7)).toHaveLength(1);
  });

  test("brings pods with one value of the namespace's group-by label to one member", async () => {
    namespace = await makeNamespace({ "legation.dev/group-by": "label:flow" });
    const { host } = clients();
    await Promise.all(
      numbered("step", 12).map((name, index) => {
        const pod = delegatedPod(namespace, name);
        return host.create(pods, { ...pod, metadata: { ...pod.metadata, labels: { flow: `f${index % 2}` } } });
      }),
    );
    await nodesOf(12);
    for (const flow of ["f0", "f1"]) {
      const found = (await podsOf(host, namespace)).filter(({ metadata }) => metadata.labels?.flow === flow);
      expect(new Set(found.map(({ spec }) => spec?.nodeName))).toHaveLength(1);
    }
  });
});
