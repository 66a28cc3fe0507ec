import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { benchClient } from "../test/bench/client.bench.ts";
import { benchDay } from "../test/bench/day.bench.ts";
import { benchDelegation, benchDivision } from "../test/bench/delegation.bench.ts";
import { benchDispatch } from "../test/bench/dispatch.bench.ts";
import { type Figure, lineOf, meets } from "../test/bench/figures.ts";
import { plot, rowOf, TABLE_HEAD } from "../test/bench/scale/plot.ts";
import { benchScale, goalsOf, type ScaleResult } from "../test/bench/scale/scale.bench.ts";
import { benchShards } from "../test/bench/scale/shards.bench.ts";
import { benchSoak } from "../test/bench/scale/soak.bench.ts";
import { benchShares } from "../test/bench/shares.bench.ts";
import { benchTunnel } from "../test/bench/tunnel/tunnel.bench.ts";
import { benchUi } from "../test/bench/ui/ui.bench.ts";
import { benchViews } from "../test/bench/views/views.bench.ts";
import { benchWebhook } from "../test/bench/webhook.bench.ts";
import { benchWholeJobs } from "../test/bench/whole-jobs.bench.ts";
import { benchWholeObjects } from "../test/bench/whole-objects.bench.ts";
import { startClusters } from "../test/support/clusters/start.ts";
import { ROOT } from "../test/support/legation/cli.ts";
import { startLegation } from "../test/support/legation/start.ts";
import { readOptions, refuse } from "./options.ts";

const PARTS = [
  "client",
  "webhook",
  "delegation",
  "shares",
  "division",
  "jobs",
  "objects",
  "tunnel",
  "ui",
  "views",
  "day",
  "scale",
  "shards",
  "soak",
];
const USAGE = `Figures, and whether they meet their targets (docs/performance.md).

  npm run bench -- [--only client,webhook,delegation,shares] [--pods 1000,5000]
  npm run bench -- --only scale [--sizes 1x1000,100x20000] [--plot FILE.svg]
  npm run bench -- --only shards [--pods 1000]   one controller, and four that share the namespaces
  npm run bench -- --only soak [--pods 9000]
  npm run bench -- --only day [--minutes 60]   230,000 pods an hour that run, end and are deleted
  npm run bench -- --only ui [--pods 5000,20000]   pods that change, rows of the table; needs Chromium
  npm run bench -- --only views [--sizes 1000x100000]   what users see of so many; needs Chromium
  npm run bench -- --only jobs [--pods 10000]    ten minutes with 10,000 pods

  --only   what to measure: ${PARTS.join(", ")}; the last three alone
  --pods   how many pods are created, directly and delegated; or come and go; or whole objects
  --sizes  members x proxies, on clusters that are not there
  --strict exit with 1 when a target is missed; else with 0 whether targets are met or not`;
const { values } = readOptions(USAGE, {
  pods: { type: "string", default: "1000,5000" },
  only: { type: "string", default: "client,webhook,delegation,shares" },
  sizes: { type: "string" },
  minutes: { type: "string", default: "60" },
  plot: { type: "string" },
  strict: { type: "boolean", default: false },
});
const SIZES = "1x1000,1x20000,1x100000,10x1000,10x20000,100x1000,100x20000,1000x1000,1000x20000,3500x3500";
const given = { ...values, sizes: values.sizes ?? (values.only === "views" ? "1000x100000" : SIZES) };
// Runs the published JavaScript, not the sources.
const MAIN = join(ROOT, "dist", "src", "cli", "main.js");
const counts = listed("pods", /^[1-9]\d{0,6}$/, "numbers such as 1000,5000").map(Number);
const parts = new Set(listed("only", new RegExp(`^(${PARTS.join("|")})$`), PARTS.join(", ")));
const sizes = listed("sizes", /^[1-9]\d{0,3}x\d{1,6}$/, "MEMBERSxPROXIES such as 10x5000").map((size) => {
  const [members = 1, proxies = 0] = size.split("x").map(Number);
  return { members, proxies };
});
const [minutes = 0] = listed("minutes", /^[1-9]\d{0,3}$/, "a number such as 60").map(Number);
const progress = (line: string): void => console.error(`bench: ${line}`);

