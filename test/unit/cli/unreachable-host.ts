import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "legation-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Path of a kubeconfig for a host that refuses every connection. */
export function unreachableHost(folder: string = temporaryFolder()): string {
  const file = join(folder, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    users: [{ name: "u", user: { token: "t" } }],
    "current-context": "c",
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}
