import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { onTestFinished, test } from "vitest";
import { freePort } from "../../support/clusters/ports.ts";
import { eventually } from "../../support/harness/wait.ts";
import { temporaryFolder, unreachableHost } from "./unreachable-host.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const LAUNCHER = join(ROOT, "bin/legation");

function isLive(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/livez`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Ends what a failed test has left, which may not be the child itself. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The process has ended.
  }
}

test.each<[string, (folder: string) => readonly [string, ...string[]]]>([
  ["npm run", () => ["npm", "run", "-s", "legation", "--"]],
  ["bin/legation", () => [LAUNCHER]],
  [
    "a link to bin/legation",
    (folder) => {
      const link = join(folder, "legation");
      symlinkSync(LAUNCHER, link);
      return [link];
    },
  ],
])(
  "ends Legation after a signal to what %s started, and leaves no process behind",
  async (_, commandIn) => {
    const folder = temporaryFolder();
    const port = await freePort();
    const [command, ...args] = commandIn(folder);
    // A controller goes on trying while its host does not answer, and its health endpoint answers meanwhile.
    const flags = ["--kubeconfig", unreachableHost(folder), "--health-listen", `127.0.0.1:${port}`];
    const child = spawn(command, [...args, "controller", ...flags], {
      // npm looks for package.json from here on; the launcher may be called from anywhere.
      cwd: command === "npm" ? ROOT : folder,
      stdio: "ignore",
      detached: true,
    });
    onTestFinished(() => endGroup(child));
    await eventually(() => isLive(port), { timeoutMs: 60_000 });
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
    await eventually(async () => !(await isLive(port)), { timeoutMs: 10_000 });
  },
  90_000,
);
