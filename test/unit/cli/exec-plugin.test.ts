import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProcess } from "../../support/legation/cli.ts";

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

test("a command waits for the program that its kubeconfig names", async () => {
  const answers = await runProcess(["status", `--kubeconfig=${kubeconfig(`sleep 0.3; echo '${credential}'`)}`]);
  expect(answers.stderr).toContain("ECONNREFUSED");
  const fails = await runProcess(["status", `--kubeconfig=${kubeconfig("sleep 0.3; echo log in first >&2; exit 3")}`]);
  expect(fails.stderr).toContain("log in first");
});
