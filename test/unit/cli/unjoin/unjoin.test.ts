import { describe, expect, test } from "vitest";
import { CLUSTER_FINALIZER } from "../../../../src/api/keys.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { clusterRoleBindings, clusterRoles } from "../../../../src/cli/member/access.ts";
import type { UnjoinContext, UnjoinOptions } from "../../../../src/cli/unjoin/drain.ts";
import { type Unjoined, unjoin } from "../../../../src/cli/unjoin/unjoin.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { leases, namespaces, nodes, pods, secrets, serviceAccounts } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection } from "../session.ts";

const HOST = "0123456789-host";
const SPEC = { credentialsSecret: { name: "member-west" } };
const { signal } = new AbortController();

/** An `unjoin west` that reaches the host and this member, and nothing else. */
function unjoinWest(
  host: ClusterClient,
  member: ClusterClient | undefined,
  { options, ...context }: Partial<UnjoinContext> & { readonly options?: Partial<UnjoinOptions> } = {},
): Promise<Unjoined> {
  const unexpected = (): Promise<never> => Promise.reject(new Error("not expected"));
  return unjoin(
    { name: "west", drain: false, force: false, timeoutMs: 1000, ...options },
    {
      host,
      member: member && connection(member, { server: "https://192.0.2.1" }),
      connectText: unexpected,
      asController: unexpected,
      signal,
      report: () => {},
      ...context,
    },
  );
}

interface Member {
  /** The uid of its kube-system. */
  readonly id?: string;
  /** The Cluster that its service account for this host is for; none: it has no such account. */
  readonly joinedAs?: string;
}

/** An `unjoin west` that ends where it would begin to change something: at the virtual node. */
function leave(
  { id = "member-1", joinedAs }: Member,
  {
    joined = ["west"],
    identified = {},
    ...options
  }: Partial<UnjoinOptions> & {
    joined?: readonly string[];
    /** The members that Clusters know by the uid of their kube-system. */
    identified?: Readonly<Record<string, string>>;
  } = {},
): Promise<unknown> {
  const meta = (name: string, uid: string): object => ({ metadata: { name, uid, resourceVersion: "1" } });
  const cluster = (name: string): object => {
    const annotations = { "legation.dev/member-uid": identified[name] };
    return { metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1", annotations }, spec: SPEC };
  };
  const host = fakeClient({
    get: async () => meta("kube-system", HOST),
    find: async ({ plural }: { plural: string }, { name }: { name: string }) => {
      if (plural === "nodes") throw new Error("went on");
      return plural === "clusters" && joined.includes(name) ? cluster(name) : undefined;
    },
    list: async () => ({ items: joined.map(cluster) }),
  });
  const labels = { "legation.dev/host": HOST, "legation.dev/cluster": joinedAs };
  const client = fakeClient({
    get: async () => meta("kube-system", id),
    list: async () => ({ items: joinedAs === undefined ? [] : [{ metadata: { labels } }] }),
  });
  return unjoinWest(host, client, { options });
}

describe("an unjoin with a kubeconfig of the member", () => {
  test("accepts the cluster that has joined under the name", async () => {
    await expect(leave({ joinedAs: "west" })).rejects.toThrow("went on");
  });

  test("accepts it without its service account, by its identity", async () => {
    await expect(leave({}, { identified: { west: "member-1" } })).rejects.toThrow("went on");
  });

  test("refuses the member of another Cluster", async () => {
    await expect(leave({}, { joined: ["west", "east"], identified: { east: "member-1" } })).rejects.toThrow(
      "has joined as east",
    );
  });

  test.each([
    ["the host itself", { id: HOST }, /the member is the host itself/],
    ["a cluster that never joined", {}, /has no ServiceAccount legation-system\/legation-host-01234567 for it/],
    ["a cluster that joined under a name that is gone", { joinedAs: "gone" }, /has no ServiceAccount/],
    ["another member", { joinedAs: "east" }, /has joined as east/],
  ])("refuses %s", async (_which, member, message) => {
    await expect(leave(member, { joined: ["west", "east"] })).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringMatching(message),
    });
  });

  test.each([
    ["the host itself", { id: HOST }, /the member is the host itself/],
    ["another member", { joinedAs: "east" }, /has joined as east/],
  ])("refuses %s, whatever --force says", async (_which, member, message) => {
    await expect(leave(member, { joined: ["west", "east"], force: true })).rejects.toThrow(message);
  });

  test("says what to write where the service account was deleted, and accepts the cluster then", async () => {
    await expect(leave({})).rejects.toMatchObject({
      remedy: expect.stringContaining("kubectl annotate clusters.legation.dev west legation.dev/member-uid=member-1"),
    });
    await expect(leave({}, { force: true })).rejects.toThrow("went on");
  });

  test("cleans the leftovers of an interrupted join when there is no Cluster", async () => {
    await expect(leave({}, { joined: [] })).rejects.toThrow("went on");
    await expect(leave({ joinedAs: "west" }, { joined: [] })).rejects.toThrow("went on");
  });
});

