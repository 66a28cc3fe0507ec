import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import type { PodSpec, Stored } from "../../src/api/kubernetes.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { apiVersionOf, kindName, pods, type Resource } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podsOf, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { definitionOf } from "../support/legation/widget.ts";
import { installType, removeType } from "../support/legation/widgets.ts";

const secretProviderClasses: Resource<AnyObject> = {
  group: "secrets-store.csi.x-k8s.io",
  version: "v1",
  plural: "secretproviderclasses",
  kind: "SecretProviderClass",
  namespaced: true,
};
const podGroups: Resource<AnyObject> = {
  group: "scheduling.x-k8s.io",
  version: "v1alpha1",
  plural: "podgroups",
  kind: "PodGroup",
  namespaced: true,
};
const volcanoGroups: Resource<AnyObject> = { ...podGroups, group: "scheduling.volcano.sh", version: "v1beta1" };
const TYPES = [secretProviderClasses, podGroups, volcanoGroups];
// Copies stay for ten seconds after their last user.
const PATIENT = { timeoutMs: 60_000 };

const legation = useLegation();
const clients = useClients();
let namespace: string;

beforeAll(async () => {
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  for (const type of TYPES) {
    // Volcano's has no status subresource (artifacts/podgroup.yaml of volcano.sh/apis).
    const definition = type === volcanoGroups ? definitionOf(type, {}) : definitionOf(type);
    await installType({ name: kindName(type), definition, spec: {} }, hostCluster(), members);
  }
});
afterAll(async () => {
  for (const type of TYPES) {
    await removeType(kindName(type), hostCluster(), [memberCluster("west"), memberCluster("east")]);
  }
});
beforeEach(async () => {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "followed", labels: { "legation.dev/delegation": "annotated" } });
});

function make(type: Resource<AnyObject>, name: string, fields: object): Promise<Stored<AnyObject>> {
  return clients().host.create(type, {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { namespace, name },
    ...fields,
  });
}

function find(client: ClusterClient, type: Resource<AnyObject>, name: string): Promise<Stored<AnyObject> | undefined> {
  return client.find(type, { namespace, name });
}

/** A pod's spec with a volume of the Secrets Store CSI driver. */
function mounting(secretProviderClass: string): Partial<PodSpec> {
  const csi = { driver: "secrets-store.csi.k8s.io", readOnly: true, volumeAttributes: { secretProviderClass } };
  return { volumes: [{ name: "store", csi }] };
}

test("a SecretProviderClass goes to the member of the pods that name it, follows its changes, and goes with its last pod", async () => {
  const { host, west, east } = clients();
  await make(secretProviderClasses, "vault", { spec: { provider: "vault" } });
  await make(secretProviderClasses, "unused", { spec: { provider: "vault" } });
  const annotations = { "legation.dev/clusters": "west" };
  await host.create(pods, delegatedPod(namespace, "web", { annotations, spec: mounting("vault") }));
  await podThat(host, namespace, "web", inPhase("Running"));
  const copy = await find(west, secretProviderClasses, "vault");
  expect(copy?.spec).toEqual({ provider: "vault" });
  expect(copy === undefined ? undefined : ownerOf(copy)?.name).toBe("vault");
  expect(await find(west, secretProviderClasses, "unused")).toBeUndefined();
  expect(await find(east, secretProviderClasses, "vault")).toBeUndefined();
  const ref = { namespace, name: "vault" };
  await host.patch(secretProviderClasses, ref, { type: "merge", body: { spec: { provider: "aws" } } });
  await eventuallyPasses(async () =>
    expect((await find(west, secretProviderClasses, "vault"))?.spec).toEqual({ provider: "aws" }),
  );
  await host.delete(pods, { namespace, name: "web" });
  await eventually(async () => (await find(west, secretProviderClasses, "vault")) === undefined, {
    what: "no copy",
    ...PATIENT,
  });
});