const figures: Figure[] = [];
// Prints at once: a long run may be interrupted.
const onFigure = (figure: Figure): void => {
  figures.push(figure);
  console.log(lineOf(figure));
};

progress("building");
const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: ROOT, stdio: "inherit" });
if (built.status !== 0) process.exit(built.status ?? 1);

if (parts.has("scale")) {
  progress("the controller on clusters that are not there");
  console.log(TABLE_HEAD);
  const onResult = (result: ScaleResult): void => console.log(rowOf(result));
  const results = await benchScale({ sizes, main: MAIN, ...shipped(), onProgress: progress, onResult });
  if (values.plot !== undefined) writeFileSync(values.plot, plot(results));
  const goals = goalsOf(results);
  for (const goal of goals) console.log(lineOf(goal));
  process.exit(results.length < sizes.length ? 1 : exitCode(goals));
}

if (parts.has("shards")) {
  progress("controllers that share the namespaces, on clusters that are not there");
  const [pods = 0] = counts;
  const shared = await benchShards({ pods, main: MAIN, ...shipped(), onProgress: progress });
  for (const figure of shared) console.log(lineOf(figure));
  process.exit(exitCode(shared));
}

if (parts.has("soak")) {
  progress("the memory of a controller whose pods come and go, on clusters that are not there");
  const [pods = 0] = counts;
  const soaked = await benchSoak({ pods, main: MAIN, ...shipped(), onProgress: progress });
  for (const figure of soaked) console.log(lineOf(figure));
  process.exit(exitCode(soaked));
}

if (parts.has("views")) {
  for (const size of sizes) await benchViews({ ...size, main: MAIN, ...shipped(), onProgress: progress, onFigure });
  conclude();
  process.exit();
}

// Real users' control planes have more than one thread.
process.env.GOMAXPROCS ??= String(availableParallelism());
if (parts.has("tunnel")) {
  progress("a member's API server directly, through an agent, and through konnectivity");
  await using alone = await startClusters({
    names: ["west"],
    clusters: { west: { nodes: [], audit: false } },
    onProgress: progress,
  });
  await benchTunnel({ member: alone.get("west"), onProgress: progress, onFigure });
  parts.delete("tunnel");
}
if (parts.has("ui")) {
  progress("the page in Chromium, and pods that change");
  // The pods' nodes are not there.
  const controllerManagerFlags = ["--controllers=*,-pod-garbage-collector-controller"];
  await using alone = await startClusters({
    names: ["host"],
    clusters: { host: { nodes: [], audit: false, controllerManagerFlags } },
    onProgress: progress,
  });
  const { nodeFlags, env } = shipped();
  const [pods = 0, rows = pods] = counts;
  await benchUi({
    host: alone.get("host"),
    kubectl: alone.info.kubectl,
    program: [...nodeFlags, MAIN],
    env,
    pods,
    rows,
    onProgress: progress,
    onFigure,
  });
  parts.delete("ui");
}
if (parts.size === 0) {
  conclude();
  process.exit();
}