/** `unjoin west` of a member with these metadata of its kube-system, which has nothing of the host. */
function leavingEmpty(host: ClusterClient, metadata: object, options: Partial<UnjoinOptions>): Promise<unknown> {
  const client = fakeClient({
    get: async () => ({ metadata }),
    find: async () => undefined,
    list: async () => ({ items: [] }),
  });
  return unjoinWest(host, client, { options });
}

test.each([
  ["pods", 1, "fake: waiting until 1 pod on Node legation-west is gone"],
  ["the controller", 0, "fake: Cluster west is being deleted; waiting until the controller lets it go"],
])("unjoin reports that it waits for %s before it does", async (_whom, pods, line) => {
  const lines: string[] = [];
  const waited = new Error("waited");
  const metadata = { name: "west", namespace: "shop", uid: "member-1", resourceVersion: "1" };
  const labels = { "legation.dev/host": HOST, "legation.dev/cluster": "west" };
  let deleted = false;
  const host = fakeClient({
    get: async () => ({ metadata: { ...metadata, uid: HOST } }),
    find: async ({ plural }) => {
      if (deleted) throw waited;
      return plural === "clusters" ? { metadata, spec: SPEC } : undefined;
    },
    patch: async () => ({}),
    delete: async () => {
      deleted = true;
    },
    list: async ({ plural }) => ({ items: plural === "pods" ? Array(pods).fill({ metadata }) : [] }),
    createSubresource: () => Promise.reject(waited),
  });
  const client = fakeClient({
    get: async () => ({ metadata }),
    list: async () => ({ items: [{ metadata: { labels } }] }),
  });
  const leaving = unjoinWest(host, client, {
    options: { drain: true, timeoutMs: 60_000 },
    report: (line) => lines.push(line),
  });
  await expect(leaving).rejects.toThrow(waited);
  expect(lines).toEqual([line]);
});

