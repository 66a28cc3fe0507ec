import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { clusterRoleBindings, clusterRoles } from "../../../../src/cli/member/access.ts";
import { cleanMember } from "../../../../src/cli/member/clean.ts";
import type { RawRequest } from "../../../../src/kube/client.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { namespaces, type Resource, serviceAccounts } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { discovering, discoveryDocument, type TypeServed } from "../../../support/builders/discovery.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const HOST = "host-1";
const { signal } = new AbortController();

function failure(code: KubeErrorCode, resource: string): KubeError {
  return kubeError(code, `says ${code}`, { cluster: "fake", verb: "list", resource });
}

const TYPES: readonly TypeServed[] = [
  { plural: "configmaps", kind: "ConfigMap" },
  { group: "networking.k8s.io", plural: "networkpolicies", kind: "NetworkPolicy" },
  { group: "stock.example.com", plural: "items", kind: "Item" },
  { group: "metrics.k8s.io", plural: "pods", kind: "PodMetrics", isStale: true },
  { group: "custom.metrics.k8s.io", plural: "pods", kind: "MetricValueList", isStale: true },
];

function withoutNamespace({
  metadata: { namespace: _, ...metadata },
  ...rest
}: Stored<KubeObject>): Stored<KubeObject> {
  return { ...rest, metadata };
}

/** A member with ConfigMaps of two hosts and an aggregated API; without any of this host's access. */
function member(
  items: KubeErrorCode | readonly Stored<KubeObject>[],
  {
    configMaps,
    namespaces,
    classes = false,
    undiscovered,
    isStale = false,
    types = [],
  }: {
    readonly configMaps?: KubeErrorCode;
    readonly namespaces?: KubeErrorCode;
    /** The member has a RuntimeClass of each host. */
    readonly classes?: boolean;
    /** Discovery is answered with an error. */
    readonly undiscovered?: KubeErrorCode;
    /** The server of the aggregated API does not answer. */
    readonly isStale?: boolean;
    /** Resources of the host's DelegatedTypes. */
    readonly types?: readonly Resource<KubeObject>[];
  } = {},
): { run: Promise<{ readonly removed: string[]; readonly remained: string[] }> } {
  const object = (name: string, host: string): Stored<KubeObject> => ({
    metadata: { namespace: "shop", name, uid: name, resourceVersion: "1", labels: { "legation.dev/host": host } },
  });
  const client = fakeClient({
    raw: async ({ path }: RawRequest) => {
      if (undiscovered !== undefined) throw failure(undiscovered, path);
      return discoveryDocument(
        path,
        TYPES.map((type) => (type.plural === "items" ? { ...type, isStale } : type)),
      );
    },
    // A server that does not heed selectors.
    list: async ({ plural }: { plural: string }) => {
      if (plural === "configmaps" && configMaps !== undefined) throw failure(configMaps, plural);
      if (plural === "namespaces" && namespaces !== undefined) throw failure(namespaces, plural);
      const found =
        plural === "configmaps"
          ? [object("ours", HOST), object("theirs", "host-2")]
          : classes && plural === "runtimeclasses"
            ? [withoutNamespace(object("gvisor", HOST)), withoutNamespace(object("kata", "host-2"))]
            : plural === "customresourcedefinitions"
              ? [withoutNamespace(object("things.example.com", HOST))]
              : plural === "items" && typeof items === "object"
                ? items
                : [];
      if (plural === "items" && typeof items === "string") throw failure(items, plural);
      return { items: found, resourceVersion: "1", size: 0 };
    },
    find: async () => undefined,
    delete: async ({ plural }: { plural: string }) => {
      if (!["configmaps", "runtimeclasses", "customresourcedefinitions"].includes(plural))
        throw failure("NotFound", plural);
    },
  });
  const told = { removed: [] as string[], remained: [] as string[] };
  const context = {
    signal,
    refuseSuccessor: async () => {},
    types,
    report: (line: string) => void told.removed.push(line.replace(/^fake: (.*) removed$/, "$1")),
    remains: (what: string) => void told.remained.push(what),
  };
  return { run: cleanMember(client, HOST, context).then(() => told) };
}

