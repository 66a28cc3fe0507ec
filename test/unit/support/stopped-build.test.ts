import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { ROOT } from "../../support/legation/cli.ts";

// Plays Go: notes what it builds, and takes for `slow` until it may go on.
const GO = `#!/bin/sh
[ "$1" = build ] || exit 0
while [ "$1" != -o ]; do shift; done
echo "$3" >> "$BUILDS/begun"
while [ "$3" = slow ] && [ ! -e "$BUILDS/go-on" ] && [ -d "$BUILDS" ]; do sleep 0.05; done
echo "$3" > "$2"
`;
const BUILD = `
import { ensureBuilt } from ${JSON.stringify(join(ROOT, "test/support/clusters/build.ts"))};
const programs = {
  pins: () => ["1"], sources: () => process.env.BUILDS, name: "stopped", ldflags: "",
  packages: { first: "first", slow: "slow", last: "last" },
};
console.log(await ensureBuilt(programs, ["first", "slow", "last"], () => {}));
`;

test.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
  "continues a build that %s stopped, and builds no finished program anew",
  async (signal) => {
    const directory = mkdtempSync(join(tmpdir(), "legation-build-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    mkdirSync(join(directory, "bin"));
    writeFileSync(join(directory, "bin", "go"), GO, { mode: 0o755 });
    writeFileSync(join(directory, "build.ts"), BUILD);
    const begun = (): string[] =>
      existsSync(join(directory, "begun")) ? readFileSync(join(directory, "begun"), "utf8").trim().split("\n") : [];

    const first = build(directory);
    await vi.waitFor(() => expect(begun()).toContain("slow"), { timeout: 20_000 });
    // Where there are cores for several, a program that is built beside it need not have ended.
    const cache = join(directory, "cache", "legation", "stopped");
    const finished = (): string[] => {
      const [key = ""] = readdirSync(cache);
      return readdirSync(join(cache, key)).filter((file) => ["first", "slow", "last"].includes(file));
    };
    await vi.waitFor(() => expect(finished()).toContain("first"), { timeout: 20_000 });
    const before = finished();
    const beforeStop = begun().length;
    // As a terminal does: to the build and its compilers.
    process.kill(-(first.pid ?? 0), signal);
    await new Promise((resolve) => first.once("close", resolve));

    writeFileSync(join(directory, "go-on"), "");
    const second = build(directory);
    const output = await outputOf(second);
    expect(begun().slice(beforeStop).toSorted()).toEqual(
      ["first", "last", "slow"].filter((name) => !before.includes(name)),
    );
    expect(readdirSync(output).toSorted()).toEqual(["build.lock.queue", "first", "last", "slow"]);
    expect(readFileSync(join(output, "slow"), "utf8")).toBe("slow\n");
  },
);

function build(directory: string): ChildProcess {
  return spawn(process.execPath, [join(directory, "build.ts")], {
    detached: true,
    env: {
      ...process.env,
      BUILDS: directory,
      PATH: `${join(directory, "bin")}:${process.env.PATH}`,
      XDG_CACHE_HOME: join(directory, "cache"),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Resolves to what it prints. */
async function outputOf(child: ChildProcess): Promise<string> {
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code).toBe(0);
  return output.trim();
}
