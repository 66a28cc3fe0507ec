import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { ROOT } from "./cli.ts";
import { copiesOf, instruction } from "./dockerfile.ts";

/** Name of the image, which no registry has. */
export const LEGATION_IMAGE = "localhost/legation:test";

const DOCKERFILE = readFileSync(join(ROOT, "Dockerfile"), "utf8");
// Contents of the Dockerfile's base image: this process's Node.js, and env for the shebang line.
const ENV = "/usr/bin/env";
const NODE = "/usr/local/bin/node";

/**
 * Writes an archive for `ctr images import` with the content of the Dockerfile's image, without a container engine or
 * base image.
 */
export async function writeLegationImage(archive: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "legation-image-"));
  try {
    const root = join(directory, "root");
    fillRoot(root);
    const layer = join(directory, "layer.tar");
    execFileSync("tar", ["--owner=0", "--group=0", "-cf", layer, "-C", root, "."]);
    const config = JSON.stringify(imageConfig(await sha256(layer)));
    writeFileSync(join(directory, "config.json"), config);
    const manifest = [{ Config: "config.json", RepoTags: [LEGATION_IMAGE], Layers: ["layer.tar"] }];
    writeFileSync(join(directory, "manifest.json"), JSON.stringify(manifest));
    execFileSync("tar", ["-cf", archive, "-C", directory, "config.json", "layer.tar", "manifest.json"]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function fillRoot(root: string): void {
  mkdirSync(join(root, "tmp"), { recursive: true, mode: 0o1777 });
  put(root, process.execPath, NODE);
  put(root, ENV, ENV);
  for (const library of new Set([process.execPath, ENV].flatMap(libraries))) put(root, library, library);
  for (const { stage, from, to } of copiesOf(DOCKERFILE)) {
    if (stage === undefined) {
      put(root, join(ROOT, from), to);
      continue;
    }
    const make = BUILT[basename(from)];
    if (make === undefined) throw new Error(`Dockerfile: how ${from} is made in ${stage} is not told here`);
    make(root, to);
  }
}

/** Builds the output of the Dockerfile's first stage. */
const BUILT: Readonly<Record<string, (root: string, to: string) => void>> = {
  dist: (root, to) => {
    const dist = join(root, to);
    execFileSync(process.execPath, [
      join(ROOT, "node_modules", "typescript", "bin", "tsc"),
      "-p",
      join(ROOT, "tsconfig.build.json"),
      // `npm run check` checks the types; this build only needs the output.
      "--noCheck",
      "--outDir",
      dist,
    ]);
    execFileSync("chmod", ["+x", join(dist, "src", "cli", "main.js")]);
  },
  // The dependencies that `npm prune --omit=dev` keeps.
  node_modules: (root, to) => {
    const modules = join(ROOT, "node_modules");
    const kept = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: ROOT, encoding: "utf8" });
    for (const path of kept.split("\n").filter((line) => line.startsWith(modules))) {
      put(root, path, join(to, relative(modules, path)));
    }
  },
};

/** Copies a file or folder into the image, following links. */
function put(root: string, from: string, to: string): void {
  const target = join(root, to);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(realpathSync(from), target, { recursive: true, dereference: true });
}

/** The shared libraries that a program is linked with, its loader among them. */
function libraries(program: string): string[] {
  const lines = execFileSync("ldd", [program], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

/** The user, environment and entry point that the Dockerfile ends with. */
function imageConfig(layerDigest: string): object {
  const after = (name: string): string => instruction(DOCKERFILE.split("\n"), name);
  return {
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config: {
      User: after("USER"),
      WorkingDir: after("WORKDIR"),
      Entrypoint: JSON.parse(after("ENTRYPOINT")) as string[],
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin", after("ENV")],
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${layerDigest}`] },
    history: [{ created_by: "test/support/legation/image.ts" }],
  };
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