describe("cleaning a member", () => {
  test("removes this host's objects alone, also where the server ignores the selector", async () => {
    const { removed, remained } = await member([]).run;
    expect(removed).toEqual(["ConfigMap shop/ours"]);
    expect(remained).toEqual([]);
  });

  test("removes this host's classes, which have no namespace", async () => {
    const { removed } = await member([], { classes: true }).run;
    expect(removed).toEqual(["ConfigMap shop/ours", "RuntimeClass gvisor"]);
  });

  const type = (plural: string, namespaced: boolean) => ({
    group: plural === "items" ? "stock.example.com" : "node.k8s.io",
    version: "v1",
    plural,
    kind: "Any",
    namespaced,
  });

  test("says that copies of a delegated type may stay, which the credentials may not list", async () => {
    const { remained } = await member("Forbidden", { types: [type("items", true)] }).run;
    expect(remained).toEqual([expect.stringMatching(/^copies of items.stock.example.com: if there are any/)]);
    expect((await member("Forbidden").run).remained).toEqual([]);
  });

  test("removes copies of a delegated type without a namespace", async () => {
    const { removed } = await member([], { classes: true, types: [type("runtimeclasses", false)] }).run;
    expect(removed).toContain("Any gvisor");
  });

  test("keeps and reports a definition, whose deletion would take all objects of its type along", async () => {
    const definitions = { ...type("customresourcedefinitions", false), group: "apiextensions.k8s.io" };
    const { removed, remained } = await member([], { types: [definitions] }).run;
    expect(removed).toEqual(["ConfigMap shop/ours"]);
    expect(remained).toEqual([
      expect.stringMatching(/^CustomResourceDefinition things.example.com: all objects of its type would go/),
    ]);
  });

  test("reports namespaces that may not be listed, with how an administrator finds them", async () => {
    const { remained } = await member([], { namespaces: "Forbidden" }).run;
    expect(remained).toHaveLength(1);
    expect(remained[0]).toContain("Namespaces that Legation made there");
    expect(remained[0]).toContain("`kubectl get namespaces -l legation.dev/host=host-1`");
  });

  test("keeps its access when a kind of Legation's objects cannot be listed", async () => {
    await expect(member([], { configMaps: "ServerError" }).run).rejects.toThrow("says ServerError");
  });

  test.each(["ServerError", "AnswerLost", "BadAnswer"] as const)(
    "stops, with its access kept, when its discovery is answered with %s",
    async (code) => {
      await expect(member([], { undiscovered: code }).run).rejects.toThrow(`says ${code}`);
    },
  );

  test("goes on when the server of an aggregated API does not answer, and says so", async () => {
    const { removed, remained } = await member([], { isStale: true }).run;
    expect(removed).toEqual(["ConfigMap shop/ours"]);
    expect(remained).toEqual(["objects in stock.example.com/v1: that API does not answer"]);
  });

  test.each(["BadAnswer", "ServerError", "AnswerLost"] as const)(
    "goes on when an aggregated API fails with %s, and says so",
    async (code) => {
      const { removed, remained } = await member(code).run;
      expect(removed).toEqual(["ConfigMap shop/ours"]);
      expect(remained).toEqual([`objects in items.stock.example.com: says ${code}`]);
    },
  );

  test("stops when the member does not answer", async () => {
    await expect(member("NotSent").run).rejects.toMatchObject({ code: "NotSent" });
    await expect(member([], { configMaps: "AnswerLost" }).run).rejects.toMatchObject({ code: "AnswerLost" });
  });
});

test("reports a namespace before it waits for it, and as removed when it is gone", async () => {
  const told: string[] = [];
  const labels = { "legation.dev/host": HOST };
  const shop = { metadata: { name: "shop", uid: "u", resourceVersion: "1", labels } };
  const client = fakeClient({
    raw: discovering(),
    list: async () => ({ items: [shop], resourceVersion: "1", size: 0 }),
    find: async (_resource, { name }) => {
      if (name === shop.metadata.name) told.push("looks");
      return undefined;
    },
    delete: async ({ plural }) => {
      if (plural !== "namespaces") throw failure("NotFound", plural);
    },
  });
  await cleanMember(client, HOST, {
    signal,
    refuseSuccessor: async () => {},
    types: [],
    report: (line) => told.push(line),
    remains: (what) => told.push(`${what} remains`),
  });
  expect(told).toEqual([
    "fake: Namespace shop is being deleted; waiting until it is gone",
    "looks",
    "fake: Namespace shop removed",
  ]);
});

describe("the access in a member", () => {
  const name = "legation-host-host-1";
  const labels = { "legation.dev/host": HOST };
  const ROLE = { resource: clusterRoles, ref: { name } };
  const BINDING = { resource: clusterRoleBindings, ref: { name } };
  const ACCOUNT = { resource: serviceAccounts, ref: { name, namespace: "legation-system" } };

  /** A member in which the access is made again as a namespace goes; by the host's own credentials, unless `isAdministrator`. */
  async function clean({ isAdministrator }: { readonly isAdministrator: boolean }): Promise<MemoryCluster> {
    const cluster = new MemoryCluster("west", "member-1");
    const grant = (): void => {
      cluster.remake(ROLE.resource, { metadata: { ...ROLE.ref, labels } });
      cluster.remake(BINDING.resource, { metadata: { ...BINDING.ref, labels } });
      const owner = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", name };
      const ownerReferences = [{ ...owner, uid: cluster.peek(ROLE.resource, ROLE.ref)?.metadata.uid ?? "" }];
      cluster.remake(ACCOUNT.resource, { metadata: { ...ACCOUNT.ref, labels, ownerReferences } });
    };
    grant();
    cluster.put(namespaces, { metadata: { name: "shop", labels } });
    cluster.onRemoval = ({ plural }) => {
      if (plural === "namespaces") grant();
    };
    const client = fakeClient({
      ...cluster.client,
      find: async (resource, ref, options) => {
        if (!isAdministrator && resource.plural.startsWith("clusterrole")) throw failure("Forbidden", resource.plural);
        return cluster.client.find(resource, ref, options);
      },
    });
    await cleanMember(client, HOST, {
      signal,
      refuseSuccessor: async () => {},
      types: [],
      report: () => {},
      remains: () => {},
    });
    return cluster;
  }

  test.each([
    ["an administrator's", true],
    ["the host's own", false],
  ])("stays when it was granted anew meanwhile, with %s credentials", async (_whose, isAdministrator) => {
    const cluster = await clean({ isAdministrator });
    for (const { resource, ref } of [ROLE, BINDING, ACCOUNT]) expect(cluster.peek(resource, ref)).toBeDefined();
  });
});
