import { beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { KubeObject, Secret } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "../../../../src/cli/member/access.ts";
import { namespaces, secrets, serviceAccounts } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { ACCESS_ACCOUNT, ACCOUNT, authorityNamed, INTERNAL, Joining, READY, SECRET, SERVER } from "./joining.ts";

const ACCESS_SECRET = { namespace: "legation-access", name: "member-west" };
let joins: Joining;
beforeEach(() => {
  joins = new Joining();
});

describe("a first join", () => {
  test("records the member's identity in the Cluster", async () => {
    await joins.as("west");
    expect(joins.host.peek(clusters, { name: "west" })?.metadata.annotations).toEqual({
      "legation.dev/member-uid": "uid-of-west",
    });
  });

  test("stores the kubeconfig's proxy only with the kubeconfig's own address", async () => {
    joins.given = { proxyUrl: "http://localhost:3128" };
    await joins.as("west");
    expect(joins.stored()?.cluster).toMatchObject({ server: SERVER, "proxy-url": "http://localhost:3128" });
    await joins.as("west", { memberServer: INTERNAL });
    expect(joins.stored()?.cluster).toMatchObject({ server: INTERNAL });
    expect(joins.stored()?.cluster).not.toHaveProperty("proxy-url");
  });
});

describe("a join", () => {
  test("writes the labels and the home API into the Cluster", async () => {
    await joins.as("west", { labels: { region: "eu" }, homeApiServer: "https://192.0.2.9" });
    const { metadata, ...rest } = joins.host.peek(clusters, { name: "west" }) ?? {};
    expect(metadata?.labels).toEqual({ region: "eu" });
    expect(rest).toMatchObject({ spec: { homeAPI: { server: "https://192.0.2.9" } } });
  });

  test("without an agent says that it takes the agent's place", async () => {
    await joins.as("west");
    const west = joins.host.peek<Cluster>(clusters, { name: "west" });
    const behindAgent = west === undefined ? [] : [{ ...west, spec: { ...west.spec, agent: {} } }];
    for (const cluster of behindAgent) joins.host.put(clusters, cluster);
    const reported: string[] = [];
    await joins.as("west", {}, reported);
    const told = "host: Cluster west is reached directly from now on, and not through its agent";
    expect(reported).toContain(told);
    reported.length = 0;
    await joins.as("west", {}, reported);
    expect(reported).not.toContain(told);
  });

  test("leaves the host as it was when its credentials do not work, and says what remains in the member", async () => {
    joins.given = { certificateAuthority: authorityNamed("another") };
    const reported: string[] = [];
    await expect(joins.as("west", {}, reported)).rejects.toMatchObject({ code: "NotSent" });
    expect(joins.host.peek(secrets, SECRET)).toBeUndefined();
    expect(joins.host.peek(clusters, { name: "west" })).toBeUndefined();
    expect(reported.at(-1)).toBe(
      "west: ServiceAccount legation-system/legation-host-01234567 and its rights stay as far as they were made: " +
        "`legation join` again completes the join, `legation unjoin west --member-kubeconfig FILE` removes them",
    );
    joins.given = {};
    await expect(joins.as("west")).resolves.toBeDefined();
  });

  test("writes nothing when the host's API server would refuse the Cluster", async () => {
    const { create } = joins.host.client;
    joins.host.client.create = async (resource, object, options) => {
      if (resource.plural !== clusters.plural) return create(resource, object, options);
      throw kubeError("Forbidden", "no", { cluster: "host", resource: resource.plural });
    };
    await expect(joins.as("west")).rejects.toMatchObject({ code: "Forbidden" });
    expect(joins.uidOfAccount()).toBeUndefined();
    expect(joins.host.peek(secrets, SECRET)).toBeUndefined();
  });

  test("is refused while Legation's namespace in the member is being deleted", async () => {
    const metadata = { name: "legation-system", deletionTimestamp: "2026-01-01T00:00:00Z" };
    joins.member.put(namespaces, { metadata });
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: "west: Namespace legation-system: is being deleted",
    });
    expect(joins.uidOfAccount()).toBeUndefined();
  });

  test("waits for Ready, and for no other condition", async () => {
    const conditions = [
      { type: "Reachable", status: "True" },
      { type: "Ready", status: "False", message: "no nodes" },
    ];
    joins.report({ conditions });
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining("was not True within 0.02 s: no nodes"),
    });
  });

  test("stays joined when the Cluster is not Ready in time, and says what to do", async () => {
    joins.report(undefined);
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining("no controller reported on it within 0.02 s"),
      remedy: expect.stringContaining("`legation unjoin west` takes it out"),
    });
    expect(joins.host.peek(clusters, { name: "west" })).toBeDefined();
    expect(joins.stored()?.token).toBe(`token-of-${joins.uidOfAccount()}`);
  });
});

