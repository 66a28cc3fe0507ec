import { beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { KubeNode, KubeObject, Secret } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { joinByKubeconfig } from "../../../../src/cli/join/join.ts";
import type { JoinOptions } from "../../../../src/cli/join/validate.ts";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "../../../../src/cli/member/access.ts";
import type { Connection } from "../../../../src/cli/shared/session.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { credentialsFromKubeconfigText } from "../../../../src/kube/kubeconfig.ts";
import { namespaces, nodes, secrets, serviceAccounts } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const HOST = "01234567-host";
const ACCOUNT = { namespace: "legation-system", name: "legation-host-01234567" };
const ACCESS_ACCOUNT = { namespace: "legation-system", name: "legation-access-01234567" };
const ACCESS_SECRET = { namespace: "legation-access", name: "member-west" };
const SECRET = { namespace: "legation-system", name: "member-west" };
const READY = { conditions: [{ type: "Ready", status: "True" }] };
const SERVER = "https://192.0.2.1";
const role = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "legation-host" },
  rules: [],
};

const authorityNamed = (name: string): string =>
  `-----BEGIN CERTIFICATE-----\n${btoa(name)}\n-----END CERTIFICATE-----`;

let host: MemoryCluster;
let member: MemoryCluster;
/** The authority that vouches for the member by now. */
let authority: string;
/** An address of the member that only the controller reaches. */
const INTERNAL = "https://10.0.0.1:6443";
/** Parts of the member's kubeconfig that the operator gives. */
let given: Partial<Connection>;
/** The verb that the member's authorizer wants for impersonation. */
let impersonationVerb: string;
let impersonations: object[];
beforeEach(() => {
  host = new MemoryCluster("host", HOST);
  member = new MemoryCluster("west", "uid-of-west");
  report(READY);
  authority = authorityNamed("first");
  given = {};
  impersonationVerb = "impersonate:user-info";
  impersonations = [];
});

/** Sets the status that the controller writes into each new Cluster. */
function report(status: object | undefined): void {
  host.onWrite = ({ resource, object, before }) => {
    const isNew = resource.plural === clusters.plural && before === undefined;
    if (isNew && status !== undefined) host.put(resource, { ...object, status });
  };
}

