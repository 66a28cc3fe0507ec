import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, moduleFolder } from "../clusters/build.ts";
import { withLock } from "../clusters/lock.ts";

/** Engines from Python's package index that tests run, each with its pins in `requirements/`. */
const ENGINES = ["airflow", "dask", "jupyterhub", "parsl", "spark"] as const;

/** Name of one of them. */
export type Engine = (typeof ENGINES)[number];

// Python versions for which all pins have wheels; the pins were resolved with the first.
const PYTHONS = ["python3.11", "python3.12", "python3.13", "python3"];
const PROBE =
  "import ensurepip, sqlite3, sys, venv; assert (3, 11) <= sys.version_info < (3, 14); print(sys.version, sys.base_prefix)";

/** An installed engine. */
export interface EngineFolder {
  /** The virtual environment, whose path is part of it. */
  readonly folder: string;
  readonly python: string;
}

/** A Python that can hold engines, and what it calls itself; undefined when the machine has none. */
function findPython(): { readonly command: string; readonly version: string } | undefined {
  for (const command of PYTHONS) {
    const { status, stdout } = spawnSync(command, ["-c", PROBE], { encoding: "utf8" });
    if (status === 0) return { command, version: stdout.trim() };
  }
  return undefined;
}

/** Returns why no engine can be installed here. */
function enginesPossible(): string | undefined {
  return findPython() === undefined
    ? "engines need Python 3.11 to 3.13 with venv and sqlite3 (on Debian: apt-get install python3-venv)"
    : undefined;
}

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const child: ChildProcess = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-4000);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.join(" ")}: exit ${code}:\n${output.trimEnd()}`));
    });
  });
}

/**
 * Installs an engine's pinned packages into the cache with the machine's pip, once per list of pins and Python. A
 * second process waits for the first.
 */
export async function ensureEngine(engine: Engine, onProgress: (line: string) => void): Promise<EngineFolder> {
  const python = findPython();
  if (python === undefined) throw new Error(`${engine} cannot be installed: ${enginesPossible()}.`);
  const requirements = join(moduleFolder("../engines/requirements"), `${engine}.txt`);
  const hash = createHash("sha256").update(readFileSync(requirements)).update("\0").update(python.version);
  const parent = join(cacheDirectory(), "engines");
  const folder = join(parent, `${engine}-${hash.digest("hex").slice(0, 16)}`);
  const installed: EngineFolder = { folder, python: join(folder, "bin", "python") };
  // Written last: an environment cannot be moved, so what is whole needs a mark.
  const whole = join(folder, "whole");
  if (existsSync(whole)) return installed;
  mkdirSync(parent, { recursive: true });
  await withLock(`${folder}.lock`, onProgress, async () => {
    if (existsSync(whole)) return;
    rmSync(folder, { recursive: true, force: true });
    onProgress(`installing ${engine} into ${folder}: minutes the first time, then never again`);
    const start = performance.now();
    await run(python.command, ["-m", "venv", folder]);
    // The pins are complete: nothing is left to resolve.
    const pinned = ["--quiet", "--no-input", "--no-deps", "-r", requirements];
    if (engine === "spark") await unpackSpark(installed, pinned);
    else await run(installed.python, ["-m", "pip", "install", ...pinned]);
    if (engine === "airflow") await makeDatabase(installed);
    writeFileSync(whole, "");
    onProgress(`${engine}: installed in ${Math.round((performance.now() - start) / 1000)} s`);
  });
  return installed;
}

/** Installs the engines that the files are named for, and whose libraries they use; says why where none can be installed. */
export async function ensureEnginesOf(files: readonly string[], onProgress: (line: string) => void): Promise<void> {
  const used = ENGINES.filter((engine) => files.some((path) => isFor(path, engine)));
  const obstacle = enginesPossible();
  if (obstacle === undefined) await Promise.all(used.map((engine) => ensureEngine(engine, onProgress)));
  else if (used.length > 0) onProgress(`not installed: ${used.join(" and ")}, for ${obstacle}`);
}

/** The client of Python with which members are reached is Parsl's. */
function isFor(path: string, engine: Engine): boolean {
  return path.includes(`/engine-${engine}`) || (engine === "parsl" && path.endsWith(PYTHON_CLIENT));
}

/** The file of the suite that needs an engine's packages and no engine. */
export const PYTHON_CLIENT = "/real-nodes/access.test.ts";

/** Folder of Spark itself in its engine's: what `SPARK_HOME` is. */
export function sparkHome({ folder }: EngineFolder): string {
  return join(folder, "spark");
}

/**
 * Takes Spark's programs and libraries out of its package. pip would install a wheel, for which it would first compress all of
 * them again.
 */
async function unpackSpark(installed: EngineFolder, pinned: readonly string[]): Promise<void> {
  const [home, work] = [sparkHome(installed), join(installed.folder, "package")];
  await run(installed.python, ["-m", "pip", "download", "--no-binary=pyspark", `--dest=${work}`, ...pinned]);
  const [archive = ""] = readdirSync(work);
  const [name] = archive.split(".tar.");
  const parts = ["deps/bin", "deps/jars", "lib"].map((part) => `${name}/${part}`);
  await run("tar", ["-xzf", join(work, archive), "-C", work, ...parts]);
  // Kubernetes mounts Spark's settings there, and cannot make a folder where all is read-only.
  mkdirSync(join(home, "conf"), { recursive: true });
  mkdirSync(join(home, "python"));
  renameSync(join(work, `${name}`, "deps", "bin"), join(home, "bin"));
  renameSync(join(work, `${name}`, "deps", "jars"), join(home, "jars"));
  renameSync(join(work, `${name}`, "lib"), join(home, "python", "lib"));
  rmSync(work, { recursive: true });
}

/** Airflow's empty database, which every home starts from a copy of. */
async function makeDatabase({ folder, python }: EngineFolder): Promise<void> {
  await run(python, ["-m", "airflow", "db", "migrate"], airflowEnvironment(join(folder, "home")));
}

/** Settings of every Airflow, also in a pod. */
export const AIRFLOW_SETTINGS: Readonly<Record<string, string>> = {
  AIRFLOW__CORE__LOAD_EXAMPLES: "False",
  // Limits the imports of a DAG's file; a busy machine needs more than the default of 30 s for Airflow's packages.
  AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT: "300",
};

/** Variables that every Airflow process needs. */
export function airflowEnvironment(home: string): NodeJS.ProcessEnv {
  return { ...process.env, ...AIRFLOW_SETTINGS, AIRFLOW_HOME: home, PYTHONWARNINGS: "ignore" };
}
