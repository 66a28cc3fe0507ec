import { fork } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { findBinaries } from "./binaries.ts";
import { clustersOf, keeperAnswers } from "./control.ts";
import { clustersInfo, type KeeperOrder, keeperReport, SOCKET_NAME } from "./control-protocol.ts";
import { findNodeBinaries, findServicePrograms } from "./node/binaries.ts";
import type { Clusters, ClustersInfo, StartOptions } from "./types.ts";

const KEEPER = fileURLToPath(new URL("keeper.ts", import.meta.url));
const NAME = /^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/;

function checkNames(names: readonly string[]): void {
  for (const name of names) {
    if (!NAME.test(name))
      throw new Error(`"${name}" cannot be a cluster's name: use small letters, digits and dashes.`);
  }
  if (new Set(names).size !== names.length) throw new Error(`Cluster names must differ: ${names.join(", ")}.`);
}

// Linux has room for 108 bytes in a socket's address.
const LONGEST_SOCKET = 107;

async function prepareDirectory(wanted: string | undefined): Promise<string> {
  if (wanted === undefined) return mkdtempSync(join(tmpdir(), "legation-"));
  const directory = resolve(wanted);
  const socket = join(directory, SOCKET_NAME);
  if (Buffer.byteLength(socket) > LONGEST_SOCKET) {
    throw new Error(`${directory} is too long a path for a socket in it: choose a shorter one.`);
  }
  // Left by a keeper that was killed, or by a machine that went down.
  if (existsSync(socket) && !(await keeperAnswers(socket))) rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (readdirSync(directory).length > 0) {
    throw new Error(`${directory} is not empty: stop the clusters in it first, or choose another folder.`);
  }
  return directory;
}

function runKeeper(
  order: KeeperOrder,
  onProgress: (line: string) => void,
  networkNamespace: string | undefined,
): Promise<ClustersInfo> {
  // The test runner's own options are not the keeper's.
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  // The planes lack processor time, not memory: garbage is collected less often, with one Go thread each.
  const env = { GOGC: "400", GOMAXPROCS: "1", ...inherited };
  const logFile = join(order.directory, "keeper.log");
  // A file, not this process's output: a detached keeper would keep a pipe open.
  const log = openSync(logFile, "a");
  // `ip` becomes Node.js, and keeps the channel.
  const started =
    networkNamespace === undefined
      ? { execArgv: [] }
      : { execPath: "ip", execArgv: ["netns", "exec", networkNamespace, process.execPath] };
  const keeper = fork(KEEPER, [], { detached: true, ...started, env, stdio: ["ignore", log, log, "ipc"] });
  closeSync(log);
  return new Promise((resolve, reject) => {
    keeper.once("error", reject);
    keeper.once("exit", (code, signal) => {
      const output = existsSync(logFile) ? readFileSync(logFile, "utf8").trim() : "";
      reject(new Error(`The clusters' keeper ended early (${signal ?? code}). ${output}`.trim()));
    });
    keeper.on("message", (message) => {
      const report = keeperReport.parse(message);
      switch (report.type) {
        case "progress":
          onProgress(report.line);
          return;
        case "failed":
          reject(new Error(report.message));
          return;
        case "ready":
          for (const event of ["error", "exit", "message"]) keeper.removeAllListeners(event);
          // The channel now only tells the keeper that this process lives.
          keeper.unref();
          keeper.channel?.unref();
          if (order.detached) keeper.disconnect();
          resolve(report.info);
          return;
      }
    });
    keeper.send(order);
  });
}

/**
 * Starts clusters in parallel, and resolves when pods can be created in each. They end with `stop()`, or with this
 * process unless `detached`.
 */
export async function startClusters(options: StartOptions): Promise<Clusters> {
  checkNames(options.names);
  const onProgress = options.onProgress ?? (() => {});
  const binaries = await findBinaries(onProgress);
  const withRealNode = options.names.some((name) => options.clusters?.[name]?.realNode === true);
  const withServices = options.names.some((name) => options.clusters?.[name]?.serviceNetwork !== undefined);
  const service = withServices ? { service: await findServicePrograms(onProgress) } : {};
  const nodeBinaries = withRealNode ? { ...(await findNodeBinaries(onProgress)), ...service } : undefined;
  const directory = await prepareDirectory(options.directory);
  const order: KeeperOrder = {
    names: [...options.names],
    clusters: { ...options.clusters },
    directory,
    detached: options.detached ?? false,
    binaries,
    ...(nodeBinaries === undefined ? {} : { nodeBinaries }),
  };
  try {
    return clustersOf(await runKeeper(order, onProgress, options.networkNamespace));
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Clusters that another process started: those in `directory`. */
export function openClusters(directory: string): Clusters {
  const file = join(resolve(directory), "clusters.json");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new Error(`No clusters run in ${resolve(directory)}: there is no ${file}.`);
  }
  return clustersOf(clustersInfo.parse(JSON.parse(text)));
}
