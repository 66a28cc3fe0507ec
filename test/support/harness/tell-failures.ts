import { beforeEach } from "vitest";

/** Writes to stderr why an attempt failed: the runner shows only that there was another. */
export function tellFailures(): void {
  beforeEach(({ onTestFailed }) => {
    onTestFailed(({ task: { name, result } }) => {
      const { message, diff = "" } = result?.errors?.at(-1) ?? {};
      process.stderr.write(`failed at ${new Date().toISOString()}: ${name}: ${message}\n${diff}\n`);
    });
  });
}