describe("an unjoin of a Cluster that is created again meanwhile", () => {
  const NAME = "legation-host-01234567";
  const SYSTEM = "legation-system";
  const CLUSTER = { name: "west" };
  const labels = { "legation.dev/host": HOST, "legation.dev/cluster": "west" };
  const ACCESS = [
    { resource: clusterRoles, ref: { name: NAME } },
    { resource: clusterRoleBindings, ref: { name: NAME } },
    { resource: serviceAccounts, ref: { name: NAME, namespace: SYSTEM } },
  ];
  const NODE = { resource: nodes, ref: { name: "legation-west" } };
  const POD = { resource: pods, ref: { name: "web-0", namespace: "shop" } };
  const SECRET = { resource: secrets, ref: { name: "member-west", namespace: SYSTEM } };
  const annotations = { "legation.dev/token-expires": "2026-12-01T00:00:00Z" };

  function joined(): { readonly host: MemoryCluster; readonly member: MemoryCluster; readonly joinAgain: () => void } {
    const host = new MemoryCluster("host", HOST);
    const member = new MemoryCluster("west", "member-1");
    const join = (): void => {
      for (const { resource, ref } of ACCESS) member.remake(resource, { metadata: { ...ref, labels } });
      host.remake(SECRET.resource, { metadata: { ...SECRET.ref, labels, annotations } });
      host.remake(clusters, Object.assign({ metadata: { ...CLUSTER } }, { spec: SPEC }));
      host.remake(NODE.resource, { metadata: { ...NODE.ref, labels } });
    };
    member.put(namespaces, { metadata: { name: "shop", labels } });
    member.put(POD.resource, { metadata: { ...POD.ref, labels } });
    join();
    return { host, member, joinAgain: join };
  }

  function leaves({ host, member }: ReturnType<typeof joined>): Promise<unknown> {
    return unjoinWest(host.client, member.client);
  }

  test("leaves nothing when it is not created again", async () => {
    const both = joined();
    await expect(leaves(both)).resolves.toEqual({ name: "west", remained: [], kept: [] });
    for (const { resource, ref } of ACCESS) expect(both.member.peek(resource, ref)).toBeUndefined();
    expect(both.member.peek(namespaces, { name: "shop" })).toBeUndefined();
    expect(both.member.peek(POD.resource, POD.ref)).toBeUndefined();
    for (const { resource, ref } of [NODE, SECRET]) expect(both.host.peek(resource, ref)).toBeUndefined();
  });

  test.each([
    ["its Cluster is deleted", "host", "clusters"],
    ["its virtual node is deleted", "host", "nodes"],
    ["the namespaces in the member go", "member", "namespaces"],
  ] as const)("ends, and leaves what that one has, when it happens as %s", async (_when, where, what) => {
    const both = joined();
    both[where].onRemoval = ({ plural }) => {
      if (plural !== what) return;
      both[where].onRemoval = () => {};
      both.joinAgain();
    };
    await expect(leaves(both)).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringMatching(/^Cluster west: was made again while it was leaving \(its uid is host-\d+ now\)/),
      remedy: expect.stringContaining("run the command again"),
    });
    for (const { resource, ref } of ACCESS) expect(both.member.peek(resource, ref)).toBeDefined();
    // Pods went before their namespaces.
    if (where === "host") expect(both.member.peek(POD.resource, POD.ref)).toBeDefined();
    for (const { resource, ref } of [NODE, SECRET]) expect(both.host.peek(resource, ref)).toBeDefined();
    expect(both.host.peek(clusters, CLUSTER)).toBeDefined();
  });

  test("ends and leaves the new Cluster's pods when that appears while the member is cleaned", async () => {
    const both = joined();
    const { raw } = both.member.client;
    let kindsAsked = 0;
    both.member.client.raw = (request) => {
      kindsAsked += 1;
      if (kindsAsked === 1) both.joinAgain();
      return raw(request);
    };
    await expect(leaves(both)).rejects.toMatchObject({ exit: "refused" });
    expect(both.member.peek(POD.resource, POD.ref)).toBeDefined();
  });

  test("leaves a Secret that replaced the one it had read", async () => {
    const both = joined();
    both.member.onRemoval = ({ plural }) => {
      if (plural === "clusterroles")
        both.host.remake(SECRET.resource, { metadata: { ...SECRET.ref, labels, annotations } });
    };
    await leaves(both);
    expect(both.host.peek(SECRET.resource, SECRET.ref)).toBeDefined();
  });
});