/** The member through a kubeconfig, whose token and authority count. */
async function connectText(text: string): Promise<Connection> {
  const { server, insecureSkipTlsVerify, tlsServerName, proxyUrl, identity } = credentialsFromKubeconfigText(text, {
    allowExec: false,
    env: {},
  });
  const { ca, authorization, headers } = await identity();
  const fail = (code: KubeErrorCode, message: string): never => {
    throw kubeError(code, message, { verb: "get" });
  };
  const raw = async (): Promise<object> => {
    if (server === INTERNAL) fail("NotSent", "connect ETIMEDOUT");
    if (ca !== authority) fail("NotSent", "unable to verify the first certificate");
    if (headers !== undefined) return impersonate(authorization, headers);
    const account = member.peek(serviceAccounts, ACCOUNT);
    if (authorization !== `Bearer token-of-${account?.metadata.uid}`) fail("Unauthorized", "Unauthorized");
    return {};
  };
  /** Answers a request of an impersonated user, which the rights of the account permit or not. */
  const impersonate = (as: string | undefined, impersonated: object): object => {
    const account = member.peek(serviceAccounts, ACCESS_ACCOUNT);
    const role = member.peek<KubeObject & { readonly rules?: object[] }>(clusterRoles, { name: ACCESS_ACCOUNT.name });
    if (as !== `Bearer token-of-${account?.metadata.uid}`) fail("Unauthorized", "Unauthorized");
    if (!JSON.stringify(role?.rules).includes(`"${impersonationVerb}"`)) fail("Forbidden", "may not impersonate");
    impersonations.push(impersonated);
    return {};
  };
  return {
    client: fakeClient({ raw }),
    server,
    skipsTlsVerify: insecureSkipTlsVerify,
    namespace: "default",
    ...(ca === undefined ? {} : { certificateAuthority: ca }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
  };
}

function joinAs(
  name: string,
  options: Partial<JoinOptions> = {},
  reported: Pick<string[], "push"> = [],
): Promise<unknown> {
  return joinByKubeconfig(
    { name, labels: {}, timeoutMs: 20, hostName: "host", ...options },
    {
      host: host.client,
      member: {
        client: member.client,
        server: SERVER,
        skipsTlsVerify: false,
        certificateAuthority: authority,
        namespace: "default",
        ...given,
      },
      connectText,
      role,
      signal: new AbortController().signal,
      report: (line) => reported.push(line),
    },
  );
}

/** The cluster entry and the token of the stored kubeconfig. */
function stored(): { cluster: Record<string, unknown>; token: string } | undefined {
  const kubeconfig = host.peek<Secret>(secrets, SECRET)?.data?.kubeconfig;
  if (kubeconfig === undefined) return undefined;
  const { clusters: entries, users } = parse(atob(kubeconfig));
  return { cluster: entries[0].cluster, token: users[0].user.token };
}

const uidOfAccount = (): string | undefined => member.peek(serviceAccounts, ACCOUNT)?.metadata.uid;

function forgetIdentity(): void {
  const west = host.peek(clusters, { name: "west" });
  if (west !== undefined) host.put(clusters, { ...west, metadata: { ...west.metadata, annotations: {} } });
}

describe("a first join", () => {
  test("records the member's identity in the Cluster", async () => {
    await joinAs("west");
    expect(host.peek(clusters, { name: "west" })?.metadata.annotations).toEqual({
      "legation.dev/member-uid": "uid-of-west",
    });
  });

  test("stores the kubeconfig's proxy only with the kubeconfig's own address", async () => {
    given = { proxyUrl: "http://localhost:3128" };
    await joinAs("west");
    expect(stored()?.cluster).toMatchObject({ server: SERVER, "proxy-url": "http://localhost:3128" });
    await joinAs("west", { memberServer: INTERNAL });
    expect(stored()?.cluster).toMatchObject({ server: INTERNAL });
    expect(stored()?.cluster).not.toHaveProperty("proxy-url");
  });
});

describe("a join", () => {
  test("is refused for the host itself", async () => {
    member = host;
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("the member is the host itself"),
    });
    expect(host.peek(serviceAccounts, ACCOUNT)).toBeUndefined();
  });

  test("is refused where the host has a node of its own by the virtual node's name", async () => {
    host.put(nodes, { metadata: { name: "legation-west" } });
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("exists on the host and is not Legation's"),
    });
    expect(uidOfAccount()).toBeUndefined();
    // The node that an earlier Cluster of the name has left is.
    host.put(nodes, { metadata: { name: "legation-west", labels: { "legation.dev/cluster": "west" } } });
    await expect(joinAs("west")).resolves.toBeDefined();
  });

  test("accepts the node that an earlier Cluster of the name left, also without its label", async () => {
    const left: KubeNode = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
    host.put(nodes, left);
    await expect(joinAs("west")).resolves.toBeDefined();
  });

  test("writes the labels and the home API into the Cluster", async () => {
    await joinAs("west", { labels: { region: "eu" }, homeApiServer: "https://192.0.2.9" });
    const { metadata, ...rest } = host.peek(clusters, { name: "west" }) ?? {};
    expect(metadata?.labels).toEqual({ region: "eu" });
    expect(rest).toMatchObject({ spec: { homeAPI: { server: "https://192.0.2.9" } } });
  });

  test("without an agent says that it takes the agent's place", async () => {
    await joinAs("west");
    const west = host.peek<Cluster>(clusters, { name: "west" });
    const behindAgent = west === undefined ? [] : [{ ...west, spec: { ...west.spec, agent: {} } }];
    for (const cluster of behindAgent) host.put(clusters, cluster);
    const reported: string[] = [];
    await joinAs("west", {}, reported);
    const told = "host: Cluster west is reached directly from now on, and not through its agent";
    expect(reported).toContain(told);
    reported.length = 0;
    await joinAs("west", {}, reported);
    expect(reported).not.toContain(told);
  });

  test("leaves the host as it was when its credentials do not work, and says what remains in the member", async () => {
    given = { certificateAuthority: authorityNamed("another") };
    const reported: string[] = [];
    await expect(joinAs("west", {}, reported)).rejects.toMatchObject({ code: "NotSent" });
    expect(host.peek(secrets, SECRET)).toBeUndefined();
    expect(host.peek(clusters, { name: "west" })).toBeUndefined();
    expect(reported.at(-1)).toBe(
      "west: ServiceAccount legation-system/legation-host-01234567 and its rights stay as far as they were made: " +
        "`legation join` again completes the join, `legation unjoin west --member-kubeconfig FILE` removes them",
    );
    given = {};
    await expect(joinAs("west")).resolves.toBeDefined();
  });

  test("writes nothing when the host's API server would refuse the Cluster", async () => {
    const { create } = host.client;
    host.client.create = async (resource, object, options) => {
      if (resource.plural !== clusters.plural) return create(resource, object, options);
      throw kubeError("Forbidden", "no", { cluster: "host", resource: resource.plural });
    };
    await expect(joinAs("west")).rejects.toMatchObject({ code: "Forbidden" });
    expect(uidOfAccount()).toBeUndefined();
    expect(host.peek(secrets, SECRET)).toBeUndefined();
  });

  test("is refused while Legation's namespace in the member is being deleted", async () => {
    const metadata = { name: "legation-system", deletionTimestamp: "2026-01-01T00:00:00Z" };
    member.put(namespaces, { metadata });
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: "west: Namespace legation-system: is being deleted",
    });
    expect(uidOfAccount()).toBeUndefined();
  });

  test("waits for Ready, and for no other condition", async () => {
    const conditions = [
      { type: "Reachable", status: "True" },
      { type: "Ready", status: "False", message: "no nodes" },
    ];
    report({ conditions });
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining("was not True within 0.02 s: no nodes"),
    });
  });

  test("stays joined when the Cluster is not Ready in time, and says what to do", async () => {
    report(undefined);
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining("no controller reported on it within 0.02 s"),
      remedy: expect.stringContaining("`legation unjoin west` takes it out"),
    });
    expect(host.peek(clusters, { name: "west" })).toBeDefined();
    expect(stored()?.token).toBe(`token-of-${uidOfAccount()}`);
  });
});

