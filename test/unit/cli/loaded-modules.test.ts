import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const CLI = resolve(import.meta.dirname, "../../../src/cli");

/** Imports modules of `src/cli` in a process of its own. Resolves to the names of Node.js' own modules that they load. */
async function loadedBy(modules: readonly string[]): Promise<string[]> {
  const script = `
    for (const file of ${JSON.stringify(modules.map((name) => join(CLI, name)))}) await import(file);
    console.log(JSON.stringify(process.moduleLoadList));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  return JSON.parse(stdout);
}

test.each(["access", "agent", "controller", "relay", "ui", "webhook"])(
  "legation %s does not load the HTTP client inside Node.js beside its own",
  async (command) => {
    const modules = [`${command}/command.ts`, "shared/connections.ts", "../telemetry/health.ts"];
    const loaded = await loadedBy(modules);
    expect(loaded).toContainEqual(expect.stringMatching(/NativeModule http$/));
    expect(loaded).not.toContainEqual(expect.stringContaining("internal/deps/undici"));
  },
);