describe("an unjoin on a host that", () => {
  const SYSTEM = "legation-system";
  const ref = { name: "member-west", namespace: SYSTEM };
  const labels = { "legation.dev/host": HOST, "legation.dev/cluster": "west" };
  const POD = { name: "web-0", namespace: "shop" };

  function standing(): {
    readonly host: MemoryCluster;
    readonly member: MemoryCluster;
    /** Reported lines. */
    readonly lines: string[];
    leave(): Promise<unknown>;
  } {
    const lines: string[] = [];
    const host = new MemoryCluster("host", HOST);
    const member = new MemoryCluster("west", "member-1");
    const access = { name: "legation-host-01234567", namespace: SYSTEM };
    member.put(serviceAccounts, { metadata: { ...access, labels } });
    member.put(clusterRoles, { metadata: { name: access.name, labels } });
    member.put(pods, { metadata: { ...POD, labels } });
    host.put(clusters, Object.assign({ metadata: { name: "west" } }, { spec: SPEC }));
    const leave = (): Promise<unknown> =>
      unjoinWest(host.client, member.client, { report: (line) => lines.push(line) });
    return { host, member, lines, leave };
  }

  test("joined the member under another name, too, leaves its objects to that Cluster", async () => {
    const { host, member, leave: leaves } = standing();
    host.onRemoval = ({ plural }) => {
      if (plural !== "clusters") return;
      host.put(clusters, { metadata: { name: "east", annotations: { "legation.dev/member-uid": "member-1" } } });
    };
    await expect(leaves()).resolves.toEqual({
      name: "west",
      remained: ["everything: it has joined as east, too, and leaves with that"],
      kept: [],
    });
    expect(member.peek(pods, POD)).toBeDefined();
  });

  test("had no Secret for it leaves one that was created since", async () => {
    const { host, member, leave: leaves } = standing();
    member.onRemoval = ({ plural }) => {
      if (plural === "clusterroles") host.put(secrets, { metadata: { ...ref, labels } });
    };
    await leaves();
    expect(host.peek(secrets, ref)).toBeDefined();
    expect(member.peek(pods, POD)).toBeUndefined();
  });

  test("has its virtual node removes that, and the lease", async () => {
    const { host, leave: leaves } = standing();
    const lease = { name: "legation-west", namespace: "kube-node-lease" };
    host.put(nodes, { metadata: { name: "legation-west", labels } });
    host.put(leases, { metadata: lease });
    await leaves();
    expect(host.peek(nodes, { name: "legation-west" })).toBeUndefined();
    expect(host.peek(leases, lease)).toBeUndefined();
  });

  test("has its virtual node without the label removes that, too", async () => {
    const { host, lines, leave: leaves } = standing();
    const node = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
    host.put(nodes, node);
    await leaves();
    expect(host.peek(nodes, node.metadata)).toBeUndefined();
    expect(lines).toContain("host: Cluster west removed");
  });

  test("has a node of its own by the virtual node's name keeps that, and its lease", async () => {
    const { host, lines, leave: leaves } = standing();
    const node = { name: "legation-west" };
    const lease = { ...node, namespace: "kube-node-lease" };
    host.put(nodes, { metadata: node });
    host.put(leases, { metadata: lease });
    const left = (): unknown[] => [host.peek(nodes, node), host.peek(leases, lease)].filter((each) => each);
    await leaves();
    expect(left()).toHaveLength(2);
    // The node runs no pod of Legation's, so unjoin does not cordon it either.
    expect(left()[0]).not.toHaveProperty("spec");
    expect(lines).toContain("host: Cluster west removed");
  });

  const annotations = { "legation.dev/token-expires": "2026-12-01T00:00:00Z" };
  const ofWest = { "legation.dev/cluster": "west" };

  test("has the Secret that `join` made removes that", async () => {
    const { host, lines, leave: leaves } = standing();
    host.put(secrets, { metadata: { ...ref, labels: ofWest, annotations } });
    await leaves();
    expect(host.peek(secrets, ref)).toBeUndefined();
    expect(lines).toContain("host: Secret member-west removed");
  });

  const noLabel = "it has no label legation.dev/cluster=west";
  const noAnnotation = "it has no annotation legation.dev/token-expires";
  test.each([
    ["bare", {}, `${noLabel} and no annotation legation.dev/token-expires`],
    ["labelled", { labels: ofWest }, noAnnotation],
    ["whose token the controller of 0.1.0 renewed", { annotations }, noLabel],
    ["of another member", { labels: { "legation.dev/cluster": "east" }, annotations }, noLabel],
  ])("has a Secret of its operator's, %s, keeps that, and says why", async (_which, metadata, why) => {
    const { host, lines, leave: leaves } = standing();
    host.put(secrets, { metadata: { ...ref, ...metadata } });
    await expect(leaves()).resolves.toEqual({ name: "west", remained: [], kept: [`Secret member-west: ${why}`] });
    expect(host.peek(secrets, ref)).toBeDefined();
    expect(lines.filter((line) => line.includes("Secret"))).toEqual([
      `host: Secret member-west stays: ${why}, so it is not as \`legation join west\` makes it; delete it when nothing needs it`,
    ]);
  });

  test("has the member's credentials in a Secret of another name keeps that, and says why", async () => {
    const { host, lines, leave: leaves } = standing();
    const own = { name: "from-vault", namespace: SYSTEM };
    host.put(secrets, { metadata: { ...own, labels: ofWest, annotations } });
    const spec = { credentialsSecret: { name: own.name } };
    host.put(clusters, Object.assign({ metadata: { name: "west" } }, { spec }));
    const why = "its name is not member-west";
    await expect(leaves()).resolves.toMatchObject({ kept: [`Secret from-vault: ${why}`] });
    expect(host.peek(secrets, own)).toBeDefined();
    expect(lines.filter((line) => line.includes("Secret"))).toEqual([
      `host: Secret from-vault stays: ${why}, so it is not as \`legation join west\` makes it; delete it when nothing needs it`,
    ]);
  });

  test("has a new Cluster at the end leaves the Secret, which may be that one's by now", async () => {
    const { host, member, leave: leaves } = standing();
    host.put(secrets, { metadata: { ...ref, labels, annotations } });
    member.onRemoval = ({ plural }) => {
      if (plural === "clusterroles") host.put(clusters, Object.assign({ metadata: { name: "west" } }, { spec: SPEC }));
    };
    await expect(leaves()).rejects.toMatchObject({ exit: "refused" });
    expect(host.peek(secrets, ref)).toBeDefined();
  });
});