describe("a first join that finds a Secret of its name", () => {
  const labels = { "legation.dev/cluster": "west" };
  const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };
  const put = (metadata: object): void => {
    const data = { kubeconfig: btoa("theirs"), other: btoa("other") };
    host.put(secrets, Object.assign({ metadata: { ...SECRET, ...metadata } }, { data }));
  };

  test.each([
    ["a bare one", {}, "it has no label legation.dev/cluster=west and no annotation legation.dev/token-expires"],
    ["a labelled one", { labels }, "it has no annotation legation.dev/token-expires"],
    ["one whose token the controller of 0.1.0 renewed", { annotations }, "it has no label legation.dev/cluster=west"],
  ])("is refused before any write for %s of the operator's", async (_which, metadata, why) => {
    put(metadata);
    const before = host.peek<Secret>(secrets, SECRET);
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: `Secret legation-system/member-west: is there already, and not as \`legation join west\` makes it: ${why}`,
      remedy: "delete it when nothing needs it, or choose another name",
    });
    expect(host.peek<Secret>(secrets, SECRET)).toEqual(before);
    expect(host.peek(clusters, { name: "west" })).toBeUndefined();
    expect(uidOfAccount()).toBeUndefined();
  });

  test("is refused when the Secret is created meanwhile", async () => {
    const push = (line: string): number => {
      if (line.includes("ServiceAccount")) put({});
      return 1;
    };
    await expect(joinAs("west", {}, { push })).rejects.toMatchObject({ exit: "refused" });
    expect(stored).toThrow();
    expect(host.peek<Secret>(secrets, SECRET)?.metadata.labels).toBeUndefined();
    expect(host.peek(clusters, { name: "west" })).toBeUndefined();
  });

  test("replaces one that an interrupted join left", async () => {
    put({ labels, annotations });
    await joinAs("west");
    expect(stored()?.token).toBe(`token-of-${uidOfAccount()}`);
  });
});

