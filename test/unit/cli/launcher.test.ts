import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { onTestFinished, test } from "vitest";
import { temporaryFolder, unreachableHost } from "./unreachable-host.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const LAUNCHER = join(ROOT, "bin/legation");

/** Kills what a child has left once the test ends, or the test run itself does: the pipe then closes, even after SIGKILL. */
function endWithTest({ pid }: ChildProcess): void {
  const script = `cat > /dev/null; kill -s KILL -- -${pid}`;
  const watcher = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  onTestFinished(async () => {
    const ended = once(watcher, "exit");
    watcher.stdin.end();
    await ended;
  });
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
    const [command, ...args] = commandIn(folder);
    // A controller goes on trying while its host does not answer, and logs that.
    const child = spawn(command, [...args, "controller", "--kubeconfig", unreachableHost(folder)], {
      // npm looks for package.json from here on; the launcher may be called from anywhere.
      cwd: command === "npm" ? ROOT : folder,
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    endWithTest(child);
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    // The event comes once no process holds the pipe any more.
    await once(child, "close");
  },
  90_000,
);