describe("an unjoin without a Cluster, by the Secret that is left", () => {
  const ref = { name: "member-west", namespace: "legation-system" };
  const labels = { "legation.dev/cluster": "west" };
  const annotations = { "legation.dev/token-expires": "2026-12-01T00:00:00Z" };

  /** An `unjoin west` with a Secret that has these metadata; what the member answers when it is asked who has joined it. */
  function leaveAgain(metadata: object, answer: KubeErrorCode | undefined, { force = false } = {}) {
    const host = new MemoryCluster("host", HOST);
    const member = new MemoryCluster("west", "member-1");
    const data = { kubeconfig: btoa("a kubeconfig") };
    host.put(secrets, Object.assign({ metadata: { ...ref, ...metadata } }, { data }));
    const { list } = member.client;
    member.client.list = (resource, options) => {
      if (answer === undefined || resource.plural !== "serviceaccounts") return list(resource, options);
      return Promise.reject(kubeError(answer, answer, { verb: "list", resource: resource.plural }));
    };
    member.put(pods, { metadata: { name: "web-0", namespace: "shop", labels: OF_HOST } });
    const leaving = unjoinWest(host.client, undefined, {
      options: { force },
      connectText: async () => connection(member.client),
    });
    return { leaving, host, member };
  }
  const OF_HOST = { "legation.dev/host": HOST };

  test("names what remains and what stays, and succeeds with --force", async () => {
    await expect(leaveAgain({}, "Unauthorized", { force: true }).leaving).resolves.toMatchObject({
      remained: [expect.stringMatching(/^everything: /)],
      kept: [expect.stringContaining("Secret member-west")],
    });
  });

  test("cleans the member by an operator's Secret that still works", async () => {
    const { leaving, member } = leaveAgain({}, undefined);
    await expect(leaving).resolves.toMatchObject({
      remained: [],
      kept: [expect.stringContaining("Secret member-west")],
    });
    expect(member.peek(pods, { name: "web-0", namespace: "shop" })).toBeUndefined();
  });

  test("fails and may be repeated where the member does not answer or refuses the credentials", async () => {
    await expect(leaveAgain({}, "NotSent").leaving).rejects.toMatchObject({
      exit: "failure",
      remedy: expect.stringContaining("--member-kubeconfig FILE"),
    });
    for (const metadata of [{}, { labels, annotations }]) {
      await expect(leaveAgain(metadata, "Unauthorized").leaving).rejects.toMatchObject({
        exit: "failure",
        remedy: expect.stringContaining("--member-kubeconfig FILE"),
      });
    }
  });
});

