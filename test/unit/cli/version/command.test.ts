import { expect, test } from "vitest";
import { packageVersion } from "../../../../src/cli/shared/package-root.ts";
import { runCli } from "../../../support/legation/cli.ts";
import { unreachableHost } from "../unreachable-host.ts";

test("asks no cluster with --client", async () => {
  const { code, stdout, stderr } = await runCli(["version", "--client", "--kubeconfig=/no/such/file", "-o", "json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({ client: { version: packageVersion(), node: process.version } });
});

test.each([
  ["text", []],
  ["json", ["-o", "json"]],
])("prints its own version and fails if the host cannot be reached, as %s", async (_format, output) => {
  const { code, stdout, stderr } = await runCli(["version", `--kubeconfig=${unreachableHost()}`, ...output]);
  expect(code).toBe(1);
  expect(stdout).toContain(packageVersion());
  expect(stdout).not.toContain("Kubernetes at");
  expect(stderr).toMatch(/^error: host: .*127\.0\.0\.1:1/);
});
