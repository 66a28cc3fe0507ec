import { spawn } from "node:child_process";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { afterFile } from "../support/harness/after-file.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";
import { createUser, type HostUser, openMember } from "../support/legation/access.ts";
import { type CliResult, MAIN, runCli } from "../support/legation/cli.ts";

const running = useLegation();
let ann: HostUser;
let namespace: string;

const rbac = "rbac.authorization.k8s.io";

/** Gives a role of the whole cluster to a user or group. */
function bind(role: string, kind: "User" | "Group", name: string): object {
  return {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: `ann-${role}` },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: role },
    subjects: [{ apiGroup: rbac, kind, name }],
  };
}

function asAnn(...args: string[]): Promise<CliResult> {
  return runCli([...args, `--kubeconfig=${ann.kubeconfig}`]);
}

/** Returns the lines with their columns one space apart. */
function rows(text: string): string[] {
  return text.trimEnd().replaceAll(/ +/g, " ").split("\n");
}

function configMap(name: string): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, labels: { shown: "yes" } },
    data: { a: "b" },
  };
}

beforeAll(async () => {
  await running().access();
  const host = hostCluster();
  const members = [memberCluster("west"), memberCluster("east")];
  ann = await createUser(host, "ann", "viewers");
  await applyAll(host, [bind("legation-access", "User", "ann"), bind("legation-viewer", "User", "ann")]);
  namespace = await freshNamespace(members, { onFinished: afterFile });
  for (const member of members) {
    await openMember(host, member, member.name);
    await applyAll(member, [
      bind("view", "Group", "legation:viewers"),
      configMap("both"),
      configMap(`in-${member.name}`),
    ]);
  }
});

describe("get, as a user of the host", () => {
  test("shows the objects of all members, with the rights that the user has there", async () => {
    const { code, stdout, stderr } = await asAnn("get", "cm", "-n", namespace, "-l", "shown=yes");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(rows(stdout)).toEqual([
      "CLUSTER NAME DATA AGE",
      expect.stringMatching(/^east both 1 \w+$/),
      expect.stringMatching(/^east in-east 1 \w+$/),
      expect.stringMatching(/^west both 1 \w+$/),
      expect.stringMatching(/^west in-west 1 \w+$/),
    ]);
    const refused = await asAnn("get", "secrets", "-n", namespace);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain('User "legation:ann" cannot list resource "secrets"');
  });

  test("names a member that does not exist, and shows the rest", async () => {
    const { code, stdout, stderr } = await asAnn("get", "cm/in-west", "-n", namespace, "--clusters", "west,nowhere");
    expect(rows(stdout)).toEqual(["CLUSTER NAME DATA AGE", expect.stringMatching(/^west in-west 1/)]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^nowhere: .*"nowhere" not found\n$/) });
  });

  test("prints a List whose items name their clusters", async () => {
    const { stdout } = await asAnn("get", "configmaps", "both", "-n", namespace, "-o", "json", "--strict");
    const { kind, items } = JSON.parse(stdout) as { kind: string; items: { metadata: { annotations: object } }[] };
    expect(kind).toBe("List");
    expect(items.map(({ metadata }) => metadata.annotations)).toMatchObject([
      { "access.legation.dev/cluster": "east" },
      { "access.legation.dev/cluster": "west" },
    ]);
  });

  test("watches all members, and says when one is lost and when it is back", async () => {
    const west = memberCluster("west");
    const args = ["get", "cm", "-n", namespace, "-l", "shown=yes", "-w", "--output-watch-events"];
    const watch = spawn(process.execPath, [MAIN, ...args, `--kubeconfig=${ann.kubeconfig}`]);
    onTestFinished(async () => {
      watch.kill();
      await west.proxy.heal();
    });
    let seen = "";
    const see = (chunk: Buffer): void => {
      seen += chunk.toString();
    };
    watch.stdout.on("data", see);
    watch.stderr.on("data", see);
    const lines = (pattern: RegExp): number => rows(seen).filter((line) => pattern.test(line)).length;
    const sees = (pattern: RegExp): Promise<unknown> => eventually(() => lines(pattern) > 0, { what: String(pattern) });
    await sees(/^ADDED west in-west /);
    await applyAll(memberCluster("east"), [configMap("later")]);
    await sees(/^ADDED east later /);

    await west.proxy.cut();
    await sees(/^west: lost; its rows may be out of date: /);
    await applyAll(west, [configMap("while-lost")]);
    await kubectl(west, ["delete", "configmap", "in-west", "-n", namespace]);
    await west.proxy.heal();
    await sees(/^west: back$/);
    await sees(/^ADDED west while-lost /);
    await sees(/^DELETED west in-west <deleted>$/);
    expect(lines(/^ADDED west both /)).toBe(1);
  });
});

test("describe shows an object of each member, as a user of the host", async () => {
  const { code, stdout } = await asAnn("describe", "cm", "both", "-n", namespace);
  expect(code).toBe(0);
  for (const name of ["east", "west"]) expect(stdout).toContain(`Cluster:      ${name}\nName:         both\n`);
  expect(stdout).toContain("Data:\n  a: b\nEvents: <none>\n");
});
