import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { restartsIn } from "../../../../scripts/demo/process.ts";
import { ROOT } from "../../../support/legation/cli.ts";

const SCRIPT = join(ROOT, "scripts/demo/restarting.sh");

function start(command: string) {
  const folder = mkdtempSync(join(tmpdir(), "legation-restarting-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const child = spawn(SCRIPT, [folder, "sh", "-c", command], { detached: true });
  const { pid } = child;
  onTestFinished(() => {
    if (pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-pid, "SIGKILL");
  });
  return { folder, child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
}

test("starts a command again when it ends, and ends with it on SIGTERM", async () => {
  const { child, lines } = start("echo $$; exec sleep 600");
  const first = Number((await lines.next()).value);
  process.kill(first, "SIGKILL");
  const second = Number((await lines.next()).value);
  expect(second).not.toBe(first);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(() => process.kill(second, 0)).toThrow("ESRCH");
});

test("starts nothing again once the folder is gone", async () => {
  const { folder, child, lines } = start("echo $$; exec sleep 600");
  const pid = Number((await lines.next()).value);
  rmSync(folder, { recursive: true });
  process.kill(pid, "SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("counts starts by the log", () => {
  expect(restartsIn("restarting: exit 1\nwebhook serves\nrestarting: exit 143\nnot restarting: exit 1\n")).toBe(2);
});
