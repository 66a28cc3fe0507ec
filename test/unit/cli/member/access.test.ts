import { describe, expect, test } from "vitest";
import { SYSTEM_NAMESPACE } from "../../../../src/api/keys.ts";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import {
  clusterRoleBindings,
  clusterRoles,
  findAccess,
  giveUpAccess,
  hostAccountName,
} from "../../../../src/cli/member/access.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { type Resource, serviceAccounts } from "../../../../src/kube/resources.ts";
import { clientOf, type Subject } from "../../../support/api-server/client.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";

const HOST = "11111111-1111-1111-1111-111111111111";
const OTHER = "22222222-2222-2222-2222-222222222222";
const NAME = hostAccountName(HOST);
const RESOURCES: readonly Resource<KubeObject>[] = [clusterRoles, clusterRoleBindings, serviceAccounts];
const { signal } = new AbortController();

/** A member with the access of two hosts, each with a role for a type. */
function joined(): MemoryCluster {
  const west = new MemoryCluster("west", "west");
  for (const host of [HOST, OTHER]) {
    const name = hostAccountName(host);
    const labels = { "legation.dev/host": host };
    const { uid } = west.put(clusterRoles, { metadata: { name, labels } }).metadata;
    const ownerReferences = [{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", name, uid }];
    const owned = { labels, ownerReferences };
    west.put(clusterRoleBindings, { metadata: { name, ...owned } });
    west.put(serviceAccounts, { metadata: { name, namespace: SYSTEM_NAMESPACE, ...owned } });
    for (const resource of [clusterRoles, clusterRoleBindings]) {
      west.put(resource, { metadata: { name: `${name}-jobs.batch`, ...owned } });
    }
  }
  return west;
}

/** Gives a host's access up, after `meanwhile`. Resolves to what was told. */
async function giveUp(client: ClusterClient, meanwhile: () => void = () => {}) {
  const told: string[] = [];
  const access = await findAccess(client, HOST, signal);
  meanwhile();
  const remains = (what: string) => void told.push(`remains: ${what}`);
  await giveUpAccess(client, HOST, access, { signal, report: (line) => void told.push(line), remains });
  return told;
}

function namesIn(west: MemoryCluster): string[] {
  return RESOURCES.flatMap((resource) => west.all(resource).map(({ metadata }) => metadata.name)).sort();
}

describe("the access of a host", () => {
  test("goes with its roles for types; that of another host and a service account of another namespace stay", async () => {
    const west = joined();
    west.put(serviceAccounts, { metadata: { name: NAME, namespace: "shop", labels: { "legation.dev/host": HOST } } });
    expect(await giveUp(west.client)).toEqual([
      `west: ClusterRole ${NAME} removed`,
      `west: ClusterRoleBinding ${NAME} removed`,
      `west: ClusterRoleBinding ${NAME}-jobs.batch removed`,
      `west: ClusterRole ${NAME}-jobs.batch removed`,
      `west: ServiceAccount ${SYSTEM_NAMESPACE}/${NAME} removed`,
    ]);
    expect(namesIn(west).filter((name) => name.startsWith(NAME))).toEqual([NAME]);
    expect(west.peek(serviceAccounts, { namespace: "shop", name: NAME })).toBeDefined();
    expect(namesIn(west)).toHaveLength(6);
  });

  test("stays where a new join has granted it since it was read", async () => {
    const west = joined();
    const before = namesIn(west);
    const again = (): void => {
      for (const resource of [clusterRoles, clusterRoleBindings]) west.remake(resource, { metadata: { name: NAME } });
    };
    expect(await giveUp(west.client, again)).toEqual([]);
    expect(namesIn(west)).toEqual(before);
  });

  test("stays as a whole where its ClusterRole may not be deleted: another try needs it", async () => {
    const west = joined();
    const before = namesIn(west);
    const client = clientOf(west, { way: { permits: ({ verb }) => verb !== "delete" } });
    expect(await giveUp(client)).toEqual([
      expect.stringMatching(`^remains: ClusterRole ${NAME}, its ClusterRoleBinding and ServiceAccount: `),
    ]);
    expect(namesIn(west)).toEqual(before);
  });

  test("goes by its own credentials, which may delete its ClusterRole alone and not read it", async () => {
    const west = joined();
    // manifests/member and `ownRules` of the join.
    const permits = ({ verb, resource, objectName }: Subject): boolean =>
      (verb === "list" && resource === "serviceaccounts") ||
      (verb === "delete" && resource === "clusterroles" && objectName === NAME);
    const client = clientOf(west, { way: { permits } });
    const { role, owned } = await findAccess(client, HOST, signal);
    expect(role).toEqual({ uid: west.find(clusterRoles, { name: NAME })?.metadata.uid });
    expect(owned.map(({ object }) => object.metadata.name)).toEqual([NAME]);
    expect(await giveUp(client)).toEqual([
      `west: ClusterRole ${NAME} removed`,
      `west: ServiceAccount ${SYSTEM_NAMESPACE}/${NAME} (with its ClusterRole) removed`,
    ]);
    expect(west.find(clusterRoles, { name: NAME })).toBeUndefined();
  });

  test("that is not there gives nothing to remove", async () => {
    expect(await giveUp(new MemoryCluster("west", "west").client)).toEqual([]);
  });
});