await using clusters = await startClusters({
  names: ["host", "west", "east"],
  clusters: {
    // Only the part of whole Jobs counts writes.
    host: { nodes: [{ count: 2 }], audit: parts.has("jobs") },
    west: { audit: false },
    east: { audit: false },
  },
  onProgress: progress,
});
const host = clusters.get("host");
const members = [clusters.get("west"), clusters.get("east")];
if (parts.has("client")) {
  progress("requests and watch events of src/kube beside @kubernetes/client-node");
  const { requests, watchEvents } = await benchClient({ kubeconfig: host.kubeconfig });
  onFigure({ name: "client: requests", value: requests.legation.perSecond, unit: "/s" });
  onFigure({ name: "client: requests / client-node's", value: requests.ratio, unit: "" });
  onFigure({ name: "client: watch events", value: watchEvents.legation.perSecond, unit: "/s" });
  onFigure({ name: "client: watch events / client-node's", value: watchEvents.ratio, unit: "" });
}
if (["webhook", "delegation", "shares", "division", "jobs", "objects", "day"].some((part) => parts.has(part))) {
  const { nodeFlags, env } = shipped();
  await using legation = await startLegation({
    host,
    members: { west: clusters.get("west"), east: clusters.get("east") },
    proxied: false,
    main: MAIN,
    env,
    // The day reads the controller's heap.
    nodeFlags: [...nodeFlags, ...(parts.has("day") ? ["--inspect=127.0.0.1:0"] : [])],
    // An address for pods with tokens; no container runs, so no client dials it.
    controllerFlags: ["--home-api-server=https://192.0.2.1:6443"],
    onProgress: progress,
  });
  // A run without its controller would never end.
  const whileItRuns = (work: Promise<void>): Promise<void> => {
    const ended = legation.controller.whenEnded().then((tail) => {
      throw new Error(`the controller ended by itself:\n${tail}`);
    });
    return Promise.race([work, ended]);
  };
  const { pid } = legation.webhook;
  if (parts.has("webhook") && pid !== undefined) {
    progress("admission reviews");
    for (const figure of await benchWebhook(legation.webhookPort, pid)) onFigure(figure);
  }
  if (parts.has("delegation")) {
    await whileItRuns(benchDelegation({ host, members, legation, pods: counts, onProgress: progress, onFigure }));
  }
  if (parts.has("shares")) {
    const [pods = 0] = counts;
    await whileItRuns(benchShares({ host, members, legation, pods, onProgress: progress, onFigure }));
  }
  if (parts.has("jobs")) {
    const [pods = 0] = counts;
    await whileItRuns(benchWholeJobs({ host, members, legation, pods, onProgress: progress, onFigure }));
    await whileItRuns(benchDispatch({ host, members, legation, count: 400, onProgress: progress, onFigure }));
  }
  if (parts.has("objects")) {
    const [objects = 0] = counts;
    const named = { west: clusters.get("west"), east: clusters.get("east") };
    await whileItRuns(benchWholeObjects({ host, members: named, legation, objects, onProgress: progress, onFigure }));
  }
  if (parts.has("day")) {
    await whileItRuns(benchDay({ host, members, legation, minutes, onProgress: progress, onFigure }));
  }
  if (parts.has("division")) {
    await whileItRuns(benchDivision({ host, members, pods: counts, onProgress: progress, onFigure }));
  }
}
conclude();

/** Says whether targets were missed, and sets the exit code; the clusters may still have to stop. */
function conclude(): void {
  const missed = figures.filter((figure) => meets(figure) === false);
  console.log(missed.length === 0 ? "All targets are met." : `${missed.length} targets are missed.`);
  process.exitCode = exitCode(figures);
}

/** Returns the exit code of `--strict` for figures that miss their targets. */
function exitCode(of: readonly Figure[]): number {
  return values.strict && of.some((figure) => meets(figure) === false) ? 1 : 0;
}

/** Returns the values of a list option. */
function listed(option: "pods" | "only" | "sizes" | "minutes", wanted: RegExp, example: string): string[] {
  const list = given[option].split(",");
  const wrong = list.find((value) => !wanted.test(value));
  return wrong === undefined ? list : refuse(USAGE, `--${option}: "${wrong}" is none of what it may list: ${example}.`);
}

/** Node options and variables in the program's first line. */
function shipped(): { readonly nodeFlags: string[]; readonly env: Record<string, string> } {
  const [first = ""] = readFileSync(MAIN, "utf8").split("\n", 1);
  const words = first.split(" ");
  const nodeFlags = words.filter((word) => word.startsWith("--"));
  const env = Object.fromEntries(
    words.flatMap((word) => {
      const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(word) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value]];
    }),
  );
  return { nodeFlags, env };
}
