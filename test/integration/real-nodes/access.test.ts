import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ensureEngine } from "../../support/engines/python.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { onRealNodes } from "../../support/harness/real-nodes.ts";
import { bindClusterRole, createUser, type HostUser, openMember } from "../../support/legation/access.ts";
import { ROOT } from "../../support/legation/cli.ts";
import { type Ran, runStreaming, StreamingKubectl, type StreamingOptions } from "../../support/streams/kubectl.ts";
import { podManifest } from "../../support/streams/pods.ts";

const SCRIPT = [
  "mkdir -p /www && echo hello from the member > /www/index.html && httpd -p 8080 -h /www",
  "echo started",
  'trap "exit 0" TERM; sleep 3600 & wait',
].join("; ");
const BYTES = 2 ** 20;
const CLIENT = join(ROOT, "test", "support", "clients", "python", "client.py");

onRealNodes((realNodes) => {
  let alice: HostUser;
  let namespace: string;

  beforeAll(async () => {
    const [host, west] = [hostCluster(), memberCluster("west")];
    await realNodes().legation.access();
    await openMember(host, west, "west");
    alice = await createUser(host, "alice", "developers");
    namespace = await freshNamespace(west, { prefix: "access", onFinished: afterFile });
    await bindClusterRole(host, "legation-access", { kind: "User", name: "alice" });
    await bindClusterRole(west, "edit", { kind: "User", name: "legation:alice" });
    const kubeconfig = alice.kubeconfigOf("west");
    await kubectl(host, ["apply", "-n", namespace, "-f", "-"], {
      kubeconfig,
      input: podManifest("web", [{ name: "main", script: SCRIPT }]),
    });
    await kubectl(host, ["wait", "-n", namespace, "pod/web", "--for=condition=Ready", "--timeout=60s"], { kubeconfig });
  });

  describe.each(["SPDY", "WebSocket"] as const)("a user of the host, in a pod of a member, by %s", (transport) => {
    const streams = (args: readonly string[], options: Partial<StreamingOptions> = {}): Promise<Ran> =>
      runStreaming(["-n", namespace, ...args], { kubeconfig: alice.kubeconfigOf("west"), transport, ...options });

    test("executes commands, with all bytes both ways and the exit code", async () => {
      const input = randomBytes(BYTES);
      const echoed = await streams(["exec", "-i", "web", "--", "cat"], { input });
      expect(echoed.stdout.equals(input)).toBe(true);
      expect((await streams(["exec", "web", "--", "sh", "-c", "exit 7"])).code).toBe(7);
    });

    test("copies a file there and back", async () => {
      const folder = mkdtempSync(join(tmpdir(), "legation-cp-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const [there, back] = [join(folder, "there"), join(folder, "back")];
      writeFileSync(there, randomBytes(BYTES));
      const file = `/tmp/${transport}`;
      expect((await streams(["cp", there, `web:${file}`])).stderr).toBe("");
      await streams(["cp", `web:${file}`, back]);
      expect(readFileSync(back).equals(readFileSync(there))).toBe(true);
    });

    test("forwards a port to a pod of the member", async () => {
      using forward = new StreamingKubectl(["-n", namespace, "port-forward", "pod/web", ":8080"], {
        kubeconfig: alice.kubeconfigOf("west"),
        transport,
      });
      const [, port] = await forward.says(/127\.0\.0\.1:(\d+)/);
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("hello from the member\n");
    });
  });

  test("serves Python's client: creates, lists, watches, patches, commands, logs and deletions", async () => {
    // Parsl's environment has the package.
    const { python } = await ensureEngine("parsl", (line) => process.stderr.write(`engines: ${line}\n`));
    const own = await freshNamespace(memberCluster("west"));
    const { stdout } = await promisify(execFile)(python, [CLIENT, alice.kubeconfigOf("west"), own]);
    expect(stdout.trim().split("\n")).toEqual([
      "listed True",
      "watched ADDED first",
      "watched MODIFIED second",
      "watched DELETED second",
      "executed",
      "log line 1",
      "pod deleted",
    ]);
  }, 600_000);

  test.each(["", "/", "/index.html"])("reads a pod's page by the member's proxy, at the path %j", async (path) => {
    const page = `/api/v1/namespaces/${namespace}/pods/web:8080/proxy${path}`;
    const kubeconfig = alice.kubeconfigOf("west");
    expect(await kubectl(hostCluster(), ["get", "--raw", page], { kubeconfig })).toBe("hello from the member\n");
  });

  test("reads and follows logs", async () => {
    const options = { kubeconfig: alice.kubeconfigOf("west"), transport: "SPDY" as const };
    expect((await runStreaming(["-n", namespace, "logs", "web"], options)).stdout.toString()).toBe("started\n");
    using follow = new StreamingKubectl(["-n", namespace, "logs", "-f", "web"], options);
    await follow.says(/^started\n$/);
  });
});
