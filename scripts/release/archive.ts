import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { pipeline } from "node:stream/promises";

// Equal contents give equal archives, whoever makes them and when.
const REPRODUCIBLE = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];

/** Writes a tar archive of files and folders in `directory`, compressed where its name ends in `gz`. Needs GNU tar and gzip. */
export function writeTar(archive: string, directory: string, names: readonly string[] = ["."]): void {
  const compressed = archive.endsWith("gz") ? ["--use-compress-program=gzip --no-name"] : [];
  execFileSync("tar", [...REPRODUCIBLE, ...compressed, "-cf", archive, "-C", directory, ...names]);
}

/** The digest and size of a file. */
export interface Digest {
  /** SHA-256, in hexadecimal. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads a file's digest and size. */
export async function digestOf(file: string): Promise<Digest> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return { sha256: hash.digest("hex"), bytes: statSync(file).size };
}
