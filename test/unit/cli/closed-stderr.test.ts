import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { EXIT_CODES } from "../../../src/cli/shared/failure.ts";
import { MAIN } from "../../support/legation/cli.ts";

test("ends with the command's exit code when standard error is closed", async () => {
  const child = spawn(process.execPath, [MAIN, "nonsense"], { stdio: ["ignore", "ignore", "pipe"] });
  child.stderr.destroy();
  expect(await once(child, "exit")).toEqual([EXIT_CODES.usage, null]);
});
