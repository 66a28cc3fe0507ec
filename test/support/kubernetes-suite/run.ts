import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DEATH_SIGNAL } from "../clusters/death-signal.ts";
import { parseReport, type Results, type SpecResult } from "./results.ts";
import type { Side } from "./sides.ts";
import { batchesOf } from "./specs.ts";
import type { Suite } from "./suite.ts";

/** Options of a run of the suite. */
export interface RunOptions {
  readonly suite: Suite;
  readonly results: Results;
  /** Processes of the suite at a time. */
  readonly workers: number;
  /** Ends what is under way, and starts nothing more. */
  readonly signal: AbortSignal;
  /** Called after each process of the suite. */
  readonly onResults: (results: readonly SpecResult[]) => void;
}

// A process needs seconds before its first spec.
const BATCH = 5;
// A spec of claims that finds one invalid ends its whole process.
const BATCH_OF_DEVICES = 1;

/** Runs specs on a side, and keeps the result of each that came to its end. */
export async function runSpecs(side: Side, specs: readonly string[], options: RunOptions): Promise<void> {
  const { parallel, serial } = batchesOf(specs, side.name === "devices" ? BATCH_OF_DEVICES : BATCH);
  await runBatches(side, parallel, options.workers, options);
  await runBatches(side, serial, 1, options);
}

async function runBatches(side: Side, batches: string[][], workers: number, options: RunOptions): Promise<void> {
  const worker = async (): Promise<void> => {
    for (let batch = batches.shift(); batch !== undefined && !options.signal.aborted; batch = batches.shift()) {
      const results = await runBatch(side, batch, options);
      options.results.add(side.name, results);
      options.onResults(results);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
}

let made = 0;

/** Runs some specs in one process of the suite. */
async function runBatch(side: Side, specs: readonly string[], options: RunOptions): Promise<SpecResult[]> {
  made += 1;
  const directory = join(options.results.directory, "logs", `${side.name}-${new Date().toISOString()}-${made}`);
  mkdirSync(directory, { recursive: true });
  const report = join(directory, "report.json");
  const { suite, signal } = options;
  const on = suite.on(side, directory);
  const flags = [
    ...suite.flags,
    ...on.flags,
    `--ginkgo.json-report=${report}`,
    "--ginkgo.no-color",
    "--ginkgo.timeout=2h",
    ...specs.map((spec) => `--ginkgo.focus=^${suite.name} ${escaped(spec)}$`),
  ];
  const env = { ...process.env, ...suite.env, ...on.env };
  await suiteProcess([suite.program, ...flags], { cwd: directory, env, signal });
  const results = takeReport(report);
  if (results !== undefined) return results;
  if (signal.aborted) return [];
  return specs.map((spec) => ({
    spec,
    outcome: "failed",
    seconds: 0,
    message: `the suite ended without a report: see ${directory}/log`,
  }));
}

/** Reads a report and removes it, since it has megabytes. Undefined if the suite was ended before it had written all of it. */
function takeReport(file: string): SpecResult[] | undefined {
  try {
    return parseReport(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}

/** Escapes a text for Go's regular expressions. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

interface ProcessOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

function suiteProcess(suite: readonly string[], { cwd, env, signal }: ProcessOptions): Promise<void> {
  const log = openSync(join(cwd, "log"), "w");
  const [command = "", ...args] = [...DEATH_SIGNAL, ...suite];
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", log, log] });
  closeSync(log);
  // Ginkgo then reports what has ended, and cleans up.
  const interrupt = (): void => void child.kill("SIGINT");
  if (signal.aborted) interrupt();
  signal.addEventListener("abort", interrupt);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => {
      signal.removeEventListener("abort", interrupt);
      resolve();
    });
  });
}
