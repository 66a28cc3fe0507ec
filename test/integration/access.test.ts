import { spawn } from "node:child_process";
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";
import { createUser, type HostUser, openMember } from "../support/legation/access.ts";

const running = useLegation();
let alice: HostUser;

const rbac = "rbac.authorization.k8s.io";

/** Runs kubectl as alice, against a member through the host's API server. */
function asAlice(args: readonly string[], member = "west"): Promise<string> {
  return kubectl(hostCluster(), args, { kubeconfig: alice.kubeconfigOf(member) });
}

beforeAll(async () => {
  await running().access();
  const host = hostCluster();
  alice = await createUser(host, "alice", "developers");
  await openMember(host, memberCluster("west"), "west");
  await applyAll(host, [
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "access-alice" },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "legation-access" },
      subjects: [{ apiGroup: rbac, kind: "User", name: "alice" }],
    },
  ]);
  await applyAll(memberCluster("west"), [
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "access-developers" },
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "edit" },
      subjects: [{ apiGroup: rbac, kind: "Group", name: "legation:developers" }],
    },
  ]);
});

describe("a user of the host, in a member", () => {
  test("is known by name and groups, with the Cluster's prefix and without Kubernetes' own", async () => {
    const who = JSON.parse(await asAlice(["auth", "whoami", "-o", "json"])) as { status: { userInfo: object } };
    expect(who.status.userInfo).toMatchObject({
      username: "legation:alice",
      groups: ["legation:developers", "system:authenticated"],
    });
  });

  test("creates, reads, watches and deletes objects as the member's RBAC allows, and no others", async () => {
    const west = memberCluster("west");
    const namespace = await freshNamespace(west);
    const watch = spawn(inject("kubectl"), [
      `--kubeconfig=${alice.kubeconfigOf("west")}`,
      ...["get", "configmaps", "-n", namespace, "--watch", "-o", "name"],
    ]);
    onTestFinished(() => {
      watch.kill();
    });
    let seen = "";
    watch.stdout.on("data", (chunk: Buffer) => {
      seen += chunk.toString();
    });
    await asAlice(["create", "configmap", "written", "-n", namespace, "--from-literal=by=alice"]);
    await eventually(() => seen.includes("configmap/written"), { what: "the watch brings the new object" });
    expect(await kubectl(west, ["get", "configmap", "written", "-n", namespace, "-o", "jsonpath={.data.by}"])).toBe(
      "alice",
    );
    await asAlice(["delete", "configmap", "written", "-n", namespace]);
    await expect(asAlice(["get", "nodes"])).rejects.toThrow(
      'User "legation:alice" cannot list resource "nodes" in API group "" at the cluster scope',
    );
  });

  test("is refused by the host without the right to the Cluster, and told how a closed one is opened", async () => {
    const host = hostCluster();
    const bob = await createUser(host, "bob", "developers");
    const asBob = kubectl(host, ["get", "pods"], { kubeconfig: bob.kubeconfigOf("west") });
    await expect(asBob).rejects.toThrow('User "bob" cannot get resource "clusters/proxy"');
    await expect(asAlice(["get", "pods"], "east")).rejects.toThrow("legation join east --access");
    await expect(asAlice(["get", "pods"], "nowhere")).rejects.toThrow('clusters.legation.dev "nowhere" not found');
  });
});
