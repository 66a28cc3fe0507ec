import { beforeEach, describe, expect, test } from "vitest";
import type { KubeNode, Secret } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { clusterRoleBindings, clusterRoles } from "../../../../src/cli/member/access.ts";
import { nodes, secrets, serviceAccounts } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { ACCOUNT, Joining, SECRET } from "./joining.ts";

let joins: Joining;
beforeEach(() => {
  joins = new Joining();
});

function forgetIdentity(): void {
  const west = joins.host.peek(clusters, { name: "west" });
  if (west !== undefined) joins.host.put(clusters, { ...west, metadata: { ...west.metadata, annotations: {} } });
}

describe("a join", () => {
  test("is refused for the host itself", async () => {
    joins.member = joins.host;
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("the member is the host itself"),
    });
    expect(joins.host.peek(serviceAccounts, ACCOUNT)).toBeUndefined();
  });

  test("is refused where the host has a node of its own by the virtual node's name", async () => {
    joins.host.put(nodes, { metadata: { name: "legation-west" } });
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("exists on the host and is not Legation's"),
    });
    expect(joins.uidOfAccount()).toBeUndefined();
    // The node that an earlier Cluster of the name has left is.
    joins.host.put(nodes, { metadata: { name: "legation-west", labels: { "legation.dev/cluster": "west" } } });
    await expect(joins.as("west")).resolves.toBeDefined();
  });

  test("accepts the node that an earlier Cluster of the name left, also without its label", async () => {
    const left: KubeNode = { metadata: { name: "legation-west" }, spec: { providerID: "legation://west" } };
    joins.host.put(nodes, left);
    await expect(joins.as("west")).resolves.toBeDefined();
  });
});

describe("a first join that finds a Secret of its name", () => {
  const labels = { "legation.dev/cluster": "west" };
  const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };
  const put = (metadata: object): void => {
    const data = { kubeconfig: btoa("theirs"), other: btoa("other") };
    joins.host.put(secrets, Object.assign({ metadata: { ...SECRET, ...metadata } }, { data }));
  };

  test.each([
    ["a bare one", {}, "it has no label legation.dev/cluster=west and no annotation legation.dev/token-expires"],
    ["a labelled one", { labels }, "it has no annotation legation.dev/token-expires"],
    ["one whose token the controller of 0.1.0 renewed", { annotations }, "it has no label legation.dev/cluster=west"],
  ])("is refused before any write for %s of the operator's", async (_which, metadata, why) => {
    put(metadata);
    const before = joins.host.peek<Secret>(secrets, SECRET);
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: `Secret legation-system/member-west: is there already, and not as \`legation join west\` makes it: ${why}`,
      remedy: "delete it when nothing needs it, or choose another name",
    });
    expect(joins.host.peek<Secret>(secrets, SECRET)).toEqual(before);
    expect(joins.host.peek(clusters, { name: "west" })).toBeUndefined();
    expect(joins.uidOfAccount()).toBeUndefined();
  });

  test("is refused when the Secret is created meanwhile", async () => {
    const push = (line: string): number => {
      if (line.includes("ServiceAccount")) put({});
      return 1;
    };
    await expect(joins.as("west", {}, { push })).rejects.toMatchObject({ exit: "refused" });
    expect(joins.stored).toThrow();
    expect(joins.host.peek<Secret>(secrets, SECRET)?.metadata.labels).toBeUndefined();
    expect(joins.host.peek(clusters, { name: "west" })).toBeUndefined();
  });
});

describe("a member that joins again", () => {
  beforeEach(async () => {
    await joins.as("west");
  });

  const loseAll = (): void => {
    joins.member.drop(serviceAccounts, ACCOUNT);
    for (const resource of [clusterRoles, clusterRoleBindings]) joins.member.drop(resource, { name: ACCOUNT.name });
  };

  test("is recognized by its identity without any access", async () => {
    loseAll();
    await joins.as("west");
    expect(joins.stored()?.token).toBe(`token-of-${joins.uidOfAccount()}`);
  });

  test("is refused, with what to write, without access and identity", async () => {
    forgetIdentity();
    loseAll();
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      remedy: expect.stringContaining(
        "`kubectl annotate clusters.legation.dev west legation.dev/member-uid=uid-of-west` and try again",
      ),
    });
  });

  test("is refused when it is another cluster, with both identities", async () => {
    joins.member = new MemoryCluster("west", "uid-of-east");
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringMatching(/is not the cluster of --member-kubeconfig .*uid-of-west.*uid-of-east/),
    });
  });

  test("is refused when it has joined as another Cluster, with its name", async () => {
    const west = joins.member;
    joins.member = new MemoryCluster("east", "uid-of-east");
    await joins.as("east");
    forgetIdentity();
    await expect(joins.as("west")).rejects.toThrow(
      "is not the cluster of --member-kubeconfig: that has joined as east",
    );
    joins.member = west;
    await expect(joins.as("west")).resolves.toBeDefined();
  });

  test("is refused under another name, also without any access", async () => {
    loseAll();
    await expect(joins.as("other")).rejects.toThrow("this member has joined already, as west");
  });

  test.each([
    ["records", () => {}],
    ["does not record", forgetIdentity],
  ])("is refused while another Cluster has the same member's uid, which its own Cluster %s", async (_, prepare) => {
    prepare();
    const metadata = { name: "other", annotations: { "legation.dev/member-uid": "uid-of-west" } };
    joins.host.put(clusters, { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", metadata });
    await expect(joins.as("west")).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("Cluster west: this member has joined as other, too"),
      remedy: "run `legation unjoin` for one of the two, then join again",
    });
    expect(joins.host.peek(clusters, { name: "west" })).toBeDefined();
    expect(joins.uidOfAccount()).toBeDefined();
  });
});