test.each([
  ["refuses", {}, "1 pod runs there: shop/web-0", false],
  ["drains, as it is asked to,", { drain: true }, "drained", true],
  ["ends, as it is asked to,", { force: true }, "drained", true],
])("unjoin %s what runs on the virtual node", async (_what, options, message, cordoned) => {
  const labels = { "legation.dev/cluster": "west" };
  const metadata = { name: "web-0", namespace: "shop", uid: "member-1", resourceVersion: "1", labels };
  let unschedulable = false;
  const drained = (): never => {
    throw new Error("drained");
  };
  const host = fakeClient({
    get: async () => ({ metadata: { ...metadata, uid: HOST } }),
    find: async ({ plural }) => (plural === "nodes" ? { metadata, spec: { unschedulable } } : undefined),
    patch: async (_node, _ref, { body }) => {
      ({ unschedulable } = (body as { spec: { unschedulable: boolean } }).spec);
      return {};
    },
    list: async ({ plural }) => ({ items: plural === "pods" ? [{ metadata, status: { phase: "Running" } }] : [] }),
    createSubresource: async () => drained(),
    delete: async () => drained(),
  });
  await expect(leavingEmpty(host, metadata, options)).rejects.toThrow(message);
  expect(unschedulable).toBe(cordoned);
});

describe("an unjoin of a Cluster that the controller keeps", () => {
  const kept = "pods without a node whose delegates are there, or may be: 1";

  /** An `unjoin west` of a member that does not answer; `lines` has what it tells. */
  function keep(force: boolean): {
    readonly leaving: Promise<unknown>;
    readonly lines: string[];
    readonly patches: unknown[];
  } {
    const lines: string[] = [];
    const patches: unknown[] = [];
    const metadata = { name: "west", uid: "c", resourceVersion: "1", finalizers: [CLUSTER_FINALIZER] };
    const conditions = [{ type: "Released", status: "False", reason: "PodsRemain", message: kept }];
    const host = fakeClient({
      get: async () => ({ metadata: { name: "kube-system", uid: HOST, resourceVersion: "1" } }),
      find: async ({ plural }) =>
        plural === "clusters" && patches.length === 0 ? { metadata, spec: SPEC, status: { conditions } } : undefined,
      delete: async () => {},
      list: async () => ({ items: [] }),
      patch: async ({ plural }, _ref, patch) => {
        if (plural === "clusters") patches.push(patch.body);
        return { metadata: {} };
      },
    });
    const leaving = unjoinWest(host, undefined, {
      options: { force, timeoutMs: 20 },
      report: (line) => lines.push(line),
    });
    return { leaving, lines, patches };
  }

  test("says why while it waits and when it gives up", async () => {
    const { leaving, lines, patches } = keep(false);
    await expect(leaving).rejects.toMatchObject({ exit: "notReady", message: expect.stringContaining(kept) });
    expect(lines.filter((line) => line.includes(kept))).toHaveLength(1);
    expect(patches).toEqual([]);
  });

  test("removes the controller's finalizer with --force", async () => {
    const { leaving, lines, patches } = keep(true);
    await expect(leaving).resolves.toMatchObject({ name: "west" });
    expect(JSON.stringify(patches)).toContain(CLUSTER_FINALIZER);
    expect(lines).toContain(`fake: the controller keeps Cluster west: ${kept}`);
  });
});
