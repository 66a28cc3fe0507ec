import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { ensureClientGo } from "../../../support/clients/client-go.ts";
import { compare } from "../../../support/conformance/compare.ts";
import { SCENARIOS } from "../../../support/conformance/scenarios.ts";
import { transcribe } from "../../../support/conformance/transcript.ts";
import { hostCluster, memberCluster } from "../../../support/harness/clusters.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { onRealNodes } from "../../../support/harness/real-nodes.ts";
import { bindClusterRole, createUser, type HostUser, openMember } from "../../../support/legation/access.ts";
import { runCli } from "../../../support/legation/cli.ts";

// A user of the host, who is an administrator of the member there, sees through the host what the member's own sees.

onRealNodes((realNodes) => {
  let alice: HostUser;

  beforeAll(async () => {
    const [host, west] = [hostCluster(), memberCluster("west")];
    await realNodes().legation.access();
    await openMember(host, west, "west");
    alice = await createUser(host, "alice", "developers");
    await bindClusterRole(host, "legation-access", { kind: "User", name: "alice" });
    await bindClusterRole(west, "cluster-admin", { kind: "User", name: "legation:alice" });
  });

  test.concurrent.for(SCENARIOS)(
    "looks the same through the host, and has no known difference: $name",
    { timeout: 600_000 },
    async (scenario, { onTestFinished }) => {
      const west = memberCluster("west");
      const namespaces = { onFinished: onTestFinished };
      const [direct, through] = await Promise.all([
        freshNamespace(west, { prefix: "direct", ...namespaces }),
        freshNamespace(west, { prefix: "door", ...namespaces }),
      ]);
      const { name } = west;
      const kubeconfig = alice.kubeconfigOf("west");
      const [expected, seen] = await Promise.all([
        transcribe(scenario, { cluster: west, namespace: direct }, "plain"),
        transcribe(scenario, { cluster: { name, kubeconfig }, namespace: through }, "plain"),
      ]);
      expect(compare(expected, seen, []).unexplained).toEqual([]);
      expect(seen.length).toBeGreaterThan(scenario.calls.length);
    },
  );

  test.for(["application/json", "application/vnd.kubernetes.protobuf"])(
    "serves client-go by legation kubeconfig: lists, informers, server-side apply, logs and deletions in %s",
    { timeout: 600_000 },
    async (contentType, { onTestFinished }) => {
      const program = await ensureClientGo((line) => process.stderr.write(`clients: ${line}\n`));
      const { code, stdout: config, stderr } = await runCli(["kubeconfig", "west", `--kubeconfig=${alice.kubeconfig}`]);
      expect(code, stderr).toBe(0);
      const kubeconfig = join(hostCluster().directory, "client-go.kubeconfig");
      writeFileSync(kubeconfig, config, { mode: 0o600 });
      const namespace = await freshNamespace(memberCluster("west"), { onFinished: onTestFinished });
      const { stdout } = await promisify(execFile)(program, [kubeconfig, namespace, contentType]);
      expect(stdout.trim().split("\n")).toEqual([
        "listed 0 pods",
        "informers synced",
        "applied by door: first",
        "applied by door: second",
        "informer saw all changes",
        "pod ended: Succeeded",
        "log: line 1 line 2 line 3",
        "pod deleted",
      ]);
    },
  );
});
