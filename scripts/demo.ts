import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Terminal } from "../src/cli/shared/terminal.ts";
import { binariesToBuild, binarySources, builtVersions } from "../test/support/clusters/binaries.ts";
import { cacheDirectory } from "../test/support/clusters/build.ts";
import { nodeBinariesToBuild } from "../test/support/clusters/node/binaries.ts";
import { realNodesPossible } from "../test/support/clusters/node/possible.ts";
import { openClusters, startClusters } from "../test/support/clusters/start.ts";
import type { Clusters } from "../test/support/clusters/types.ts";
import { closingText, environmentLines } from "./demo/closing.ts";
import { firstRun, foundText } from "./demo/first-run.ts";
import { abortedBySignals } from "./demo/interruption.ts";
import { deleteWorkloads, removeLegation } from "./demo/leave.ts";
import { logTails, stopProcesses } from "./demo/process.ts";
import { ProgressLine } from "./demo/progress-line.ts";
import { Shell } from "./demo/shell.ts";
import {
  AGENT_MEMBER,
  installLegation,
  joinBehindAgent,
  joinMembers,
  MEMBERS,
  runBehindAgent,
  runExamples,
  scale,
  showAllMembers,
  showPending,
  type Tour,
} from "./demo/tour.ts";
import { readOptions } from "./options.ts";

const USAGE = `Legation on four real clusters on this machine.

  npm run demo              the whole tour, then everything is stopped
  npm run demo -- --keep    leaves the clusters, Legation and the examples running
  npm run demo -- --stop    stops what --keep has left`;

// A fixed path, so that `--stop` finds the demo.
const KEPT = join(cacheDirectory(), "demo");
// Every command with its output. It stays after the demo, for whoever wants to read on.
const TRANSCRIPT = join(cacheDirectory(), "demo.log");
// kwok's nodes run no containers: a stage ends those of Jobs.
const JOB_PODS = join(import.meta.dirname, "demo", "job-pods.yaml");
// Clusters that are starting stop by themselves on a signal; this stops the rest.
const PATIENCE_MS = 3_000;

const terminal = new Terminal(process.stdout, process.stderr, process.env);
/** Folder of the clusters, once they run. */
let running: string | undefined;
const signal = abortedBySignals(terminal, () => running);

async function start(keep: boolean): Promise<Clusters> {
  const real = realNodesPossible() === undefined;
  const names = ["host", ...Object.keys(MEMBERS), AGENT_MEMBER];
  terminal.print(terminal.paint("bold", "Legation: pods of one cluster, running in others"));
  const nodes = real ? `kwok plays the nodes of three, that of ${AGENT_MEMBER} is real` : "kwok plays their nodes";
  terminal.print(`Four Kubernetes control planes start on this machine: ${nodes}.`);
  terminal.print("Simulated nodes run no containers, so their pods have no logs.");
  sayWhereFrom(real);
  const progress = new ProgressLine(process.stdout);
  const starting = startClusters({
    names,
    clusters: {
      ...Object.fromEntries(Object.keys(MEMBERS).map((name) => [name, { kwokFlags: [`--config=${JOB_PODS}`] }])),
      host: { nodes: [{ count: 1 }] },
      ...(real ? { [AGENT_MEMBER]: { realNode: true } } : {}),
    },
    ...(keep ? { directory: KEPT, detached: true } : {}),
    onProgress: (line) => progress.show(line),
  });
  // A keeper ends with this process; a started cluster has to be stopped.
  const giveUp = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => void sleep(PATIENCE_MS, undefined, { ref: false }).then(resolve));
  });
  const clusters = await Promise.race([starting, giveUp]);
  progress.clear();
  if (clusters === undefined) process.exit();
  return clusters;
}

/** Says which binaries are there, what the first run takes, and how to avoid that. */
function sayWhereFrom(real: boolean): void {
  for (const line of foundText(binarySources())) terminal.print(line);
  const missing = [...binariesToBuild(), ...(real ? nodeBinariesToBuild() : [])];
  if (missing.length === 0) return;
  for (const line of firstRun(missing, builtVersions())) terminal.print(line === "" ? "" : `   ${line}`);
}

async function showAll(tour: Tour, keep: boolean): Promise<void> {
  const hub = await installLegation(tour);
  await joinMembers(tour);
  await runExamples(tour);
  await scale(tour);
  await showPending(tour);
  await joinBehindAgent(tour, hub);
  await runBehindAgent(tour);
  await showAllMembers(tour);
  if (keep) return;
  await deleteWorkloads(tour);
  await removeLegation(tour);
}

function printKept({ info, all }: Clusters): void {
  const real = realNodesPossible() === undefined ? AGENT_MEMBER : undefined;
  const [first = "", ...more] = closingText({ ...info, clusters: all, transcript: TRANSCRIPT, real });
  terminal.print(`\n${terminal.paint("bold", first)}`);
  for (const line of more) terminal.print(line);
}

async function demo(keep: boolean): Promise<void> {
  if (keep && existsSync(join(KEPT, "clusters.json"))) {
    throw new Error("A demo is running already: stop it with `npm run demo -- --stop`.");
  }
  const begin = performance.now();
  const clusters = await start(keep);
  const { directory, kubectl } = clusters.info;
  running = directory;
  let kept = false;
  try {
    signal.throwIfAborted();
    if (!keep) {
      terminal.print("Commands work in another terminal, in this folder, after:");
      for (const line of environmentLines(clusters.info)) terminal.print(`   ${line}`);
    }
    terminal.print(`All commands, with all that they print: ${TRANSCRIPT}`);
    const { kubeconfig } = clusters.get("host");
    const shell = new Shell({ terminal, kubectl, kubeconfig, directory, transcript: TRANSCRIPT, signal });
    await showAll({ clusters, shell, signal }, keep);
    kept = keep;
  } catch (error) {
    if (!signal.aborted) terminal.progress(logTails(directory));
    throw error;
  } finally {
    if (!kept) {
      await stopProcesses(directory);
      await clusters.stop();
    }
  }
  if (kept) printKept(clusters);
  else terminal.print("\nThe clusters are stopped and their files are gone.");
  terminal.print(`\n${terminal.paint("green", "Done")} in ${Math.round((performance.now() - begin) / 1000)} s.`);
}

async function stop(): Promise<void> {
  if (!existsSync(KEPT)) {
    terminal.print("No demo is running.");
    return;
  }
  await stopProcesses(KEPT);
  await openClusters(KEPT).stop();
  terminal.print("Stopped.");
}

async function main(): Promise<void> {
  const { values } = readOptions(USAGE, { keep: { type: "boolean" }, stop: { type: "boolean" } });
  if (values.stop === true) await stop();
  else await demo(values.keep === true);
}

try {
  await main();
} catch (error) {
  if (signal.aborted) terminal.progress("Stopped.");
  else {
    terminal.progress(`${terminal.paintProgress("red", "error:")} ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
