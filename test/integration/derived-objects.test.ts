import { describe, expect, test } from "vitest";
import type {
  KubeObject,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Stored,
} from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import {
  configMaps,
  endpointSlices,
  networkPolicies,
  persistentVolumeClaims,
  pods,
  type Resource,
  secrets,
  services,
} from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";

// Clients of a member carry labels and annotations over to objects that they derive: `kubectl debug --copy-to
// --keep-labels --keep-annotations`, backup tools, policy controllers.

useLegation();
const clients = useClients();
const PATIENT = { timeoutMs: 60_000 };
const labels = { "legation.dev/delegation": "annotated" };
type Finished = (cleanUp: () => Promise<void>) => void;

function namespaceFor(onFinished: Finished): Promise<string> {
  return freshNamespace([hostCluster(), memberCluster("west")], { prefix: "derived", labels, onFinished });
}

async function run(namespace: string, name: string, spec: object = {}): Promise<void> {
  const annotations = { "legation.dev/clusters": "west" };
  const pod = delegatedPod(namespace, name, { annotations, spec: { automountServiceAccountToken: false, ...spec } });
  await clients().host.create(pods, pod);
  await podThat(clients().host, namespace, name, inPhase("Running"), PATIENT);
}

/** Creates an object with the labels and annotations of another one, under another name. */
async function derive<T extends KubeObject>(resource: Resource<T>, from: Stored<T>, name: string, content: object) {
  const { namespace = "", labels, annotations } = from.metadata;
  const object = { metadata: { name, namespace, labels, annotations }, ...content } as unknown as T;
  return await clients().west.create(resource, object);
}

async function stays<T extends KubeObject>(resource: Resource<T>, { metadata }: Stored<T>): Promise<void> {
  const { namespace = "", name, uid, labels } = metadata;
  const there = await clients().west.find(resource, { namespace, name });
  expect(there?.metadata).toMatchObject({ uid, labels });
  expect(there?.metadata.deletionTimestamp).toBeUndefined();
}

async function onHost(client: ClusterClient, namespace: string, name: string): Promise<Stored<PersistentVolumeClaim>> {
  return await client.create(persistentVolumeClaims, {
    metadata: { namespace, name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });
}

test.concurrent("a delivery tool of the member does not prune copies of what the same tool applied on the host", async ({
  onTestFinished,
}) => {
  const { host, west } = clients();
  const namespace = await namespaceFor(onTestFinished);
  // Two clusters have the same applyset when the same pipeline delivers to both.
  const deliver = (cluster: Cluster, items: readonly object[]): Promise<string> =>
    kubectl(cluster, ["apply", "--server-side", "--applyset=secrets/shop", "--prune", "-n", namespace, "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items }),
      within: ["env", "KUBECTL_APPLYSET=true"],
    });
  const app = { "app.kubernetes.io/instance": "shop" };
  const spec = { selector: app, ports: [{ port: 80 }] };
  const configMap = (name: string): object => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: {} });
  const service = (name: string): object => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, labels: { ...app, tier: "front" } },
    spec,
  });
  const annotations = { "legation.dev/clusters": "west" };
  const env = [{ configMapRef: { name: "cfg" } }];
  const containers = [{ name: "main", image: "work:1", envFrom: env }];
  const pod = (name: string): object =>
    delegatedPod(namespace, name, {
      annotations,
      labels: app,
      spec: { automountServiceAccountToken: false, containers },
    });
  await deliver(hostCluster(), [configMap("cfg"), service("web"), pod("web")]);
  await podThat(host, namespace, "web", inPhase("Running"), PATIENT);
  const copyOf = <T extends KubeObject>(resource: Resource<T>, name: string): Promise<Stored<T>> =>
    eventually(() => west.find(resource, { namespace, name }), { ...PATIENT, what: `${name} in west` });
  const before = [await copyOf(configMaps, "cfg"), await copyOf(services, "web"), await copyOf(pods, "web")];
  await deliver(memberCluster("west"), [configMap("own"), service("own"), pod("own")]);
  expect(await deliver(memberCluster("west"), [configMap("own"), service("own")])).not.toContain("/web pruned");
  const after = [await copyOf(configMaps, "cfg"), await copyOf(services, "web"), await copyOf(pods, "web")];
  expect(after.map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid));
  // The Service selects the delegate by a label that Argo CD may use, too.
  const [, copiedService, delegate] = after;
  expect(delegate?.metadata.labels).toMatchObject(app);
  expect(copiedService?.metadata.labels).toMatchObject({ tier: "front" });
  expect(copiedService?.metadata.labels).not.toHaveProperty("app.kubernetes.io/instance");
  const hasEndpoint = async (): Promise<boolean> => {
    const { items } = await west.list(endpointSlices, { namespace, labelSelector: "kubernetes.io/service-name=web" });
    return items.some(({ endpoints }) => (endpoints ?? []).length > 0);
  };
  await eventually(hasEndpoint, { ...PATIENT, what: "the endpoint in west" });
});