describe("a first join that finds a Secret of its name", () => {
  const labels = { "legation.dev/cluster": "west" };
  const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };
  const put = (metadata: object): void => {
    const data = { kubeconfig: btoa("theirs"), other: btoa("other") };
    joins.host.put(secrets, Object.assign({ metadata: { ...SECRET, ...metadata } }, { data }));
  };

  test("replaces one that an interrupted join left", async () => {
    put({ labels, annotations });
    await joins.as("west");
    expect(joins.stored()?.token).toBe(`token-of-${joins.uidOfAccount()}`);
  });
});

describe("a member that joins again", () => {
  beforeEach(async () => {
    await joins.as("west");
  });

  test("gets a new token, and keeps the address, also where this machine cannot reach that", async () => {
    await joins.as("west", { memberServer: INTERNAL });
    joins.member.drop(serviceAccounts, ACCOUNT);
    const reported: string[] = [];
    await joins.as("west", {}, reported);
    expect(reported).toContain(`west: ${INTERNAL} cannot be reached from here; the controller must reach it`);
    expect(joins.stored()).toMatchObject({ cluster: { server: INTERNAL }, token: `token-of-${joins.uidOfAccount()}` });
    await joins.as("west", { memberServer: SERVER });
    expect(joins.stored()?.cluster).toMatchObject({ server: SERVER });
  });

  test("gets the given labels and home API, and keeps its others", async () => {
    await joins.as("west", { labels: { region: "eu" } });
    await joins.as("west", { labels: { tier: "gold" }, homeApiServer: "https://192.0.2.9" });
    const west = joins.host.peek(clusters, { name: "west" });
    expect(west?.metadata.labels).toEqual({ region: "eu", tier: "gold" });
    const spec = { credentialsSecret: { name: "member-west" }, homeAPI: { server: "https://192.0.2.9" } };
    expect(west).toMatchObject({ spec });
  });

  test("says how to complete it when it fails, and that alone", async () => {
    const before = joins.stored();
    joins.given = { certificateAuthority: authorityNamed("another") };
    const reported: string[] = [];
    await expect(joins.as("west", {}, reported)).rejects.toMatchObject({ code: "NotSent" });
    expect(joins.stored()).toEqual(before);
    expect(reported.at(-1)).toMatch(/`legation join` again completes the join$/);
  });

  test("is not Ready at a new address before the controller uses it", async () => {
    const west = joins.host.peek(clusters, { name: "west" });
    if (west !== undefined) joins.host.put(clusters, { ...west, status: { ...READY, server: SERVER } });
    await expect(joins.as("west", { memberServer: INTERNAL })).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining(`the controller has not gone over to ${INTERNAL} yet`),
    });
  });

  test("gets the certificate authority of the given kubeconfig", async () => {
    joins.authority = authorityNamed("second");
    await joins.as("west");
    const data = Buffer.from(joins.authority).toString("base64");
    expect(joins.stored()?.cluster).toMatchObject({ "certificate-authority-data": data });
  });

  test("gets credentials in place of ones that cannot be used", async () => {
    const found = joins.host.peek(secrets, SECRET);
    if (found !== undefined)
      joins.host.put(secrets, Object.assign(found, { data: { kubeconfig: btoa("no kubeconfig") } }));
    await joins.as("west");
    expect(joins.stored()).toMatchObject({ cluster: { server: SERVER }, token: `token-of-${joins.uidOfAccount()}` });
  });
});

