import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Terminal } from "../src/cli/shared/terminal.ts";
import { answerSignals } from "../src/cli/signals.ts";
import { binariesToBuild } from "../test/support/clusters/binaries.ts";
import { cacheDirectory } from "../test/support/clusters/build.ts";
import { realNodesPossible } from "../test/support/clusters/node/possible.ts";
import { openClusters, startClusters } from "../test/support/clusters/start.ts";
import type { Clusters } from "../test/support/clusters/types.ts";
import { firstRun } from "./demo/first-run.ts";
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
  runExamples,
  scale,
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
// kwok's nodes run no containers: a stage ends those of Jobs.
const JOB_PODS = join(import.meta.dirname, "demo", "job-pods.yaml");
// Clusters that are starting stop by themselves on a signal; this stops the rest.
const PATIENCE_MS = 3_000;

const terminal = new Terminal(process.stdout, process.stderr, process.env);
const interruption = new AbortController();
const { signal } = interruption;

// The reader of the output may be gone (Ctrl-C in a pipe); the demo still stops everything.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
answerSignals(["SIGINT", "SIGTERM", "SIGHUP"], {
  first: (name) => {
    terminal.progress(`\n${name}: stopping everything`);
    process.exitCode = 128 + constants.signals[name];
    interruption.abort();
  },
  again: (name) => process.exit(128 + constants.signals[name]),
});

async function start(keep: boolean): Promise<Clusters> {
  const real = realNodesPossible() === undefined;
  const names = ["host", ...Object.keys(MEMBERS), AGENT_MEMBER];
  terminal.print(terminal.paint("bold", "Legation: pods of one cluster, running in others"));
  terminal.print(
    real
      ? "\nFour Kubernetes control planes start on this machine. The nodes of three are played by kwok, one is real."
      : "\nFour Kubernetes control planes start on this machine. Their nodes are played by kwok.",
  );
  sayWhatIsBuilt();
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

/** Says before the first run what it takes, and how to avoid that. */
function sayWhatIsBuilt(): void {
  const names = binariesToBuild();
  if (names.length === 0) return;
  for (const line of firstRun(names)) terminal.print(line === "" ? "" : `   ${line}`);
}

/** Prints how to run the same commands in another terminal. */
function printEnvironment({ info }: Clusters): void {
  const lines = [
    `export DEMO=${info.directory}`,
    "export KUBECONFIG=$DEMO/host/kubeconfig",
    `alias kubectl=${info.kubectl}`,
    "export PATH=$PWD/bin:$PATH",
  ];
  for (const line of lines) terminal.print(`   ${line}`);
}

async function showAll(tour: Tour, keep: boolean): Promise<void> {
  const hub = await installLegation(tour);
  await joinMembers(tour);
  await runExamples(tour);
  await joinBehindAgent(tour, hub);
  await scale(tour);
  await showPending(tour);
  if (keep) return;
  await deleteWorkloads(tour);
  await removeLegation(tour);
}

function printKept(clusters: Clusters): void {
  terminal.print(`\n${terminal.paint("bold", "All of it keeps running.")} In a terminal, in this folder:`);
  printEnvironment(clusters);
  terminal.print("\nKubeconfigs:");
  for (const { name, kubeconfig } of clusters.all) terminal.print(`   ${name.padEnd(6)} ${kubeconfig}`);
  terminal.print(`Logs:   ${join(KEPT, "webhook.log")}, ${join(KEPT, "controller.log")}, ${join(KEPT, "access.log")}`);
  terminal.print("The tokens of webhook, controller and access end after 24 hours.");
  terminal.print("\nTo stop it:\n   npm run demo -- --stop");
}

async function demo(keep: boolean): Promise<void> {
  if (keep && existsSync(join(KEPT, "clusters.json"))) {
    throw new Error("A demo is running already: stop it with `npm run demo -- --stop`.");
  }
  const begin = performance.now();
  const clusters = await start(keep);
  const { directory, kubectl } = clusters.info;
  let kept = false;
  try {
    signal.throwIfAborted();
    terminal.print("\nThe commands below work in another terminal, in this folder, after:");
    printEnvironment(clusters);
    const { kubeconfig } = clusters.get("host");
    const shell = new Shell({ terminal, kubectl, kubeconfig, directory, signal });
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
