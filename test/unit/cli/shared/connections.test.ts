import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../support/harness/wait.ts";
import { runCli } from "../../../support/legation/cli.ts";
import { LegationRun } from "../../../support/legation/process.ts";

// Loaded beforehand: the imports take longer than the plugin.
await runCli(["status", "--help"]);

/** A kubeconfig of a server that is not there, whose token a program gives after some time, as those of clouds do. */
function kubeconfig(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), "legation-exec-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "sh",
    args: ["-c", script],
    interactiveMode: "Never",
  };
  const file = join(folder, "kubeconfig");
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "far", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "me", user: { exec } }],
    contexts: [{ name: "far", context: { cluster: "far", user: "me" } }],
    "current-context": "far",
  };
  writeFileSync(file, JSON.stringify(content));
  return file;
}

const credential = JSON.stringify({
  apiVersion: "client.authentication.k8s.io/v1",
  kind: "ExecCredential",
  status: { token: "t" },
});

test("waits for the exec plugin of a kubeconfig", async () => {
  const answers = await runCli(["status", `--kubeconfig=${kubeconfig(`sleep 0.3; echo '${credential}'`)}`]);
  expect(answers.stderr).toContain("nothing listens at");
  const fails = await runCli(["status", `--kubeconfig=${kubeconfig("sleep 0.3; echo log in first >&2; exit 3")}`]);
  expect(fails.stderr).toMatch(/^log in first\nerror: .* sh ended with exit code 3\n/);
});

test("shows a plugin's output once while it waits, and ends both on the first Ctrl-C", async () => {
  const folder = mkdtempSync(join(tmpdir(), "legation-exec-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const pidFile = join(folder, "pid");
  // The plugin would outlast the test.
  const script = `echo $$ > ${pidFile}; echo enter the code ABCD >&2; exec sleep 600`;
  const run = new LegationRun({ kubeconfig: kubeconfig(script) }, ["status"]);
  await run.untilStderr("enter the code ABCD");
  expect(await run.interrupt("SIGINT")).toBe(130);
  expect(run.stderr.match(/ABCD/g)).toHaveLength(1);
  const pid = Number(readFileSync(pidFile, "utf8"));
  await eventually(() => !isRunning(pid));
});

/** Reports whether the process runs. A zombie does not, as the first process of a container may not reap it. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return /^[^Z]/.test(stdout);
}
