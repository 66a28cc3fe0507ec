import { beforeEach } from "vitest";

// The runner shows of an attempt that failed only that there was another.
beforeEach(({ onTestFailed }) => {
  onTestFailed(({ task: { name, result } }) => {
    const { message, diff = "" } = result?.errors?.at(-1) ?? {};
    process.stderr.write(`failed at ${new Date().toISOString()}: ${name}: ${message}\n${diff}\n`);
  });
});
