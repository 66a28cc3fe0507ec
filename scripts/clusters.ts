import { join } from "node:path";
import { findBinaries } from "../test/support/clusters/binaries.ts";
import { cacheDirectory } from "../test/support/clusters/build.ts";
import { findNodeBinaries } from "../test/support/clusters/node/binaries.ts";
import { realNodesPossible } from "../test/support/clusters/node/possible.ts";
import { openClusters, startClusters } from "../test/support/clusters/start.ts";
import { ensureAllPrograms } from "../test/support/engines/programs.ts";
import { ensureEnginesOf, PYTHON_CLIENT } from "../test/support/engines/python.ts";
import { ProgressLine } from "./demo/progress-line.ts";
import { readOptions, refuse, wholeNumber } from "./options.ts";

const USAGE = `Real Kubernetes clusters on this machine, left running to try things by hand.

  npm run clusters -- up [--members 2] [--nodes 3] [--real] [--dir DIR]
                                           a host and members, with kubeconfigs; --real: each member also
                                           has a node that runs containers (root; image localhost/busybox:1)
  npm run clusters -- down [--dir DIR]     ends them and removes their files
  npm run clusters -- build                builds the binaries and installs the engines that
                                           \`npm test\` needs and that are not cached yet`;

const { values, commands } = readOptions(
  USAGE,
  {
    members: { type: "string", default: "2" },
    nodes: { type: "string", default: "3" },
    dir: { type: "string", default: join(cacheDirectory(), "clusters") },
    real: { type: "boolean", default: false },
  },
  true,
);

function countOf(flag: "members" | "nodes"): number {
  return wholeNumber(USAGE, flag, values[flag], 0, 1000);
}

const progress = new ProgressLine(process.stderr);

function say(line: string): void {
  progress.clear();
  process.stderr.write(`${line}\n`);
}

function show(line: string): void {
  progress.show(line);
}

const FIRST_MEMBERS = ["west", "east", "north", "south"];

async function build(): Promise<void> {
  await findBinaries(show);
  const obstacle = realNodesPossible();
  if (obstacle === undefined) await findNodeBinaries(show);
  else say(`not built: kubelet and containerd, for ${obstacle}`);
  await ensureEnginesOf([PYTHON_CLIENT], show);
  await ensureAllPrograms(show);
  progress.clear();
}

async function up(): Promise<void> {
  const begin = performance.now();
  const member = { nodes: [{ count: countOf("nodes") }], realNode: values.real };
  const members = Array.from({ length: countOf("members") }, (_, i) => FIRST_MEMBERS[i] ?? `member-${i + 1}`);
  const clusters = await startClusters({
    names: ["host", ...members],
    clusters: { host: { nodes: [{ count: 2 }] }, ...Object.fromEntries(members.map((name) => [name, member])) },
    directory: values.dir,
    detached: true,
    onProgress: show,
  });
  say(`all up in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  process.stdout.write(`kubectl  ${clusters.info.kubectl}\n`);
  for (const { name, kubeconfig } of clusters.all) process.stdout.write(`${name.padEnd(8)} ${kubeconfig}\n`);
}

const COMMANDS: Readonly<Record<string, () => Promise<void>>> = {
  up,
  build,
  down: () => openClusters(values.dir).stop(),
};

const [name = "", ...more] = commands;
const command = COMMANDS[name] ?? refuse(USAGE, name === "" ? "Which command?" : `There is no command "${name}".`);
if (more.length > 0) refuse(USAGE, `What is "${more.join(" ")}"?`);
try {
  await command();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