describe("a member that joins again with an operator's Secret", () => {
  const spec = { credentialsSecret: { name: "made-by-gitops", key: "config" } };
  const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };

  beforeEach(async () => {
    await joins.as("west");
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
      joins.host.drop(secrets, SECRET);
      joins.host.put(
        secrets,
        Object.assign({ metadata: ref }, { data: { kubeconfig: btoa("own"), config: btoa("own") } }),
      );
      const west = joins.host.peek(clusters, { name: "west" });
      if (west !== undefined) joins.host.put(clusters, { ...west, ...change });
      joins.member.drop(clusterRoles, { name: ACCOUNT.name });
      const before = joins.host.peek<Secret>(secrets, ref);
      const reported: string[] = [];
      await joins.as("west", {}, reported);
      expect(reported.join()).toMatch(new RegExp(`Secret ${ref.name} stays: .*${why}.*, so it is your own`));
      expect(joins.host.peek<Secret>(secrets, ref)).toEqual(before);
      expect(joins.member.peek(clusterRoles, { name: ACCOUNT.name })).toBeDefined();
      await expect(joins.as("west", { memberServer: INTERNAL })).rejects.toThrow(/credentials of your own, in .*\(it/);
      expect(joins.host.peek<Secret>(secrets, ref)).toEqual(before);
    },
  );
});

describe("a join with access for users", () => {
  const rules = (): string =>
    JSON.stringify(
      joins.member.peek<KubeObject & { readonly rules?: object[] }>(clusterRoles, { name: ACCESS_ACCOUNT.name })?.rules,
    );
  const access = (): unknown => joins.host.peek<Cluster>(clusters, { name: "west" })?.spec.access;
  beforeEach(() => joins.host.put(namespaces, { metadata: { name: "legation-access" } }));

  test("is refused on a host where nothing serves it, before anything is written", async () => {
    joins.host.drop(namespaces, { name: "legation-access" });
    await expect(joins.as("west", { access: true })).rejects.toMatchObject({
      remedy: expect.stringContaining("legation install --access"),
    });
    expect(joins.member.peek(serviceAccounts, ACCOUNT)).toBeUndefined();
  });

  test("is refused where another's Secret has the name in its namespace, before anything is written", async () => {
    joins.host.put(secrets, { metadata: ACCESS_SECRET });
    await expect(joins.as("west", { access: true })).rejects.toMatchObject({ exit: "refused" });
    expect(joins.uidOfAccount()).toBeUndefined();
  });

  test("stores the token of an account that may impersonate, and tries it as a user of the prefix", async () => {
    await joins.as("west", { access: true });
    const kubeconfig = atob(joins.host.peek<Secret>(secrets, ACCESS_SECRET)?.data?.kubeconfig ?? "");
    expect(kubeconfig).toContain(`token-of-${joins.member.peek(serviceAccounts, ACCESS_ACCOUNT)?.metadata.uid}`);
    expect(kubeconfig).not.toContain("as:");
    expect(access()).toEqual({ prefix: "legation:" });
    expect(joins.impersonations).toMatchObject([{ "impersonate-user": "legation:legation-join" }]);
    expect(rules()).toContain('"impersonate-on:user-info:deletecollection"');
    expect(rules()).not.toContain('"impersonate"');
  });

  test("permits impersonation of any user where the member is older than 1.36, or has switched constraints off", async () => {
    joins.impersonationVerb = "impersonate";
    joins.member.kubernetesVersion = { ...joins.member.kubernetesVersion, gitVersion: "v1.35.2" };
    await joins.as("west", { access: true });
    expect(rules()).not.toContain("user-info");
    joins.member.kubernetesVersion = { ...joins.member.kubernetesVersion, gitVersion: "v1.36.1" };
    const reported: string[] = [];
    await joins.as("west", {}, reported);
    expect(rules()).not.toContain("user-info");
    expect(reported.join()).toContain("constrained impersonation is switched off");
  }, 20_000);

  test("keeps access and its prefix when it is repeated without, and changes the prefix alone", async () => {
    await joins.as("west", { access: true, accessPrefix: "eu:" });
    await joins.as("west");
    expect(access()).toEqual({ prefix: "eu:" });
    await joins.as("west", { access: true });
    expect(access()).toEqual({ prefix: "eu:" });
    await joins.as("west", { access: true, accessPrefix: "" });
    expect(access()).toEqual({ prefix: "" });
  });

  test("takes access away on both sides", async () => {
    await joins.as("west", { access: true });
    await joins.as("west", { removeAccess: true });
    expect(access()).toBeUndefined();
    expect(joins.host.peek(secrets, ACCESS_SECRET)).toBeUndefined();
    for (const resource of [serviceAccounts, roles, roleBindings]) {
      expect(joins.member.peek(resource, ACCESS_ACCOUNT)).toBeUndefined();
    }
    for (const resource of [clusterRoles, clusterRoleBindings]) {
      expect(joins.member.peek(resource, { name: ACCESS_ACCOUNT.name })).toBeUndefined();
    }
  });
});
