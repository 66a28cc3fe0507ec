import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { clusterProxyPath } from "../../src/api/access.ts";
import { CLUSTER_PROFILES_LABEL, SYSTEM_NAMESPACE } from "../../src/api/keys.ts";
import type { ClusterProfile, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { configMaps, events, namespaces } from "../../src/kube/resources.ts";
import { auditEvents, isWrite } from "../support/clusters/audit.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { installClusterProfiles, profilesV1alpha1, removeClusterProfiles } from "../support/profiles/definition.ts";

// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  await installClusterProfiles(hostCluster());
  afterFile(() => removeClusterProfiles(hostCluster()));
});
useLegation({ controllerFlags: [`--home-api-server=${hostCluster().server}`] });
const clients = useClients();
const patient = { timeoutMs: 30_000, intervalMs: 100 };

function profile(name: string, namespace: string = SYSTEM_NAMESPACE): Promise<Stored<ClusterProfile> | undefined> {
  return clients().host.find(profilesV1alpha1, { namespace, name });
}

function patchCluster(name: string, body: object): Promise<unknown> {
  return clients().host.patch(clusters, { name }, { type: "merge", body });
}

function asking(): Promise<string> {
  const labels = { [CLUSTER_PROFILES_LABEL]: "true" };
  return freshNamespace(hostCluster(), { prefix: "profiles", labels, deleted: true });
}

describe("the ClusterProfile of each Cluster", () => {
  test("shows the member's version, labels and conditions", async () => {
    const { host } = clients();
    await eventuallyPasses(async () => {
      for (const [name, region] of [
        ["west", "eu"],
        ["east", "us"],
      ]) {
        const { metadata, status } = await host.get(clusters, { name: name ?? "" });
        expect(await profile(name ?? "")).toMatchObject({
          metadata: {
            labels: { "x-k8s.io/cluster-manager": "legation" },
            ownerReferences: [{ kind: "Cluster", name, uid: metadata.uid }],
          },
          spec: { displayName: name, clusterManager: { name: "legation" } },
          status: {
            version: { kubernetes: status?.version },
            properties: expect.arrayContaining([{ name: "region", value: region }]),
            conditions: [
              { type: "ControlPlaneHealthy", status: "True", reason: "ProbeSucceeded" },
              { type: "Joined", status: "True", reason: "Joined" },
            ],
          },
        });
      }
    }, patient);
    expect((await profile("west"))?.status).not.toHaveProperty("accessProviders");
  });

  test("follows the Cluster's labels, and leaves what other clients write", async () => {
    const { host } = clients();
    const namespace = await asking();
    const ref = { namespace, name: "west" };
    await eventually(async () => (await profile("west", namespace))?.status?.version, patient);
    await host.patch(profilesV1alpha1, ref, { type: "merge", body: { spec: { displayName: "The West" } } });
    const other = { type: "AllNodesHealthy", status: "True", reason: "Counted", message: "3 of 3" };
    const body = {
      apiVersion: "multicluster.x-k8s.io/v1alpha1",
      kind: "ClusterProfile",
      metadata: ref,
      status: {
        conditions: [{ ...other, lastTransitionTime: "2026-01-01T00:00:00Z" }],
        properties: [{ name: "price", value: "low" }],
      },
    };
    const options = { subresource: "status", fieldManager: "counter" };
    await host.patch(profilesV1alpha1, ref, { type: "apply", body }, options);
    onTestFinished(async () => {
      await patchCluster("west", { metadata: { labels: { zone: null } } });
    });
    const zones = async (): Promise<(string | undefined)[]> => {
      const { properties } = (await profile("west", namespace))?.status ?? {};
      return ["zone", "price"].map((name) => properties?.find((one) => one.name === name)?.value);
    };
    await patchCluster("west", { metadata: { labels: { zone: "eu-1" } } });
    await eventuallyPasses(async () => expect(await zones()).toEqual(["eu-1", "low"]), patient);
    await patchCluster("west", { metadata: { labels: { zone: null } } });
    await eventuallyPasses(async () => expect(await zones()).toEqual([undefined, "low"]), patient);
    expect(await profile("west", namespace)).toMatchObject({
      spec: { displayName: "The West" },
      status: { conditions: expect.arrayContaining([expect.objectContaining(other)]) },
    });
    // The controller writes a create and a status at first, and a status per change.
    const writes = await auditEvents(
      hostCluster(),
      (event) =>
        isWrite(event) &&
        event.user.username === "system:serviceaccount:legation-system:legation-controller" &&
        event.objectRef?.resource === "clusterprofiles" &&
        event.objectRef.namespace === namespace &&
        event.objectRef.name === "west",
      [namespace],
    );
    expect(writes.map(({ verb }) => verb).toSorted()).toEqual(["create", "patch", "patch", "patch"]);
  });

  test("gets the label of its manager back", async () => {
    const label = "x-k8s.io/cluster-manager";
    const body = { metadata: { labels: { [label]: null } } };
    await clients().host.patch(
      profilesV1alpha1,
      { namespace: SYSTEM_NAMESPACE, name: "east" },
      { type: "merge", body },
    );
    await eventually(async () => (await profile("east"))?.metadata.labels?.[label] === "legation", patient);
  });

  test("has an access provider while the Cluster lets users in", async () => {
    const { host } = clients();
    onTestFinished(async () => {
      await patchCluster("west", { spec: { access: null } });
    });
    await patchCluster("west", { spec: { access: { prefix: "legation:" } } });
    const providers = async (): Promise<unknown> => (await profile("west"))?.status?.accessProviders ?? [];
    const { data = {} } = await host.get(configMaps, { namespace: "kube-system", name: "kube-root-ca.crt" });
    const provider = {
      name: "legation",
      cluster: {
        server: `${hostCluster().server}${clusterProxyPath("west")}`,
        "certificate-authority-data": Buffer.from(data["ca.crt"] ?? "").toString("base64"),
        extensions: [{ name: "client.authentication.k8s.io/exec", extension: { clusterName: "west" } }],
      },
    };
    await eventuallyPasses(async () => expect(await providers()).toEqual([provider]), patient);
    await patchCluster("west", { spec: { access: null } });
    await eventuallyPasses(async () => expect(await providers()).toEqual([]), patient);
  });
});

test("a ClusterProfile of another manager stays as it is, and the operator is told", async () => {
  const { host } = clients();
  const namespace = await freshNamespace(hostCluster(), { prefix: "profiles", deleted: true });
  const foreign = await host.create(profilesV1alpha1, {
    apiVersion: "multicluster.x-k8s.io/v1alpha1",
    kind: "ClusterProfile",
    metadata: { namespace, name: "west" },
    spec: { displayName: "mine", clusterManager: { name: "fleet" } },
  });
  const label = (value: string | null): Promise<unknown> => {
    const body = { metadata: { labels: { [CLUSTER_PROFILES_LABEL]: value } } };
    return host.patch(namespaces, { name: namespace }, { type: "merge", body });
  };
  await label("true");
  await eventually(() => profile("east", namespace), patient);
  await eventually(async () => {
    const { items } = await host.list(events, { namespace: "default" });
    return items.some(
      ({ reason, involvedObject, message = "" }) =>
        reason === "ProfileConflict" && involvedObject.name === "west" && message.includes(`${namespace}/west`),
    );
  }, patient);
  await label(null);
  await eventually(async () => (await profile("east", namespace)) === undefined, patient);
  expect((await profile("west", namespace))?.metadata.resourceVersion).toBe(foreign.metadata.resourceVersion);
});