test("a pod waits for what it names, and says so", async () => {
  const { host } = clients();
  await host.create(pods, delegatedPod(namespace, "early", { spec: mounting("late") }));
  const name = `${kindName(secretProviderClasses)} "late" not found`;
  await waitingFor(host, namespace, "early", name);
  await make(secretProviderClasses, "late", { spec: {} });
  await podThat(host, namespace, "early", inPhase("Running"));
});

test("the pods of a PodGroup run in one member, whose status of it comes back", async () => {
  const { host, west, east } = clients();
  await make(podGroups, "gang", { spec: { minMember: 6 } });
  const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
  await Promise.all(numbered("worker", 6).map((name) => host.create(pods, delegatedPod(namespace, name, { labels }))));
  await eventuallyPasses(async () => {
    const running = (await podsOf(host, namespace)).filter(({ status }) => status?.phase === "Running");
    expect(running).toHaveLength(6);
    expect(new Set(running.map(({ spec }) => spec?.nodeName))).toHaveLength(1);
  }, PATIENT);
  const [{ spec: { nodeName = "" } = {} } = {}] = await podsOf(host, namespace);
  const [member, other] = nodeName === "legation-west" ? [west, east] : [east, west];
  expect(await find(other, podGroups, "gang")).toBeUndefined();
  const { stdout } = await runCli([
    "status",
    "podgroups.scheduling.x-k8s.io",
    "gang",
    "-n",
    namespace,
    `--kubeconfig=${hostCluster().kubeconfig}`,
  ]);
  expect(stdout).toContain(`goes to the members of the pods that name it: 6 in ${nodeName.slice("legation-".length)}`);
  const body = { status: { phase: "Running", running: 6 } };
  await member.patch(podGroups, { namespace, name: "gang" }, { type: "merge", body }, { subresource: "status" });
  await eventuallyPasses(async () =>
    expect((await find(host, podGroups, "gang"))?.status).toEqual({ phase: "Running", running: 6 }),
  );
});

test.each(["scheduling.k8s.io", "scheduling.volcano.sh"])(
  "Volcano's PodGroup, which pods name by the annotation of %s, goes with them, and its status comes back",
  async (group) => {
    const { host, west } = clients();
    await make(volcanoGroups, "gang", { spec: { minMember: 2, queue: "default" } });
    const annotations = { [`${group}/group-name`]: "gang", "legation.dev/clusters": "west" };
    const names = numbered("worker", 2);
    await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, { annotations }))));
    for (const name of names) await podThat(host, namespace, name, inPhase("Running"));
    expect((await find(west, volcanoGroups, "gang"))?.spec).toEqual({ minMember: 2, queue: "default" });
    const body = { status: { phase: "Running", running: 2 } };
    await west.patch(volcanoGroups, { namespace, name: "gang" }, { type: "merge", body });
    await eventuallyPasses(async () =>
      expect((await find(host, volcanoGroups, "gang"))?.status).toEqual({ phase: "Running", running: 2 }),
    );
    expect((await find(host, volcanoGroups, "gang"))?.spec).toEqual({ minMember: 2, queue: "default" });
  },
);

test("types and their groups are known again after the controller was killed", async () => {
  const { host } = clients();
  await make(podGroups, "gang", { spec: { minMember: 8 } });
  const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
  const create = (names: readonly string[]): Promise<unknown> =>
    Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, { labels }))));
  await create(numbered("early", 4));
  await legation().controller.stop("SIGKILL");
  await create(numbered("late", 4));
  await legation().controller.start();
  await eventuallyPasses(async () => {
    const nodes = (await podsOf(host, namespace)).map(({ spec }) => spec?.nodeName);
    expect(nodes).toHaveLength(8);
    expect(new Set(nodes)).toHaveLength(1);
    expect(nodes[0]).toBeDefined();
  }, PATIENT);
});

test("a type says that its objects go with pods", async () => {
  const ref = { name: kindName(podGroups) };
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(delegatedTypes, ref);
    expect(status?.conditions).toMatchObject([{ type: "Ready", status: "True", reason: "Following" }]);
  }, PATIENT);
});
