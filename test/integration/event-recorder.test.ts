import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CLUSTERS_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { events, nodes, pods } from "../../src/kube/resources.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { makeEvent } from "../../src/runtime/kube-event.ts";
import { type AuditEvent, auditEvents } from "../support/clusters/audit.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { forbidPods, isRefused, refuseWrites } from "../support/harness/refusals.ts";
import { eventually } from "../support/harness/wait.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();
const NAME = "web";
const inWest = { [CLUSTERS_ANNOTATION]: "west" };

let namespace: string;

function waits(pod: Stored<Pod>): boolean {
  return whyNotPlaced(pod) !== undefined;
}

function proxyThat(holds: (pod: Stored<Pod>) => boolean, name = NAME): Promise<Stored<Pod>> {
  return podThat(clients().host, namespace, name, holds);
}

async function change(body: object): Promise<void> {
  await clients().host.patch(pods, { namespace, name: NAME }, { type: "strategic", body });
}

// No quota counts events (pkg/quota/v1/install/registry.go of Kubernetes), but policies refuse them.
describe.each([
  ["Forbidden", 403],
  ["Invalid", 422],
] as const)("a host that refuses events as %s", (reason, code) => {
  beforeEach(async () => {
    const labels = { "legation.dev/delegation": "annotated" };
    const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
    namespace = await freshNamespace(all, { prefix: "untold", labels });
    const { host } = clients();
    await refuseWrites(host, { namespace, resource: "events", operation: "CREATE", reason });
    const news = { reason: "Tried", message: "", type: "Warning", suffix: "tried", at: Date.now() } as const;
    const event = makeEvent({ namespace, name: NAME, uid: "none" }, news, {
      component: "test",
      reportingComponent: "test",
    });
    await isRefused(() => host.create(events, event, { dryRun: true }));
  });

  test("runs a pod in the other member when the first one has refused it", async () => {
    const { trap, release } = gated();
    onTestFinished(release);
    let refusedBy: string | undefined;
    trap("member", {
      when: "late",
      catches: ({ method, path }) => method === "POST" && path === `/api/v1/namespaces/${namespace}/pods`,
      onCaught: async (member) => {
        refusedBy = member;
        await forbidPods(memberCluster(member === "west" ? "west" : "east"), namespace);
      },
    });
    await clients().host.create(pods, delegatedPod(namespace, NAME));
    const { spec } = await proxyThat(inPhase("Running"));
    expect(spec?.nodeName).toBe(`legation-${refusedBy === "west" ? "east" : "west"}`);
  });

  test("forwards later changes after a change that the member refuses", async () => {
    const { host, west } = clients();
    await host.create(pods, delegatedPod(namespace, NAME, { annotations: inWest }));
    await proxyThat(inPhase("Running"));
    const expression = "object.spec.containers.all(c, c.image != 'forbidden:1')";
    await refuseWrites(west, { namespace, resource: "pods", operation: "UPDATE", expression });
    const refused = { spec: { containers: [{ name: "main", image: "forbidden:1" }] } };
    const ref = { namespace, name: NAME };
    await isRefused(() => west.patch(pods, ref, { type: "strategic", body: refused }, { dryRun: true }));
    await change(refused);
    await change({ metadata: { labels: { changed: "yes" } } });
    await podThat(west, namespace, NAME, ({ metadata }) => metadata.labels?.changed === "yes");
  });

  test("gives the reason in the condition of a pod without a member, and receives the event once", async () => {
    const { host } = clients();
    const annotations = { [CLUSTERS_ANNOTATION]: "atlantis" };
    const tried = (): Promise<readonly unknown[]> =>
      auditEvents(
        hostCluster(),
        ({ verb, objectRef, requestURI, responseStatus }) =>
          verb === "create" &&
          objectRef?.resource === "events" &&
          objectRef.namespace === namespace &&
          !requestURI.includes("dryRun") &&
          responseStatus?.code === code,
        [namespace],
      );
    await host.create(pods, delegatedPod(namespace, NAME, { annotations }));
    await proxyThat(waits);
    await eventually(async () => (await tried()).length > 0);
    // Meanwhile the first event would have been retried.
    await host.create(pods, delegatedPod(namespace, "other", { annotations }));
    await proxyThat(waits, "other");
    await eventually(async () => (await tried()).length > 1);
    expect(await tried()).toHaveLength(2);
  });

  /** Creates a pod with a delegate in west, where every node's port is taken. */
  async function waitsForNode(): Promise<void> {
    const { host, west } = clients();
    const ports = [{ containerPort: 80, hostPort: 8080 }];
    const spec = { containers: [{ name: "main", image: "main:1", ports }] };
    const { items } = await west.list(nodes);
    await Promise.all(
      items.map(({ metadata: { name: nodeName } }) =>
        west.create(pods, { metadata: { namespace, name: `on-${nodeName}` }, spec: { ...spec, nodeName } }),
      ),
    );
    await host.create(pods, delegatedPod(namespace, NAME, { annotations: inWest, spec }));
    await proxyThat(waits);
  }

  test("forwards changes of a pod that waits for a node", async () => {
    await waitsForNode();
    await change({ metadata: { labels: { changed: "yes" } } });
    await podThat(clients().west, namespace, NAME, ({ metadata }) => metadata.labels?.changed === "yes");
  });

  test("takes a pod that waits for a node out of a member that is cordoned", async () => {
    const { host, west } = clients();
    const cordon = async (unschedulable: boolean): Promise<void> => {
      await host.patch(nodes, { name: "legation-west" }, { type: "merge", body: { spec: { unschedulable } } });
    };
    await waitsForNode();
    onTestFinished(() => cordon(false));
    await cordon(true);
    await podGone(west, namespace, NAME);
  });
});

test("a restarted controller creates no event of a delegate again that the host has", async () => {
  const { host } = clients();
  const { controller } = gated().legation;
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const namespace = await freshNamespace(all, { prefix: "told", labels });
  const eventsCreated = (): Promise<readonly AuditEvent[]> =>
    auditEvents(
      hostCluster(),
      ({ verb, objectRef }) =>
        verb === "create" && objectRef?.resource === "events" && objectRef.namespace === namespace,
      [namespace],
    );
  const runs = async (name: string): Promise<void> => {
    await host.create(pods, delegatedPod(namespace, name, { annotations: inWest }));
    await podThat(host, namespace, name, inPhase("Running"));
    await eventually(async () => {
      const told = await host.list(events, {
        namespace,
        fieldSelector: `involvedObject.name=${name},reason=Scheduled`,
      });
      return told.items.length > 0;
    });
  };
  for (const name of numbered(NAME, 3)) await runs(name);
  await controller.stop("SIGKILL");
  await controller.start();
  // Events of the watch follow those of the list.
  await runs("later");
  const codes = (await eventsCreated()).map(({ responseStatus }) => responseStatus?.code);
  expect(codes.length).toBeGreaterThanOrEqual(4);
  expect(codes.filter((code) => code !== 201)).toEqual([]);
});
