import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Terminal } from "../src/cli/shared/terminal.ts";
import { cacheDirectory } from "../test/support/clusters/build.ts";
import { startClusters } from "../test/support/clusters/start.ts";
import { openPage } from "../test/support/ui/browser.ts";
import { abortedBySignals } from "./demo/interruption.ts";
import { logTails, stopProcesses } from "./demo/process.ts";
import { ProgressLine } from "./demo/progress-line.ts";
import { Shell } from "./demo/shell.ts";
import type { Tour } from "./demo/tour.ts";
import { readOptions } from "./options.ts";
import { animation } from "./pictures/animation.ts";
import { COLUMNS } from "./pictures/recording.ts";
import { awaitDelegated, awaitReplaced, CLUSTERS, loseMember, openScene, startTraining } from "./pictures/scene.ts";
import { takePictures, takeQuietPictures } from "./pictures/screenshots.ts";
import { openSession, recordDelegation, recordLoss, recordQuestions, SESSION_TITLE } from "./pictures/session.ts";

const USAGE = `Makes the pictures of README and docs: four clusters start, and Legation runs a made-up company's workloads there. The page is
photographed in both themes, and commands with what they print become docs/pictures/twelve-seconds.svg.

  npm run pictures -- [--to FOLDER]

  --to  where the pictures are written; default: docs/pictures

Needs Chromium, and script of util-linux. Takes about four minutes.`;

const { values } = readOptions(USAGE, { to: { type: "string", default: "docs/pictures" } });
const folder = resolve(values.to);
const transcript = join(cacheDirectory(), "pictures.log");
const terminal = new Terminal(process.stdout, process.stderr, process.env);
/** Folder of the clusters, once they run. */
let running: string | undefined;
const signal = abortedBySignals(terminal, () => running);

/** Plays the scene, and writes its pictures. */
async function play(tour: Tour): Promise<void> {
  const { clusters, shell } = tour;
  await openScene(tour);
  shell.step("Record commands, and take pictures of the page");
  const session = await openSession(tour);
  await recordDelegation(session, () => awaitDelegated(tour));
  const name = "-o=jsonpath={.items[0].metadata.name}";
  const pod = await shell.read("kubectl", "-n", "shop", "get", "pods", "-l", "app=web", name);
  await recordQuestions(session, pod);
  const ui = await openPage(clusters.get("host").kubeconfig, { scale: 2 });
  try {
    await takeQuietPictures(ui, folder, pod);
    await startTraining(tour);
    shell.step("Lose a member");
    await loseMember(tour);
    await recordLoss(session, () => awaitReplaced(tour));
    await takePictures(ui, folder);
  } finally {
    await ui.close();
  }
  const svg = animation(session.frames, { columns: COLUMNS, title: SESSION_TITLE });
  writeFileSync(join(folder, "twelve-seconds.svg"), svg);
}

mkdirSync(folder, { recursive: true });
const progress = new ProgressLine(process.stdout);
const clusters = await startClusters({
  names: Object.keys(CLUSTERS),
  clusters: CLUSTERS,
  onProgress: (line) => progress.show(line),
});
progress.clear();
const { directory, kubectl } = clusters.info;
running = directory;
try {
  signal.throwIfAborted();
  terminal.print(`All commands, with all that they print: ${transcript}`);
  const { kubeconfig } = clusters.get("host");
  await play({ clusters, shell: new Shell({ terminal, kubectl, kubeconfig, directory, transcript, signal }), signal });
} catch (error) {
  if (!signal.aborted) {
    terminal.progress(logTails(directory));
    terminal.progress(`${terminal.paintProgress("red", "error:")} ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
} finally {
  await stopProcesses(directory);
  await clusters.stop();
}
