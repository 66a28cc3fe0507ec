import { describe, expect, test } from "vitest";
import type { KubeNode } from "../../../../src/api/kubernetes.ts";
import { clusters, delegatedTypes } from "../../../../src/api/resources.ts";
import { clusterRoles } from "../../../../src/cli/member/access.ts";
import { uninstall } from "../../../../src/cli/uninstall/uninstall.ts";
import { jobs, leases, namespaces, nodes, pods, secrets } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";

async function uninstallFrom(host: MemoryCluster, force = false): Promise<void> {
  const { signal } = new AbortController();
  await uninstall([], { force }, { host: host.client, signal, report: () => {} });
}

test("removes a virtual node without its label, and its Lease", async () => {
  const host = new MemoryCluster("host", "host-1");
  const node: KubeNode = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  host.put(nodes, node);
  host.put(leases, { metadata: lease });
  await uninstallFrom(host);
  expect(host.peek(nodes, { name: "legation-west" })).toBeUndefined();
  expect(host.peek(leases, lease)).toBeUndefined();
});

test.each([
  ["without a providerID", undefined],
  ["with a cloud's providerID", "kind://docker/host/legation-west"],
  ["with the providerID of another virtual node", "legation://east"],
])("keeps a node of the host's own by a virtual node's name, %s, and its Lease", async (_which, providerID) => {
  const host = new MemoryCluster("host", "host-1");
  const lease = { namespace: "kube-node-lease", name: "legation-west" };
  const node: KubeNode = {
    metadata: { name: "legation-west" },
    spec: providerID === undefined ? {} : { providerID },
  };
  host.put(nodes, node);
  host.put(leases, { metadata: lease });
  await uninstallFrom(host);
  expect(host.peek(nodes, { name: "legation-west" })).toBeDefined();
  expect(host.peek(leases, lease)).toBeDefined();
});

test.each([
  ["removes the namespace of the page for a team", { "app.kubernetes.io/part-of": "legation" }, undefined],
  ["keeps a namespace of that name that others made", { team: "shop" }, expect.anything()],
])("%s", async (_, labels, left) => {
  const host = new MemoryCluster("host", "host-1");
  host.put(namespaces, { metadata: { name: "legation-ui", labels } });
  await uninstallFrom(host);
  expect(host.peek(namespaces, { name: "legation-ui" })).toEqual(left);
});

test("refuses while there are DelegatedTypes, whose objects only the controller releases", async () => {
  const host = new MemoryCluster("host", "host-1");
  host.put(delegatedTypes, { metadata: { name: "configmaps" }, spec: {} } as object);
  await expect(uninstallFrom(host, true)).rejects.toMatchObject({
    exit: "refused",
    message: "Legation: has 1 DelegatedType: configmaps",
    remedy: expect.stringContaining("kubectl delete delegatedtypes.legation.dev --all"),
  });
});

describe("while a member is joined", () => {
  const joinSecret = (name: string) => ({
    metadata: {
      namespace: "legation-system",
      name: `member-${name}`,
      labels: { "legation.dev/cluster": name },
      annotations: { "legation.dev/token-expires": "2026-12-01T00:00:00Z" },
    },
  });

  test.each([false, true])("refuses, and changes nothing (--force: %s)", async (force) => {
    const host = new MemoryCluster("host", "host-1");
    host.put(clusters, { metadata: { name: "west" }, spec: { credentialsSecret: { name: "member-west" } } } as object);
    host.put(secrets, joinSecret("west"));
    // A Cluster that was deleted without `unjoin` leaves the credentials alone.
    host.put(secrets, joinSecret("east"));
    const metadata = { name: "web", namespace: "team", labels: { "legation.dev/proxy": "true" } };
    host.put(pods, { metadata, status: { phase: "Succeeded" } });
    await expect(uninstallFrom(host, force)).rejects.toMatchObject({
      exit: "refused",
      message: "Legation: has 2 members: east, west",
      remedy: expect.stringContaining("run `legation unjoin east` first"),
    });
    expect(host.peek(pods, { namespace: "team", name: "web" })).toBeDefined();
    expect(host.peek(clusters, { name: "west" })).toBeDefined();
  });

  test("does not take an operator's Secret for a member", async () => {
    const host = new MemoryCluster("host", "host-1");
    host.put(secrets, {
      metadata: { namespace: "legation-system", name: "west", labels: { "legation.dev/cluster": "west" } },
    });
    await uninstallFrom(host);
  });
});

test("refuses while whole Jobs have not finished, and names them beside pods", async () => {
  const host = new MemoryCluster("host", "host-1");
  const labels = { "legation.dev/whole": "true" };
  const conditions = [{ type: "Complete", status: "True" }];
  host.put(jobs, { metadata: { name: "sum", namespace: "team", labels } });
  host.put(jobs, { metadata: { name: "done", namespace: "team", labels }, status: { conditions } });
  await expect(uninstallFrom(host)).rejects.toMatchObject({
    exit: "refused",
    message: expect.stringContaining("1 whole Job has not finished: Job team/sum"),
  });
  host.put(pods, { metadata: { name: "web", namespace: "team", labels: { "legation.dev/proxy": "true" } } });
  await expect(uninstallFrom(host)).rejects.toThrow(
    "1 delegated pod and 1 whole Job have not finished: team/web, Job team/sum",
  );
});

test("removes the roles of delegated types, and no others", async () => {
  const host = new MemoryCluster("host", "uid-of-host");
  const labelled = { "legation.dev/delegated-type": "true" };
  host.put(clusterRoles, { metadata: { name: "legation-authors-configmaps", labels: labelled } });
  host.put(clusterRoles, { metadata: { name: "edit" } });
  await uninstallFrom(host);
  expect(host.peek(clusterRoles, { name: "legation-authors-configmaps" })).toBeUndefined();
  expect(host.peek(clusterRoles, { name: "edit" })).toBeDefined();
});
