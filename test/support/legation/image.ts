import { writeImage } from "../../../scripts/release/image.ts";

/** Name of the image, which no registry has. */
export const LEGATION_IMAGE = "localhost/legation:test";

/** Writes an archive for `ctr images import` with the image that a release has, uncompressed to save time. */
export async function writeLegationImage(archive: string, name: string = LEGATION_IMAGE): Promise<void> {
  await writeImage(archive, { name, compress: false });
}