describe("a member that joins again", () => {
  beforeEach(async () => {
    await joinAs("west");
  });

  const loseAll = (): void => {
    member.drop(serviceAccounts, ACCOUNT);
    for (const resource of [clusterRoles, clusterRoleBindings]) member.drop(resource, { name: ACCOUNT.name });
  };

  test("gets a new token, and keeps the address, also where this machine cannot reach that", async () => {
    await joinAs("west", { memberServer: INTERNAL });
    member.drop(serviceAccounts, ACCOUNT);
    const reported: string[] = [];
    await joinAs("west", {}, reported);
    expect(reported).toContain(`west: ${INTERNAL} cannot be reached from here; the controller must reach it`);
    expect(stored()).toMatchObject({ cluster: { server: INTERNAL }, token: `token-of-${uidOfAccount()}` });
    await joinAs("west", { memberServer: SERVER });
    expect(stored()?.cluster).toMatchObject({ server: SERVER });
  });

  test("gets the given labels and home API, and keeps its others", async () => {
    await joinAs("west", { labels: { region: "eu" } });
    await joinAs("west", { labels: { tier: "gold" }, homeApiServer: "https://192.0.2.9" });
    const west = host.peek(clusters, { name: "west" });
    expect(west?.metadata.labels).toEqual({ region: "eu", tier: "gold" });
    const spec = { credentialsSecret: { name: "member-west" }, homeAPI: { server: "https://192.0.2.9" } };
    expect(west).toMatchObject({ spec });
  });

  test("says how to complete it when it fails, and that alone", async () => {
    const before = stored();
    given = { certificateAuthority: authorityNamed("another") };
    const reported: string[] = [];
    await expect(joinAs("west", {}, reported)).rejects.toMatchObject({ code: "NotSent" });
    expect(stored()).toEqual(before);
    expect(reported.at(-1)).toMatch(/`legation join` again completes the join$/);
  });

  test("is not Ready at a new address before the controller uses it", async () => {
    const west = host.peek(clusters, { name: "west" });
    if (west !== undefined) host.put(clusters, { ...west, status: { ...READY, server: SERVER } });
    await expect(joinAs("west", { memberServer: INTERNAL })).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining(`the controller has not gone over to ${INTERNAL} yet`),
    });
  });

  test("is recognized by its identity without any access", async () => {
    loseAll();
    await joinAs("west");
    expect(stored()?.token).toBe(`token-of-${uidOfAccount()}`);
  });

  test("is refused, with what to write, without access and identity", async () => {
    forgetIdentity();
    loseAll();
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      remedy: expect.stringContaining(
        "`kubectl annotate clusters.legation.dev west legation.dev/member-uid=uid-of-west` and join again",
      ),
    });
  });

  test("is refused when it is another cluster, with both identities", async () => {
    member = new MemoryCluster("west", "uid-of-east");
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringMatching(/is not the cluster of --member-kubeconfig .*uid-of-west.*uid-of-east/),
    });
  });

  test("is refused when it has joined as another Cluster, with its name", async () => {
    const west = member;
    member = new MemoryCluster("east", "uid-of-east");
    await joinAs("east");
    forgetIdentity();
    await expect(joinAs("west")).rejects.toThrow("is not the cluster of --member-kubeconfig: that has joined as east");
    member = west;
    await expect(joinAs("west")).resolves.toBeDefined();
  });

  test("is refused under another name, also without any access", async () => {
    loseAll();
    await expect(joinAs("other")).rejects.toThrow("this member has joined already, as west");
  });

  test.each([
    ["records", () => {}],
    ["does not record", forgetIdentity],
  ])("is refused while another Cluster has the same member's uid, which its own Cluster %s", async (_, prepare) => {
    prepare();
    const metadata = { name: "other", annotations: { "legation.dev/member-uid": "uid-of-west" } };
    host.put(clusters, { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", metadata });
    await expect(joinAs("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("Cluster west: this member has joined as other, too"),
      remedy: "run `legation unjoin` for one of the two, then join again",
    });
    expect(host.peek(clusters, { name: "west" })).toBeDefined();
    expect(uidOfAccount()).toBeDefined();
  });

  test("gets the certificate authority of the given kubeconfig", async () => {
    authority = authorityNamed("second");
    await joinAs("west");
    const data = Buffer.from(authority).toString("base64");
    expect(stored()?.cluster).toMatchObject({ "certificate-authority-data": data });
  });

  test("gets credentials in place of ones that cannot be used", async () => {
    const found = host.peek(secrets, SECRET);
    if (found !== undefined) host.put(secrets, Object.assign(found, { data: { kubeconfig: btoa("no kubeconfig") } }));
    await joinAs("west");
    expect(stored()).toMatchObject({ cluster: { server: SERVER }, token: `token-of-${uidOfAccount()}` });
  });
});