test.concurrent("a Secret that a client derived from a copied ConfigMap of its name stays when the copy goes", async ({
  onTestFinished,
}) => {
  const { host, west } = clients();
  const namespace = await namespaceFor(onTestFinished);
  await host.create(configMaps, { metadata: { namespace, name: "settings" }, data: { color: "blue" } });
  const volumes = [{ name: "settings", configMap: { name: "settings" } }];
  await run(namespace, "web", { volumes });
  const copy = await west.get(configMaps, { namespace, name: "settings" });
  expect(ownerOf(copy)?.kind).toBe("ConfigMap");
  const derived: Stored<Secret> = await derive(secrets, copy, "settings", { stringData: { color: "blue" } });
  await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
  const isGone = async (): Promise<boolean> =>
    (await west.find(configMaps, { namespace, name: "settings" })) === undefined;
  await eventually(isGone, { ...PATIENT, what: "the end of the copy" });
  await stays(secrets, derived);
});

describe.concurrent("with labels and annotations of Legation's, under another name, a member's own", () => {
  test("pod stays, and keeps a delegate of its name out of the member", async ({ onTestFinished }) => {
    const { host, west } = clients();
    const namespace = await namespaceFor(onTestFinished);
    await run(namespace, "web");
    const delegate = await west.get(pods, { namespace, name: "web" });
    const containers = [{ name: "main", image: "debug:1" }];
    const debug: Stored<Pod> = await derive(pods, delegate, "web-debug", { spec: { containers } });
    const taken = delegatedPod(namespace, "web-debug", { annotations: { "legation.dev/clusters": "west" } });
    await host.create(pods, taken);
    await podThat(
      host,
      namespace,
      "web-debug",
      ({ status }) => JSON.stringify(status?.conditions ?? []).includes("a pod of that name"),
      PATIENT,
    );
    await host.delete(pods, { namespace, name: "web" }, { gracePeriodSeconds: 0 });
    await podGone(west, namespace, "web");
    await host.delete(pods, { namespace, name: "web-debug" }, { gracePeriodSeconds: 0 });
    await podGone(host, namespace, "web-debug");
    await stays(pods, debug);
  });

  test("claim stays with its data when the claim that it was derived from goes", async ({ onTestFinished }) => {
    const { host, west } = clients();
    const namespace = await namespaceFor(onTestFinished);
    await onHost(host, namespace, "data");
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const annotations = { "legation.dev/clusters": "west" };
    await host.create(pods, delegatedPod(namespace, "db", { annotations, spec: { volumes } }));
    const find = (name: string) => west.find(persistentVolumeClaims, { namespace, name });
    const copy = await eventually(() => find("data"), { ...PATIENT, what: "the claim in west" });
    const { spec } = copy;
    const restored = await derive(persistentVolumeClaims, copy, "restored", { spec });
    await host.delete(pods, { namespace, name: "db" }, { gracePeriodSeconds: 0 });
    await host.delete(persistentVolumeClaims, { namespace, name: "data" });
    await eventually(async () => (await find("data")) === undefined, { ...PATIENT, what: "the end of the claim" });
    await stays(persistentVolumeClaims, restored);
  });

  test("NetworkPolicy stays as it is", async ({ onTestFinished }) => {
    const { host, west } = clients();
    const namespace = await namespaceFor(onTestFinished);
    await host.create(networkPolicies, { metadata: { namespace, name: "rules" }, spec: { podSelector: {} } });
    await run(namespace, "web");
    const copies = async (): Promise<Stored<NetworkPolicy>[]> => {
      const { items } = await west.list(networkPolicies, { namespace });
      return items.filter((item) => ownerOf(item)?.name === "rules" && item.metadata.name !== "derived");
    };
    const [copy] = await eventually(
      async () => {
        const there = await copies();
        return there.length === 1 ? there : undefined;
      },
      { ...PATIENT, what: "the copy in west" },
    );
    if (copy === undefined) throw new Error("no copy");
    const spec = { podSelector: { matchLabels: { mine: "yes" } } };
    const derived = await derive(networkPolicies, copy, "derived", { spec });
    await host.delete(networkPolicies, { namespace, name: "rules" });
    await eventually(async () => (await copies()).length === 0, { ...PATIENT, what: "the end of the copy" });
    await stays(networkPolicies, derived);
  });
});
