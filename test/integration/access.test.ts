import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";
import { createUser, type HostUser, openMember } from "../support/legation/access.ts";
import { runCli } from "../support/legation/cli.ts";
import { legationOn } from "../support/legation/process.ts";

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

describe("a member that is joined with --access", () => {
  const join = async (...args: string[]): Promise<void> => {
    const member = ["--member-kubeconfig", memberCluster("east").kubeconfig];
    const { code, stderr } = await legationOn(hostCluster(), "join", "east", ...member, ...args);
    expect(code, stderr).toBe(0);
  };

  test("is open to a user of the host by legation kubeconfig, as the member's RBAC says, until access is removed", async () => {
    const host = hostCluster();
    const east = memberCluster("east");
    await join("--access", "--access-prefix=guests:");
    await join();
    const { code, stdout, stderr } = await runCli(["kubeconfig", "east", `--kubeconfig=${alice.kubeconfig}`]);
    expect(code, stderr).toBe(0);
    const kubeconfig = joinPath(host.directory, "alice-by-cli.kubeconfig");
    writeFileSync(kubeconfig, stdout, { mode: 0o600 });
    const inEast = (...args: string[]): Promise<string> => kubectl(host, args, { kubeconfig });
    await eventually(async () => (await inEast("auth", "whoami", "-o", "json")).includes('"guests:alice"'), {
      what: "the member is open",
    });
    const namespace = await freshNamespace(east);
    await expect(inEast("get", "configmaps", "-n", namespace)).rejects.toThrow('User "guests:alice" cannot list');
    await kubectl(east, [
      "create",
      "rolebinding",
      "guests",
      "-n",
      namespace,
      "--clusterrole=view",
      "--user=guests:alice",
    ]);
    await eventually(async () => (await inEast("get", "configmaps", "-n", namespace)).includes("kube-root-ca.crt"), {
      what: "the member's RBAC admits the user",
    });
    await join("--remove-access");
    await eventually(
      () =>
        inEast("get", "configmaps", "-n", namespace).then(
          () => false,
          (error: unknown) => String(error).includes("takes no requests of users"),
        ),
      { what: "the member is closed" },
    );
    const left = await kubectl(east, ["get", "clusterroles,clusterrolebindings", "-o", "name"]);
    expect(left).not.toContain("legation-access-");
  });
});