describe("a member that joins again with an operator's Secret", () => {
  const spec = { credentialsSecret: { name: "made-by-gitops", key: "config" } };
  const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };

  beforeEach(async () => {
    await joinAs("west");
  });

  test.each([
    ["has another name", { name: "made-by-gitops" }, { spec }, "its name is not member-west"],
    ["has no marks", {}, {}, "it has no label legation.dev/cluster=west"],
    ["has the annotation of 0.1.0", { annotations }, {}, "it has no label legation.dev/cluster=west"],
    [
      "has lost its annotation",
      { labels: { "legation.dev/cluster": "west" } },
      {},
      "no annotation legation.dev/token-ex",
    ],
  ])(
    "gets its rights and keeps the Secret that %s, and refuses --member-server",
    async (_which, marks, change, why) => {
      const ref = { ...SECRET, ...marks };
      host.drop(secrets, SECRET);
      host.put(secrets, Object.assign({ metadata: ref }, { data: { kubeconfig: btoa("own"), config: btoa("own") } }));
      const west = host.peek(clusters, { name: "west" });
      if (west !== undefined) host.put(clusters, { ...west, ...change });
      member.drop(clusterRoles, { name: ACCOUNT.name });
      const before = host.peek<Secret>(secrets, ref);
      const reported: string[] = [];
      await joinAs("west", {}, reported);
      expect(reported.join()).toMatch(new RegExp(`Secret ${ref.name} stays: .*${why}.*, so it is your own`));
      expect(host.peek<Secret>(secrets, ref)).toEqual(before);
      expect(member.peek(clusterRoles, { name: ACCOUNT.name })).toBeDefined();
      await expect(joinAs("west", { memberServer: INTERNAL })).rejects.toThrow(/credentials of your own, in .*\(it/);
      expect(host.peek<Secret>(secrets, ref)).toEqual(before);
    },
  );
});

describe("a join with access for users", () => {
  const rules = (): string =>
    JSON.stringify(
      member.peek<KubeObject & { readonly rules?: object[] }>(clusterRoles, { name: ACCESS_ACCOUNT.name })?.rules,
    );
  const access = (): unknown => host.peek<Cluster>(clusters, { name: "west" })?.spec.access;
  beforeEach(() => host.put(namespaces, { metadata: { name: "legation-access" } }));

  test("is refused on a host where nothing serves it, before anything is written", async () => {
    host.drop(namespaces, { name: "legation-access" });
    await expect(joinAs("west", { access: {} })).rejects.toMatchObject({
      remedy: expect.stringContaining("legation install --access"),
    });
    expect(member.peek(serviceAccounts, ACCOUNT)).toBeUndefined();
  });

  test("stores the token of an account that may impersonate, and tries it as a user of the prefix", async () => {
    await joinAs("west", { access: {} });
    const kubeconfig = atob(host.peek<Secret>(secrets, ACCESS_SECRET)?.data?.kubeconfig ?? "");
    expect(kubeconfig).toContain(`token-of-${member.peek(serviceAccounts, ACCESS_ACCOUNT)?.metadata.uid}`);
    expect(kubeconfig).not.toContain("as:");
    expect(access()).toEqual({ prefix: "legation:" });
    expect(impersonations).toMatchObject([{ "impersonate-user": "legation:legation-join" }]);
    expect(rules()).toContain('"impersonate-on:user-info:deletecollection"');
    expect(rules()).not.toContain('"impersonate"');
  });

  test("permits impersonation of any user where the member is older than 1.36, or has switched constraints off", async () => {
    impersonationVerb = "impersonate";
    member.kubernetesVersion = { ...member.kubernetesVersion, minor: "35+" };
    await joinAs("west", { access: {} });
    expect(rules()).not.toContain("user-info");
    member.kubernetesVersion = { ...member.kubernetesVersion, minor: "36" };
    const reported: string[] = [];
    await joinAs("west", {}, reported);
    expect(rules()).not.toContain("user-info");
    expect(reported.join()).toContain("constrained impersonation is switched off");
  }, 20_000);

  test("keeps access and its prefix when it is repeated without, and changes the prefix alone", async () => {
    await joinAs("west", { access: { prefix: "eu:" } });
    await joinAs("west");
    expect(access()).toEqual({ prefix: "eu:" });
    await joinAs("west", { access: {} });
    expect(access()).toEqual({ prefix: "eu:" });
    await joinAs("west", { access: { prefix: "" } });
    expect(access()).toEqual({ prefix: "" });
  });

  test("takes access away on both sides", async () => {
    await joinAs("west", { access: {} });
    await joinAs("west", { access: "remove" });
    expect(access()).toBeUndefined();
    expect(host.peek(secrets, ACCESS_SECRET)).toBeUndefined();
    for (const resource of [serviceAccounts, roles, roleBindings]) {
      expect(member.peek(resource, ACCESS_ACCOUNT)).toBeUndefined();
    }
    for (const resource of [clusterRoles, clusterRoleBindings]) {
      expect(member.peek(resource, { name: ACCESS_ACCOUNT.name })).toBeUndefined();
    }
  });
});
