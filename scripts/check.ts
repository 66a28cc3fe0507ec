import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";

/** A check: a command that exits with 0 on success. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
}

const bin = (tool: string): string => `node_modules/.bin/${tool}`;

const STEPS: readonly Step[] = [
  { name: "types", command: [bin("tsc")] },
  // Tests bring a browser's types with them, which hide what the build refuses.
  { name: "types of the program", command: [bin("tsc"), "-p", "tsconfig.build.json", "--noEmit"] },
  { name: "types of the page", command: [bin("tsc"), "-p", "src/cli/ui/page"] },
  { name: "format and lint", command: [bin("biome"), "ci", `--colors=${process.stdout.isTTY ? "force" : "off"}`, "."] },
  { name: "unused code", command: [bin("knip")] },
  { name: "generated files", command: [process.execPath, "scripts/generate.ts", "--check"] },
  { name: "documents", command: [process.execPath, "scripts/check-documents.ts"] },
  { name: "documentation site", command: [process.execPath, "scripts/docs.ts"] },
];

interface Result {
  readonly step: Step;
  readonly passed: boolean;
  readonly output: string;
  readonly seconds: number;
}

function run(step: Step): Promise<Result> {
  const start = performance.now();
  const [file = "", ...args] = step.command;
  return new Promise((resolve) => {
    let output = "";
    const done = (passed: boolean): void =>
      resolve({ step, passed, output, seconds: (performance.now() - start) / 1000 });
    const child = spawn(file, args, {
      cwd: new URL("..", import.meta.url),
      env: { ...process.env, ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("error", (error) => {
      output += `${error.message}\n`;
      done(false);
    });
    child.on("close", (code) => done(code === 0));
  });
}

/** Runs all steps, one per core at a time, and reports each result. */
async function check(): Promise<boolean> {
  const waiting = [...STEPS];
  const failed: Result[] = [];
  const worker = async (): Promise<void> => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      const result = await run(step);
      console.log(`${result.passed ? "ok    " : "FAILED"}  ${step.name} (${result.seconds.toFixed(1)} s)`);
      if (!result.passed) failed.push(result);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  for (const { step, output } of failed) {
    console.log(`\n--- ${step.name}: ${step.command.join(" ")}\n${output.trimEnd()}`);
  }
  console.log(failed.length === 0 ? "\nall checks passed" : `\n${failed.length} of ${STEPS.length} checks failed`);
  return failed.length === 0;
}

process.exitCode = (await check()) ? 0 : 1;
