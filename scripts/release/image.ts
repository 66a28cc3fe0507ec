import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { z } from "zod";
import { digestOf, writeTar } from "./archive.ts";
import { buildDist, copyDependencies, copyTo, ROOT } from "./contents.ts";
import { copiesOf, instruction } from "./dockerfile.ts";

// Contents of the Dockerfile's base image: this process's Node.js, and env for the shebang line.
const ENV = "/usr/bin/env";
const NODE = "/usr/local/bin/node";

const OCI = "application/vnd.oci.image";

/** An image to write. */
interface ImageOptions {
  /** Name with the tag, e.g. `registry.example/legation:1`. */
  readonly name: string;
  /** Compresses the layer. Default true. */
  readonly compress?: boolean;
}

/**
 * Writes an image with the content of the Dockerfile's image as an OCI layout in a tar archive, without a container engine or base
 * image. `ctr images import` and `skopeo copy oci-archive:FILE` read it. Resolves to the digest of the image.
 */
export async function writeImage(archive: string, { name, compress = true }: ImageOptions): Promise<string> {
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  const directory = mkdtempSync(join(tmpdir(), "legation-image-"));
  try {
    const root = join(directory, "root");
    fillRoot(root, dockerfile);
    const layout = join(directory, "layout");
    const digest = await writeLayout(layout, { root, dockerfile, name, compress });
    writeTar(archive, layout, ["oci-layout", "index.json", "blobs"]);
    return digest;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

interface LayoutSource {
  readonly root: string;
  readonly dockerfile: string;
  readonly name: string;
  readonly compress: boolean;
}

/** A reference to a blob of the layout. */
interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Writes https://github.com/opencontainers/image-spec/blob/main/image-layout.md. Resolves to the manifest's digest. */
async function writeLayout(layout: string, { root, dockerfile, name, compress }: LayoutSource): Promise<string> {
  const blobs = join(layout, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (mediaType: string, content: object): Descriptor => {
    const text = JSON.stringify(content);
    const sha256 = createHash("sha256").update(text).digest("hex");
    writeFileSync(join(blobs, sha256), text);
    return { mediaType, digest: `sha256:${sha256}`, size: Buffer.byteLength(text) };
  };
  const tar = join(blobs, "layer.tar");
  writeTar(tar, root);
  const { sha256: diffId } = await digestOf(tar);
  if (compress) execFileSync("gzip", ["--no-name", tar]);
  const file = compress ? `${tar}.gz` : tar;
  const { sha256, bytes } = await digestOf(file);
  renameSync(file, join(blobs, sha256));
  const mediaType = `${OCI}.layer.v1.tar${compress ? "+gzip" : ""}`;
  const config = put(`${OCI}.config.v1+json`, imageConfig(dockerfile, diffId));
  const manifest = put(`${OCI}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config,
    layers: [{ mediaType, digest: `sha256:${sha256}`, size: bytes }],
  });
  const tag = /:([^/:]*)$/.exec(name)?.[1] ?? "latest";
  const annotations = { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag };
  const index = {
    schemaVersion: 2,
    mediaType: `${OCI}.index.v1+json`,
    manifests: [{ ...manifest, platform: { architecture: ARCHITECTURE, os: "linux" }, annotations }],
  };
  writeFileSync(join(layout, "index.json"), JSON.stringify(index));
  writeFileSync(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return manifest.digest;
}

/** Architecture of this machine, as images name it. */
export const ARCHITECTURE: string = process.arch === "x64" ? "amd64" : process.arch;

function fillRoot(root: string, dockerfile: string): void {
  mkdirSync(join(root, "tmp"), { recursive: true, mode: 0o1777 });
  copyTo(process.execPath, join(root, NODE));
  copyTo(ENV, join(root, ENV));
  for (const library of new Set([process.execPath, ENV].flatMap(libraries))) copyTo(library, join(root, library));
  for (const { stage, from, to } of copiesOf(dockerfile)) {
    if (stage === undefined) {
      copyTo(join(ROOT, from), join(root, to));
      continue;
    }
    const make = BUILT[basename(from)];
    if (make === undefined) throw new Error(`Dockerfile: how ${from} is made in ${stage} is not told here`);
    make(join(root, to));
  }
}

/** Builds the output of the Dockerfile's first stage. */
const BUILT: Readonly<Record<string, (target: string) => void>> = { dist: buildDist, node_modules: copyDependencies };

/** The shared libraries that a program is linked with, its loader among them. */
function libraries(program: string): string[] {
  const lines = execFileSync("ldd", [program], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

const entrypoint = z.array(z.string());

/** The user, environment and entry point that the Dockerfile ends with. */
function imageConfig(dockerfile: string, diffId: string): object {
  const after = (name: string): string => instruction(dockerfile.split("\n"), name);
  return {
    architecture: ARCHITECTURE,
    os: "linux",
    config: {
      User: after("USER"),
      WorkingDir: after("WORKDIR"),
      Entrypoint: entrypoint.parse(JSON.parse(after("ENTRYPOINT"))),
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin", after("ENV")],
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${diffId}`] },
    history: [{ created_by: "scripts/release/image.ts" }],
  };
}
