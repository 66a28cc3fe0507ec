import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt, type GoPrograms, type GoSources } from "../clusters/build.ts";

/** A release of an engine as Go's module proxy has it, with the versions of all that it needs in its own go.mod. */
interface Release {
  readonly module: string;
  readonly version: string;
  /** Its sum as go.sum writes it. */
  readonly sum: string;
  /** Files that are links in the engine's repository, which modules leave out: each with the file that it leads to. */
  readonly links?: Readonly<Record<string, string>>;
}

/** Builds in a copy of the release's sources, since the cache of modules must stay as it is. */
function sourcesOf({ module, version, sum, links = {} }: Release): GoSources {
  return {
    pins: () => [`${module}@${version}`, sum, ...Object.entries(links).flat()],
    sources: (work) => {
      const download = spawnSync("go", ["mod", "download", "-json", `${module}@${version}`], { encoding: "utf8" });
      const found = JSON.parse(download.stdout || "{}") as { Dir?: string; Sum?: string; Error?: string };
      if (found.Dir === undefined) {
        throw new Error(`${module} ${version} cannot be downloaded: ${found.Error ?? download.stderr.trim()}`);
      }
      if (found.Sum !== sum)
        throw new Error(`${module} ${version} is another one than before: its sum is ${found.Sum}.`);
      cpSync(found.Dir, work, { recursive: true });
      makeWritable(work);
      for (const [link, target] of Object.entries(links)) copyFileSync(join(work, target), join(work, link));
      return work;
    },
  };
}

/** Modules are read-only, folders included; what is to be removed must not be. */
function makeWritable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
}

/** Keeps a folder of the sources beside the binaries. */
function folderOf(path: string): (to: string, sources: string) => void {
  return (to, sources) => cpSync(join(sources, path), to, { recursive: true });
}

/** Engines that are Go programs and that tests run. */
const NAMES = ["argo", "tekton", "jobset"] as const;

/** Name of one of them. */
export type ProgramEngine = (typeof NAMES)[number];

const STATIC = { ldflags: "-s -w", isStatic: true };

/** Each is built from its own sources, and keeps the objects that it needs in a cluster. */
const ENGINES: Readonly<Record<ProgramEngine, GoPrograms>> = {
  argo: {
    ...STATIC,
    name: "argo",
    ...sourcesOf({
      module: "github.com/argoproj/argo-workflows/v3",
      version: "v3.7.14",
      sum: "h1:ptbGB8ljmDgV3PlX0dEMfHwuq1P9DklQ5Hi4XzHBVLA=",
      links: { "workflow/executor/osspecific/signal_linux.go": "workflow/executor/osspecific/signal_darwin.go" },
    }),
    packages: { "workflow-controller": "./cmd/workflow-controller", argoexec: "./cmd/argoexec" },
    extras: { crds: folderOf("manifests/base/crds/minimal") },
  },
  tekton: {
    ...STATIC,
    name: "tekton",
    ...sourcesOf({
      module: "github.com/tektoncd/pipeline",
      version: "v1.12.0",
      sum: "h1:/a2ENIZYLwvvApWU8KHL5CWCj/fNjiGU/aTUu3up2YQ=",
    }),
    packages: {
      controller: "./cmd/controller",
      webhook: "./cmd/webhook",
      entrypoint: "./cmd/entrypoint",
      nop: "./cmd/nop",
    },
    extras: { config: folderOf("config") },
  },
  jobset: {
    ...STATIC,
    name: "jobset",
    ...sourcesOf({
      module: "sigs.k8s.io/jobset",
      version: "v0.12.0",
      sum: "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
    }),
    packages: { jobset: "." },
    extras: { config: folderOf("config") },
  },
};

/** Builds what is not cached yet of an engine; resolves to the folder of its programs and of the objects that they need. */
export async function ensurePrograms(engine: ProgramEngine, onProgress: (line: string) => void): Promise<string> {
  const programs = ENGINES[engine];
  return ensureBuilt(programs, Object.keys(programs.packages), onProgress);
}

/** Builds every engine that the cache lacks, one after another: each takes all processors. */
export async function ensureAllPrograms(onProgress: (line: string) => void): Promise<void> {
  for (const engine of NAMES) await ensurePrograms(engine, onProgress);
}
