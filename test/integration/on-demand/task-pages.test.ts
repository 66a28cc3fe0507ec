import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { runPage } from "../../support/documents/run-page.ts";
import { startKueue } from "../../support/engines/kueue-manager.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { useLegation } from "../../support/harness/legation.ts";
import { MAIN, ROOT } from "../../support/legation/cli.ts";

useLegation();
let directory: string;
let env: Record<string, string | undefined>;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "legation-pages-"));
  for (const folder of ["examples", "manifests"]) symlinkSync(join(ROOT, folder), join(directory, folder));
  copyFileSync(hostCluster().kubeconfig, join(directory, "host.kubeconfig"));
  for (const name of ["west", "east"] as const)
    copyFileSync(memberCluster(name).kubeconfig, join(directory, `${name}.kubeconfig`));
  const bin = join(directory, "bin");
  mkdirSync(bin);
  symlinkSync(inject("kubectl"), join(bin, "kubectl"));
  writeFileSync(join(bin, "legation"), `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`, { mode: 0o755 });
  env = { ...process.env, KUBECONFIG: join(directory, "host.kubeconfig"), PATH: `${bin}:${process.env.PATH}` };
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

test.each(["first-pod", "whole-job", "configmap"])("runs every command of the page %s", async (name) => {
  expect(await runPage({ page: `docs/tasks/${name}.md`, directory, env })).toBeGreaterThan(4);
});

test("runs every command of the page on queues, beside a Kueue that the test starts", async () => {
  const kueue = await startKueue(hostCluster(), { frameworks: ["batch/job"] });
  onTestFinished(() => kueue.stop());
  expect(await runPage({ page: "docs/tasks/share-members.md", directory, env })).toBe(7);
}, 600_000);

test("runs the commands of the README for clusters of one's own", async () => {
  expect(await runPage({ page: "README.md", directory, env })).toBeGreaterThan(2);
  await kubectl(hostCluster(), ["delete", "namespace", "shop", "--timeout=120s"]);
});
